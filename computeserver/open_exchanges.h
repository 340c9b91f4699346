#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/strong_id.h"
#include "computeserver/attempt_queue.h"
#include "execution/exchange/endpoint.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Exchange ends whose attempts have not begun yet: each has its turn and its place at the server, so that
/// the stage waits for no other work once all members have theirs. Unused ends are dropped soon, or with
/// their client. Each client numbers its own attempts. Thread-safe.
class OpenExchanges {
 public:
  /// One attempt's.
  struct Ends {
    AttemptQueue::Beginning beginning;
    std::vector<std::unique_ptr<execution::Endpoint>> endpoints;  // by thread
  };

  explicit OpenExchanges(fabric::Fabric& fabric) : fabric_(fabric) {}

  /// False: the client has opened them already, or no more are taken.
  bool Put(uint64_t attempt, MemberId client, Ends ends);
  /// nullopt: there are none, or none any more.
  std::optional<Ends> Take(uint64_t attempt, MemberId client);
  /// Drops ends that the client does not want.
  void Release(uint64_t attempt, MemberId client) { Take(attempt, client); }
  /// The clients with open ends.
  std::set<MemberId> Clients();
  /// Drops those of a client that is gone.
  void DropOf(MemberId client);
  /// Drops those that have waited for long.
  void DropOld();
  /// Takes no more.
  void End();

 private:
  using Key = std::pair<MemberId, uint64_t>;  // client, attempt
  struct Entry {
    Ends ends;
    int64_t since_ns = 0;
  };

  fabric::Fabric& fabric_;
  Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace nam::computeserver
