#include "txn/rsi/client_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

constexpr int kOpensMax = 3;
constexpr int64_t kInterruptionLookUs = 50'000;
constexpr int64_t kRefusedUs = 1'000'000;

}  // namespace

ClientPool::ClientPool(Tables& tables, const RsiOptions& options)
    : tables_(tables), options_(options), places_(std::max(options.clients_max, 1u)) {}

ClientPool::~ClientPool() = default;

absl::Status ClientPool::Enter(User& user) {
  const int64_t now_ns = tables_.fabric().clock().NowNs();
  {
    const MutexLock lock(mutex_);
    user.number = ++users_;
    ++sessions_;
    user.place = waiting_.empty() ? AcquireUnowned(&user, /*lost=*/false, now_ns) : nullptr;
    if (user.place == nullptr && waiting_.empty()) user.place = AcquireVacant(user, now_ns);
  }
  if (user.place == nullptr) return absl::OkStatus();
  const absl::Status ready = Prepare(user);
  if (ready.ok()) {
    GiveBack(user);
    return ready;
  }
  if (absl::IsResourceExhausted(ready) && HasClients()) return absl::OkStatus();
  Leave(user);
  return ready;
}

void ClientPool::Leave(User& user) {
  Place* closing = nullptr;
  std::shared_ptr<Waiter> served;
  {
    const MutexLock lock(mutex_);
    --sessions_;
    const auto had =
        std::find_if(places_.begin(), places_.end(), [&](const Place& place) { return place.last == &user; });
    Place* const own = had == places_.end() ? nullptr : &*had;
    if (own != nullptr) own->last = nullptr;
    if (clients_ > sessions_) {
      closing = own;
      if (closing != nullptr) closing->word = kNoUser << 1 | kInUse;
      for (const bool lost : {true, false}) {
        if (closing == nullptr) closing = AcquireUnowned(nullptr, lost, INT64_MAX);
      }
      for (const bool lost : {true, false}) {
        if (closing == nullptr) closing = AcquireIdle(nullptr, lost, INT64_MAX);
      }
    } else if (own != nullptr) {
      served = PassToFirst(*own);
    }
  }
  if (served != nullptr) served->served->Set();
  if (closing == nullptr) return;
  closing->client.reset();
  Vacate(*closing, /*refused=*/false);
}

ClientPool::Place* ClientPool::AcquireUnowned(User* user, bool lost, int64_t now_ns) {
  const uint64_t taken = (user == nullptr ? kNoUser : user->number) << 1 | kInUse;
  for (Place& place : places_) {
    uint64_t idle = kNoUser << 1;
    if (!MayAcquire(place, lost, now_ns) || !place.word.compare_exchange_strong(idle, taken)) continue;
    Assign(place, user);
    return &place;
  }
  return nullptr;
}

ClientPool::Place* ClientPool::AcquireVacant(User& user, int64_t now_ns) {
  if (clients_ > 0 && now_ns < refused_until_ns_) return nullptr;
  for (Place& place : places_) {
    if (place.word != 0) continue;
    place.word = user.number << 1 | kInUse;
    place.last = &user;
    ++clients_;
    return &place;
  }
  return nullptr;
}

ClientPool::Place* ClientPool::AcquireIdle(User* user, bool lost, int64_t now_ns) {
  const uint64_t taken = (user == nullptr ? kNoUser : user->number) << 1 | kInUse;
  for (size_t i = 0; i < places_.size(); ++i) {
    const size_t at = (hand_ + i) % places_.size();
    Place& place = places_[at];
    uint64_t word = place.word;
    if (word == 0 || (word & kInUse) != 0 || !MayAcquire(place, lost, now_ns)) continue;
    if (!place.word.compare_exchange_strong(word, taken)) continue;
    hand_ = at + 1;
    Assign(place, user);
    return &place;
  }
  return nullptr;
}

bool ClientPool::HasUnownedLost() const {
  return std::any_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.word == kNoUser << 1 && place.lost; });
}

bool ClientPool::HasWholeBeside(const Place& place) const {
  return std::any_of(places_.begin(), places_.end(),
                     [&](const Place& other) { return &other != &place && other.word != 0 && !other.lost; });
}

ClientPool::Place* ClientPool::AcquireAny(User& user, int64_t now_ns) {
  Place* place = AcquireUnowned(&user, /*lost=*/false, now_ns);
  if (place == nullptr && !HasUnownedLost()) place = AcquireVacant(user, now_ns);
  if (place == nullptr) place = AcquireIdle(&user, /*lost=*/false, now_ns);
  if (place == nullptr) place = AcquireIdle(&user, /*lost=*/true, now_ns);
  return place != nullptr ? place : AcquireVacant(user, now_ns);
}

void ClientPool::Assign(Place& place, User* user) {
  if (place.last == user) return;
  if (place.client != nullptr && place.last != nullptr) place.last->state = place.client->TakeState();
  place.last = user;
  if (place.client != nullptr && user != nullptr) place.client->SetState(user->state);
}

std::shared_ptr<ClientPool::Waiter> ClientPool::ServeFirst(Place& place) {
  std::shared_ptr<Waiter> first = std::move(waiting_.front());
  waiting_.pop_front();
  CountWaiting();
  place.word = first->user->number << 1 | kInUse;
  Assign(place, first->user);
  first->place = &place;
  return first;
}

std::shared_ptr<ClientPool::Waiter> ClientPool::PassToFirst(Place& place) {
  if (!waiting_.empty() && !(place.lost && HasWholeBeside(place))) return ServeFirst(place);
  place.word = kNoUser << 1;
  return nullptr;
}

