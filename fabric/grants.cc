#include "fabric/grants.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/process_barriers.h"

namespace nam::fabric {
namespace {

constexpr int64_t kTakenPauseUs = 20;
constexpr size_t kGatesLeast = 64;

}  // namespace

// ─── Uses

// The count is raised before the check, and the closing thread reads it after its mark: at least one sees the
// other.
std::optional<Grant::Use> Grant::Use::Of(std::shared_ptr<Grant> grant) {
  grant->uses_.fetch_add(1, std::memory_order_seq_cst);
  Use use(std::move(grant));
  if (use.grant_->over()) return std::nullopt;
  return use;
}

Grant::Use::~Use() {
  if (grant_ != nullptr) grant_->uses_.fetch_sub(1, std::memory_order_seq_cst);
}

// ─── Gates

Gate::Gate(Clock& clock) : clock_(clock), needs_barriers_(JoinBarriers()) {}

// The owner checks grants after the store; the closing thread marks them before it looks here. A barrier
// between the two would cost the owner as much as an atomic.
void Gate::SetInside(uint64_t section) {
  word_.store(section * kStates + kInside, std::memory_order_relaxed);
  if (needs_barriers_) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler's part of the barrier
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void Gate::Begin() {
  inside_ = true;
  while (true) {
    uint64_t word = word_.load(std::memory_order_acquire);
    const uint64_t section = word / kStates;
    switch (word % kStates) {
      case kIdle:
        SetInside(section + 1);
        return;
      case kParked:
        if (word_.compare_exchange_strong(word, section * kStates + kInside, std::memory_order_seq_cst))
          return;
        break;
      default:
        clock_.SleepUntil(clock_.After(kTakenPauseUs));
    }
  }
}

void Gate::Leave() {
  if (!inside_) return;
  inside_ = false;
  const uint64_t word = word_.load(std::memory_order_relaxed);
  word_.store(word / kStates * kStates + kIdle, std::memory_order_release);
}

void Gate::Park(std::function<bool()> drain) {
  NAM_CHECK(inside_, "only what was begun can be parked");
  inside_ = false;
  drain_ = std::move(drain);
  const uint64_t word = word_.load(std::memory_order_relaxed);
  word_.store(word / kStates * kStates + kParked, std::memory_order_release);
}

Gate::Pause::Pause(Gate& gate) : gate_(gate), before_(kTaken) {
  while (!gate_.inside_) {
    before_ = gate_.word_.load(std::memory_order_acquire);
    const uint64_t taken = before_ / kStates * kStates + kTaken;
    if (before_ % kStates != kTaken && gate_.word_.compare_exchange_strong(before_, taken)) return;
    gate_.clock_.SleepUntil(gate_.clock_.After(kTakenPauseUs));
  }
}

Gate::Pause::~Pause() {
  if (before_ != kTaken) gate_.word_.store(before_, std::memory_order_release);
}

bool Gate::Passed(uint64_t looked) const {
  const uint64_t word = Look();
  return word % kStates == kIdle || word / kStates != looked / kStates;
}

void Gate::TryDrain() {
  uint64_t word = Look();
  if (word % kStates != kParked) return;
  const uint64_t section = word / kStates * kStates;
  if (!word_.compare_exchange_strong(word, section + kTaken, std::memory_order_seq_cst)) return;
  const bool drained = drain_();
  word_.store(section + (drained ? kIdle : kParked), std::memory_order_seq_cst);
}

// ─── The grants of a process

Grants::Opening::Opening(Grants& grants, MemoryServerId server)
    : grants_(grants), server_(server), number_([&grants, server] {
        const MutexLock lock(grants.mutex_);
        grants.openings_.emplace(server, ++grants.last_opening_);
        return grants.last_opening_;
      }()) {}

// EndAll may have dropped the entries, and the server may have opened the memory for the member of now.
Grants::Opening::~Opening() {
  const MutexLock lock(grants_.mutex_);
  for (const auto& [allocation, attempt] : added_) grants_.EntryOf(allocation, attempt, server_, number_);
  grants_.openings_.erase({server_, number_});
}

std::shared_ptr<Grant> Grants::Opening::Add(AllocationId allocation, uint64_t attempt) {
  added_.emplace_back(allocation, attempt);
  const MutexLock lock(grants_.mutex_);
  return grants_.EntryOf(allocation, attempt, server_, number_).grant;
}

bool Grants::Opening::Confirm(const Grant& grant) {
  const MutexLock lock(grants_.mutex_);
  Entry& entry = grants_.EntryOf(grant.allocation(), grant.attempt(), server_, number_);
  if (entry.grant.get() != &grant || grant.over()) return false;
  entry.confirmed.insert(server_);
  return true;
}

Grants::Entry& Grants::EntryOf(AllocationId allocation, uint64_t attempt, MemoryServerId server,
                               uint64_t opening) {
  Entry& entry = entries_[{allocation, attempt}];
  if (entry.grant == nullptr) entry.grant = std::make_shared<Grant>(allocation, attempt);
  Opened& opened = entry.opened[server];
  if (opened.last < opening) opened = {.last = opening};
  return entry;
}

uint64_t Grants::OpeningsFrom(MemoryServerId server) const {
  const auto first = openings_.lower_bound({server, 0});
  return first != openings_.end() && first->first == server ? first->second : last_opening_ + 1;
}

std::shared_ptr<Grant> Grants::Find(AllocationId allocation, MemoryServerId server) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find({allocation, 0});
  if (found == entries_.end() || !found->second.confirmed.contains(server)) return nullptr;
  return found->second.grant;
}

std::vector<AllocationId> Grants::Allocations() const {
  const MutexLock lock(mutex_);
  std::vector<AllocationId> allocations;
  for (const auto& [key, entry] : entries_) {
    if (allocations.empty() || allocations.back() != key.first) allocations.push_back(key.first);
  }
  return allocations;
}

bool Grants::End(std::span<const AllocationId> allocations) {
  const MutexLock lock(mutex_);
  bool any = false;
  for (const AllocationId allocation : allocations) {
    for (auto at = entries_.lower_bound({allocation, 0});
         at != entries_.end() && at->first.first == allocation; ++at) {
      at->second.grant->over_.store(true, std::memory_order_seq_cst);
      any = true;
    }
  }
  return any;
}

void Grants::EndAttempt(AllocationId allocation, uint64_t attempt) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find({allocation, attempt});
  if (found != entries_.end()) found->second.grant->over_.store(true, std::memory_order_seq_cst);
}

