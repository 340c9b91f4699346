#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "fabric/fabric.h"
#include "txn/rsi/rsi_client.h"
#include "txn/rsi/session.h"
#include "txn/tables.h"

namespace nam::txn {

/// The clients of a process, and whose turn each is. A session has a client from the begin of a transaction
/// to its end:
///
///                        Begin, one CAS                    a transaction's end, one store
///     idle, last used by S ────────────▶ in use by S ─────────────────────────────▶ idle, last used by S
///              │                              ▲      └▶ sessions wait: the first of them gets it
///              └── another session needs one ─┘
///
/// So a session that nobody disturbs keeps its client, and takes no lock for it. There are no more clients
/// than sessions, nor than RsiOptions::clients_max. Thread-safe; the process's sessions keep it.
class ClientPool {
 public:
  struct Place;
  /// A session, as the pool knows it.
  struct User {
    uint64_t number = 0;     // from Enter; never another session's
    Place* place = nullptr;  // that it had last; may be another session's by now. Of the session's thread.
    SessionState state;      // while no client has it; under the pool's mutex
  };
  /// Where a client is. It has none while one is opened or closed, and when it is free.
  struct Place {
    /// The number of its user, doubled; odd: in use. 0: free.
    std::atomic<uint64_t> word{0};
    std::atomic<bool> lost{false};      // the client was lost when its last transaction ended
    std::unique_ptr<RsiClient> client;  // of the user whose turn it is
    // Under the pool's mutex:
    User* last = nullptr;  // whose state the client has
    int64_t retry_ns = 0;  // of a lost client that could not be replaced: when it is worth another try
  };

  ClientPool(Tables& tables, const RsiOptions& options);
  ~ClientPool();
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;

  /// A session begins. Opens a client for it as long as there may be another; a session without one gets a
  /// turn with the others'. After an error it has not begun. RESOURCE_EXHAUSTED: there is no client slot, and
  /// the process has no client.
  absl::Status Enter(User& user);
  /// The session ends, between its transactions. Closes a client if there are more of them than sessions.
  void Leave(User& user);

  /// The client that the user had last, unless another session has taken it.
  static bool TakeAgain(User& user) {
    uint64_t idle = user.number << 1;
    return user.place != nullptr &&
           user.place->word.compare_exchange_strong(idle, idle | kInUse, std::memory_order_acquire,
                                                    std::memory_order_relaxed);
  }
  /// Any client, for a user that TakeAgain has not helped: waits for one if all are in use, first come, first
  /// served.
  absl::Status Take(User& user);
  /// Instead of the client that the user has, which is lost, another one. After an error it has none, and the
  /// lost one is nobody's.
  absl::Status Replace(User& user);
  /// The user's transaction is over.
  void GiveBack(User& user) {
    // A session that waits has counted itself before it looks, and this looks behind the store: one of the
    // two sees the other.
    user.place->word.store(user.number << 1, std::memory_order_seq_cst);
    if (waiting_count_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      PassOn(*user.place, user.number << 1);
  }

  const RsiOptions& options() const { return options_; }
  /// The user's begin costs; between its transactions.
  BeginCosts BeginCostsOf(User& user);

 private:
  static constexpr uint64_t kInUse = 1;
  static constexpr uint64_t kNobody = 1;  // the number of a user that has left
  struct Waiter {
    User* user = nullptr;
    std::unique_ptr<fabric::Event> served;
    Place* place = nullptr;  // once it was served
  };

  // Under the mutex. `user`: null for a client that is to be closed.
  /// What the user gets if it need not wait: a whole client that no session has had last; a place for another
  /// client; an idle one of another session. One that was lost comes last, since to replace it takes time and
  /// may fail, but before there are more clients.
  Place* TakeAny(User& user, int64_t now_ns);
  /// A client that no session has had last.
  Place* TakeNobodys(User* user, bool lost, int64_t now_ns);
  Place* TakeVacant(User& user, int64_t now_ns);
  /// An idle client of another session.
  Place* TakeIdle(User* user, bool lost, int64_t now_ns);
  bool HasNobodysLost() const;
  /// A client that is not lost, idle or in use, in another place than this.
  bool HasWholeBeside(const Place& place) const;
  /// Whether a client may be taken: `lost` or not, and then if a try to replace it is due, or all are lost.
  bool MayTake(const Place& place, bool lost, int64_t now_ns) const {
    return place.lost == lost && (!lost || place.retry_ns <= now_ns || !HasWholeBeside(place));
  }
  /// Serves who waits first, if anybody does, and it is not a client that was lost while a whole one will
  /// come free. Otherwise the client is nobody's.
  std::shared_ptr<Waiter> PassToFirst(Place& place);
  void Assign(Place& place, User* user);
  /// The place is in use by nobody.
  std::shared_ptr<Waiter> ServeFirst(Place& place);
  void CountWaiting() { waiting_count_.store(waiting_.size(), std::memory_order_seq_cst); }

  absl::StatusOr<Place*> TakePlace(User& user, Deadline deadline);
  absl::StatusOr<Place*> AwaitPlace(const std::shared_ptr<Waiter>& waiter, Deadline deadline);
  absl::Status Prepare(User& user);
  absl::Status OpenClient(User& user);
  /// Its client is gone. `refused`: the cluster, or this host, has no room for another one.
  void Vacate(Place& place, bool refused);
  void PassOn(Place& place, uint64_t idle_word);
  bool HasClients();

  Tables& tables_;
  const RsiOptions options_;
  std::atomic<size_t> waiting_count_{0};  // waiting_'s
  std::mutex mutex_;
  std::vector<Place> places_;
  std::deque<std::shared_ptr<Waiter>> waiting_;
  uint64_t users_ = kNobody;  // numbers that were used
  size_t sessions_ = 0;
  size_t clients_ = 0;            // with those that are being opened and closed
  size_t hand_ = 0;               // of places_: where the search for an idle client goes on
  int64_t refused_until_ns_ = 0;  // until then no client is opened beside others
};

}  // namespace nam::txn
