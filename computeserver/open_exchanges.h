#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/strong_id.h"
#include "computeserver/attempt_queue.h"
#include "execution/exchange/endpoint.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Ends of exchanges whose attempts have not begun yet: each has its turn and its place at the server, so
/// that the stage waits for nobody once all members have theirs. What nobody takes is dropped: soon, or with
/// its client. Attempts are numbered by each client for itself. Thread-safe.
class OpenExchanges {
 public:
  /// Of one attempt.
  struct Ends {
    AttemptQueue::Beginning beginning;
    std::vector<std::unique_ptr<execution::Endpoint>> endpoints;  // by thread
  };

  explicit OpenExchanges(fabric::Fabric& fabric) : fabric_(fabric) {}

  /// False: the client has opened them already, or no more are taken.
  bool Put(uint64_t attempt, MemberId client, Ends ends);
  /// Nothing: there are none, or none any more.
  std::optional<Ends> Take(uint64_t attempt, MemberId client);
  /// The client does not want them.
  void Release(uint64_t attempt, MemberId client) { Take(attempt, client); }
  /// Those that some are open for.
  std::set<MemberId> Clients();
  /// The client is gone.
  void DropOf(MemberId client);
  /// Those that have waited for long.
  void DropOld();
  /// No more are taken.
  void End();

 private:
  using Key = std::pair<MemberId, uint64_t>;  // client, attempt
  struct Entry {
    Ends ends;
    int64_t since_ns = 0;
  };

  fabric::Fabric& fabric_;
  std::mutex mutex_;  // guards what follows
  std::map<Key, Entry> entries_;
  bool ended_ = false;
};

}  // namespace nam::computeserver