void ClientPool::PassOn(Place& place, uint64_t idle_word) {
  std::shared_ptr<Waiter> served;
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty() || !place.word.compare_exchange_strong(idle_word, kNoUser << 1 | kInUse)) return;
    served = ServeFirst(place);
  }
  served->served->Set();
}

bool ClientPool::HasClients() {
  const MutexLock lock(mutex_);
  return clients_ > 0;
}

absl::Status ClientPool::Acquire(User& user) {
  const Deadline deadline = tables_.fabric().clock().After(options_.client_timeout_us);
  while (true) {
    NAM_ASSIGN_OR_RETURN(user.place, AcquirePlace(user, deadline));
    const bool opens = user.place->client == nullptr;
    const absl::Status ready = Prepare(user);
    // There is no room for another client, but one of those that are open comes free.
    if (!opens || !absl::IsResourceExhausted(ready) || !HasClients()) return ready;
  }
}

absl::StatusOr<ClientPool::Place*> ClientPool::AcquirePlace(User& user, Deadline deadline) {
  const Clock& clock = tables_.fabric().clock();
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) {
      if (Place* const place = AcquireAny(user, clock.NowNs()); place != nullptr) return place;
    }
  }
  const auto waiter = std::make_shared<Waiter>();
  waiter->user = &user;
  waiter->served = tables_.fabric().CreateEvent();
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(waiter);
    CountWaiting();
    if (waiting_.front() == waiter) {
      if (Place* const place = AcquireAny(user, clock.NowNs()); place != nullptr) {
        waiting_.pop_front();
        CountWaiting();
        return place;
      }
    }
  }
  return AwaitPlace(waiter, deadline);
}

absl::StatusOr<ClientPool::Place*> ClientPool::AwaitPlace(const std::shared_ptr<Waiter>& waiter,
                                                          Deadline deadline) {
  Clock& clock = tables_.fabric().clock();
  while (true) {
    Deadline look{std::min(deadline.ns, clock.After(kRefusedUs).ns)};
    if (Interruption::flag() != nullptr) look.ns = std::min(look.ns, clock.After(kInterruptionLookUs).ns);
    waiter->served->Wait(look);
    const bool gives_up = Interruption::requested() || clock.Passed(deadline);
    const MutexLock lock(mutex_);
    if (waiter->place != nullptr) return waiter->place;
    // There may be room for another client by now, or a lost one can be replaced.
    Place* const place = waiting_.front() == waiter ? AcquireAny(*waiter->user, clock.NowNs()) : nullptr;
    if (place == nullptr && !gives_up) continue;
    std::erase(waiting_, waiter);
    CountWaiting();
    if (place != nullptr) return place;
    if (Interruption::requested()) return absl::CancelledError("cancelled");
    return NoClientFreeStatus(
        absl::StrFormat("this process has %d transactions under way, as many as it may, and none has ended "
                        "within %.1f s",
                        clients_, static_cast<double>(options_.client_timeout_us) / 1e6));
  }
}

absl::Status ClientPool::Prepare(User& user) {
  const std::unique_ptr<RsiClient>& client = user.place->client;
  if (client == nullptr) return OpenClient(user);
  // A former member's client serves only the session that had it before.
  if (client->lost() || client->member() != tables_.member()) return Replace(user);
  return absl::OkStatus();
}

absl::Status ClientPool::OpenClient(User& user) {
  absl::Status status;
  for (int i = 0; i < kOpensMax; ++i) {
    absl::StatusOr<std::unique_ptr<RsiClient>> opened = RsiClient::Open(tables_, options_, /*is_heir=*/false);
    if (opened.ok()) {
      user.place->client = *std::move(opened);
      user.place->client->SetState(user.state);
      return absl::OkStatus();
    }
    status = opened.status();
    if (!absl::IsUnavailable(status)) break;
  }
  Vacate(*user.place, absl::IsResourceExhausted(status));
  return status;
}

absl::Status ClientPool::Replace(User& user) {
  Place& place = *user.place;
  absl::StatusOr<std::unique_ptr<RsiClient>> next = place.client->Succeed();
  if (next.ok()) {
    place.lost = false;
    place.client = *std::move(next);
    return absl::OkStatus();
  }
  std::shared_ptr<Waiter> served;
  {
    const MutexLock lock(mutex_);
    place.lost = true;
    place.retry_ns = tables_.fabric().clock().NowNs() + kRefusedUs * 1'000;
    user.place = nullptr;
    Assign(place, nullptr);
    served = PassToFirst(place);
  }
  if (served != nullptr) served->served->Set();
  return next.status();
}

void ClientPool::Vacate(Place& place, bool refused) {
  const int64_t now_ns = tables_.fabric().clock().NowNs();
  std::shared_ptr<Waiter> served;
  {
    const MutexLock lock(mutex_);
    place.last = nullptr;
    place.lost = false;
    --clients_;
    if (refused && clients_ > 0) {
      refused_until_ns_ = now_ns + kRefusedUs * 1'000;
      place.word = 0;
    } else if (waiting_.empty()) {
      place.word = 0;
    } else {
      ++clients_;  // the first waiter opens one
      served = ServeFirst(place);
    }
  }
  if (served != nullptr) served->served->Set();
}

BeginCosts ClientPool::BeginCostsOf(User& user) {
  const MutexLock lock(mutex_);
  const bool has = user.place != nullptr && user.place->last == &user && user.place->client != nullptr;
  return has ? user.place->client->begin_costs() : user.state.begin_costs;
}

}  // namespace nam::txn