void Grants::EndAll() {
  const MutexLock lock(mutex_);
  for (const auto& [key, entry] : entries_) entry.grant->over_.store(true, std::memory_order_seq_cst);
  entries_.clear();
}

std::shared_ptr<Gate> Grants::MakeGate(Clock& clock) {
  auto gate = std::make_shared<Gate>(clock);
  const MutexLock lock(mutex_);
  if (gates_.size() >= gates_max_) {
    std::erase_if(gates_, [](const std::weak_ptr<Gate>& other) { return other.expired(); });
    gates_max_ = 2 * gates_.size() + kGatesLeast;
  }
  gates_.push_back(gate);
  return gate;
}

void Grants::Leave(std::unique_ptr<Unconfirmed> connections) {
  const MutexLock lock(mutex_);
  unconfirmed_.push_back(std::move(connections));
}

void Grants::DropConnections() {
  std::vector<std::unique_ptr<Unconfirmed>> all;
  const MutexLock lock(mutex_);
  all.swap(unconfirmed_);
}

std::vector<std::shared_ptr<Gate>> Grants::Gates() const {
  std::vector<std::shared_ptr<Gate>> gates;
  for (const std::weak_ptr<Gate>& weak : gates_) {
    if (std::shared_ptr<Gate> gate = weak.lock()) gates.push_back(std::move(gate));
  }
  return gates;
}

void Grants::ConfirmEnds() {
  std::vector<std::unique_ptr<Unconfirmed>> some;
  {
    const MutexLock lock(mutex_);
    some.swap(unconfirmed_);
  }
  std::erase_if(some, [](const std::unique_ptr<Unconfirmed>& one) { return one->Confirmed(); });
  const MutexLock lock(mutex_);
  std::move(some.begin(), some.end(), std::back_inserter(unconfirmed_));
}

// False: the kernel refuses what the gates rely on.
bool Grants::PassBarriers(const std::vector<std::shared_ptr<Gate>>& gates) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto needs = [](const std::shared_ptr<Gate>& gate) { return gate->needs_barriers(); };
  return std::none_of(gates.begin(), gates.end(), needs) || RunBarriers();
}

// Nothing that may wait runs under the lock.
std::vector<Grants::Closed> Grants::Close() {
  ConfirmEnds();
  std::vector<std::shared_ptr<Gate>> gates;
  {
    const MutexLock lock(mutex_);
    gates = Gates();
  }
  for (const std::shared_ptr<Gate>& gate : gates) gate->TryDrain();
  std::vector<Closed> closed;
  const MutexLock lock(mutex_);
  const auto is_new = [](const auto& entry) {
    return entry.second.grant->over() && !entry.second.looked.has_value();
  };
  gates = Gates();
  if (std::any_of(entries_.begin(), entries_.end(), is_new) && !PassBarriers(gates)) return closed;
  for (auto& [key, entry] : entries_) {
    if (!entry.grant->over()) continue;
    if (!entry.looked.has_value()) {
      // Channels that are opened later see the mark.
      entry.looked.emplace();
      for (const std::shared_ptr<Gate>& gate : gates) entry.looked->emplace_back(gate, gate->Look());
    }
    std::erase_if(*entry.looked, [](const auto& look) { return look.first->Passed(look.second); });
    if (!entry.looked->empty() || entry.grant->uses_.load(std::memory_order_seq_cst) > 0) continue;
    for (const auto& [server, opened] : entry.opened) {
      const uint64_t openings_from = OpeningsFrom(server);
      if (!opened.told || opened.last < openings_from)
        closed.push_back({entry.grant, server, opened.last, openings_from});
    }
  }
  return closed;
}

void Grants::Forget(const Closed& told) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find({told.grant->allocation(), told.grant->attempt()});
  if (found == entries_.end() || found->second.grant != told.grant) return;
  auto& opened = found->second.opened;
  const auto at = opened.find(told.server);
  if (at == opened.end() || at->second.last != told.opening) return;
  at->second.told = true;
  if (told.opening >= told.openings_from) return;
  opened.erase(at);
  if (opened.empty()) entries_.erase(found);
}

bool Grants::closing() const {
  const MutexLock lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry.second.grant->over(); });
}

}  // namespace nam::fabric
