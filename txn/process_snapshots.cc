#include "txn/process_snapshots.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace nam::txn {
namespace {

/// The floor follows the oldest snapshot when it has fallen so far behind: what others may free lags by no
/// more.
constexpr uint64_t kRaiseStep = 64;

absl::StatusOr<storage::Channel::Target> FloorOf(ExtentSpace& state, uint32_t client) {
  return state.Resolve(StateGeometry::slot(client) + kSlotFloorOffset);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessSnapshots::Pin>> ProcessSnapshots::Registry::Open(
    ExtentSpace& state, StateGeometry geometry, storage::VerbBatch& batch, MemberId member) {
  const auto share = [&]() -> std::shared_ptr<ProcessSnapshots> {
    const auto found = open_.find(member);
    const auto open = found == open_.end() ? nullptr : found->second.lock();
    if (open == nullptr) return nullptr;
    const std::lock_guard lock(open->mutex_);
    if (open->closed_) return nullptr;
    ++open->sessions_;
    return open;
  };
  {
    const std::lock_guard lock(mutex_);
    if (auto open = share(); open != nullptr) return std::make_unique<Pin>(std::move(open));
    std::erase_if(open_, [](const auto& entry) { return entry.second.expired(); });
  }
  ClientSlot slot;
  const SlotOwner owner{.member = member.value(), .session = SlotOwner::kProcess};
  NAM_RETURN_IF_ERROR(ClientSlot::Claim(state, geometry, batch, owner, 0, &slot));
  std::shared_ptr<ProcessSnapshots> mine;
  {
    const std::lock_guard lock(mutex_);
    // Perhaps another session of the process was as fast.
    if (auto open = share(); open != nullptr) {
      mine = std::move(open);
    } else {
      mine = std::make_shared<ProcessSnapshots>(geometry, slot);
      mine->sessions_ = 1;
      open_[member] = mine;
      slot = {};
    }
  }
  auto pin = std::make_unique<Pin>(std::move(mine));
  if (slot.client != 0) NAM_RETURN_IF_ERROR(slot.Release(state, geometry, batch));
  return pin;
}

absl::Status ProcessSnapshots::Close(ExtentSpace& state, storage::VerbBatch& batch,
                                     std::unique_ptr<Pin> pin) {
  pin->Abandon();
  {
    const std::lock_guard lock(mutex_);
    if (sessions_ > 0 || closed_) return absl::OkStatus();
    closed_ = true;
  }
  return slot_.Release(state, geometry_, batch);
}

uint64_t ProcessSnapshots::LeastLocked(uint64_t most) const {
  uint64_t least = most;
  for (const Pin* pin : pins_) least = std::min(least, pin->lower_.load());
  return least;
}

uint64_t ProcessSnapshots::Least(uint64_t most) {
  const std::lock_guard lock(mutex_);
  return LeastLocked(most);
}

absl::Status ProcessSnapshots::Pin::AddEnter(storage::VerbBatch& batch, ExtentSpace& state) {
  ProcessSnapshots& process = *process_;
  old_ = nullptr;
  {
    const std::lock_guard lock(process.mutex_);
    if (!entered_) {
      // Nobody raises the floor above it from here on, and what has raised it before was older than our
      // READs.
      lower_.store(std::max<uint64_t>(process.known(), 1));
      place_ = process.pins_.insert(process.pins_.end(), this);
      entered_ = true;
    }
    const uint64_t least = process.LeastLocked(lower_.load());
    if (process.published_ && least < process.word_.floor() + kRaiseStep) return absl::OkStatus();
    expected_ = process.word_;
    next_ = process.Next(least);
  }
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, FloorOf(state, process.client()));
  auto* const old = reinterpret_cast<uint64_t*>(batch.Scratch(8));
  batch.CompareAndSwap(at, expected_.word(), next_.word(), old);
  old_ = old;
  return absl::OkStatus();
}

// A floor that another session has made protects this one, too, unless it is about to be taken away: then it
// is replaced, which makes that fail.
bool ProcessSnapshots::Pin::Entered() {
  if (old_ == nullptr) return true;
  ProcessSnapshots& process = *process_;
  const FloorWord old(*std::exchange(old_, nullptr));
  const std::lock_guard lock(process.mutex_);
  if (old == expected_) {
    process.word_ = next_;
    process.leaving_ = FloorWord();
    process.published_ = true;
    return true;
  }
  const bool leaves = old == process.leaving_;
  if (!process.published_) process.word_ = old;
  if (leaves || old.floor() == 0) return false;
  process.published_ = true;
  return true;
}

void ProcessSnapshots::Pin::SetSnapshot(uint64_t snapshot, uint64_t reached) {
  lower_.store(snapshot);
  uint64_t known = process_->known_.load(std::memory_order_relaxed);
  while (known < reached && !process_->known_.compare_exchange_weak(known, reached)) {
  }
}

absl::Status ProcessSnapshots::Pin::AddLeave(storage::VerbBatch& batch, ExtentSpace& state) {
  if (!entered_) return absl::OkStatus();
  ProcessSnapshots& process = *process_;
  FloorWord from, to;
  {
    const std::lock_guard lock(process.mutex_);
    process.pins_.erase(place_);
    entered_ = false;
    if (!process.pins_.empty() || !process.published_) return absl::OkStatus();
    from = process.word_;
    to = process.Next(0);
    process.leaving_ = from;
    process.word_ = to;
    process.published_ = false;
  }
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target at, FloorOf(state, process.client()));
  batch.CompareAndSwap(at, from.word(), to.word(), reinterpret_cast<uint64_t*>(batch.Scratch(8)));
  return absl::OkStatus();
}

// The floor stays where it is, until another session leaves.
void ProcessSnapshots::Pin::Abandon() {
  const std::lock_guard lock(process_->mutex_);
  if (std::exchange(entered_, false)) process_->pins_.erase(place_);
  if (std::exchange(counted_, false)) --process_->sessions_;
}

}  // namespace nam::txn
