#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "fabric/fabric.h"
#include "txn/rsi/rsi_client.h"
#include "txn/rsi/session.h"
#include "txn/tables.h"

namespace nam::txn {

/// Shares a process's clients among its sessions. A session has a client from the begin of a transaction to
/// its end:
///
///                        Begin, one CAS                    a transaction's end, one store
///     idle, last used by S ────────────▶ in use by S ─────────────────────────────▶ idle, last used by S
///              │                              ▲      └▶ sessions wait: the first of them gets it
///              └── another session needs one ─┘
///
/// So an undisturbed session keeps its client without taking a lock. There are no more clients than sessions,
/// nor than RsiOptions::clients_max. Thread-safe; the process's sessions share ownership.
class ClientPool {
 public:
  struct Place;
  /// A session, as the pool knows it.
  struct User {
    uint64_t number = 0;     // from Enter; never another session's
    Place* place = nullptr;  // its last place; may be another session's by now. Used by the session's thread
    SessionState state;      // while it has no client; under the pool's mutex
  };
  /// The place of a client. Empty while the client is opened or closed, and when free.
  struct Place {
    /// The number of its user, doubled; odd: in use. 0: free.
    std::atomic<uint64_t> word{0};
    std::atomic<bool> lost{false};      // the client was lost when its last transaction ended
    std::unique_ptr<RsiClient> client;  // used by the session whose turn it is
    // Under the pool's mutex:
    User* last = nullptr;  // the session whose state the client has
    int64_t retry_ns = 0;  // when to try again to replace a lost client
  };

  ClientPool(Tables& tables, const RsiOptions& options);
  ~ClientPool();
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;

  /// Adds a session. Opens a client for it unless clients_max are open; a session without a client of its own
  /// shares the others'. An error adds nothing. RESOURCE_EXHAUSTED: there is no client slot, and the process
  /// has no client.
  absl::Status Enter(User& user);
  /// Removes a session between its transactions. Closes a client if clients outnumber sessions.
  void Leave(User& user);

  /// Takes the user's last client unless another session has taken it.
  static bool AcquireAgain(User& user) {
    uint64_t idle = user.number << 1;
    return user.place != nullptr &&
           user.place->word.compare_exchange_strong(idle, idle | kInUse, std::memory_order_acquire,
                                                    std::memory_order_relaxed);
  }
  /// Takes any client if AcquireAgain has failed. Waits while all are in use, in order of arrival.
  absl::Status Acquire(User& user);
  /// Replaces the user's lost client. After an error the user has none, and the lost one is unowned.
  absl::Status Replace(User& user);
  /// Gives the client back after the user's transaction.
  void GiveBack(User& user) {
    // A waiting session counts itself before it looks, and this looks after the store: one of the two sees
    // the other.
    user.place->word.store(user.number << 1, std::memory_order_seq_cst);
    if (waiting_count_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      PassOn(*user.place, user.number << 1);
  }

  const RsiOptions& options() const { return options_; }
  /// The cost of the user's begins. Called between its transactions.
  BeginCosts BeginCostsOf(User& user);

 private:
  static constexpr uint64_t kInUse = 1;
  static constexpr uint64_t kNoUser = 1;  // the number of a user that has left
  struct Waiter {
    User* user = nullptr;
    std::unique_ptr<fabric::Event> served;
    Place* place = nullptr;  // set once it is served
  };

  // `user`: null for a client that is to be closed.
  /// Takes what is available without a wait: a whole client that no session has had last; a place for another
  /// client; or another session's idle client. Lost clients come last, since a replacement takes time and may
  /// fail, but before the number of clients grows.
  Place* AcquireAny(User& user, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Takes a client that no session has had last.
  Place* AcquireUnowned(User* user, bool lost, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Place* AcquireVacant(User& user, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Takes an idle client of another session.
  Place* AcquireIdle(User* user, bool lost, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasUnownedLost() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Whether another place has a client that is not lost, idle or in use.
  bool HasWholeBeside(const Place& place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Whether a client may be taken: it is `lost` or not as asked; a lost one only if a try to replace it is
  /// due, or all are lost.
  bool MayAcquire(const Place& place, bool lost, int64_t now_ns) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return place.lost == lost && (!lost || place.retry_ns <= now_ns || !HasWholeBeside(place));
  }
  /// Passes the place to the first waiter, unless its client was lost and a whole one will come free.
  /// Otherwise leaves the client unowned.
  std::shared_ptr<Waiter> PassToFirst(Place& place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Assign(Place& place, User* user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Serves the first waiter. The place is unused.
  std::shared_ptr<Waiter> ServeFirst(Place& place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    waiting_count_.store(waiting_.size(), std::memory_order_seq_cst);
  }

  absl::StatusOr<Place*> AcquirePlace(User& user, Deadline deadline);
  absl::StatusOr<Place*> AwaitPlace(const std::shared_ptr<Waiter>& waiter, Deadline deadline);
  absl::Status Prepare(User& user);
  absl::Status OpenClient(User& user);
  /// Empties the place. `refused`: the cluster, or this host, has no room for another client.
  void Vacate(Place& place, bool refused);
  void PassOn(Place& place, uint64_t idle_word);
  bool HasClients();

  Tables& tables_;
  const RsiOptions options_;
  std::atomic<size_t> waiting_count_{0};  // size of waiting_
  Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Waiter>> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t users_ ABSL_GUARDED_BY(mutex_) = kNoUser;  // the last number given to a user
  size_t sessions_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t clients_ ABSL_GUARDED_BY(mutex_) = 0;  // including those being opened or closed
  size_t hand_ ABSL_GUARDED_BY(mutex_) = 0;     // in places_: where the search for an idle client goes on
  int64_t refused_until_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // until then no client is added
};

}  // namespace nam::txn
