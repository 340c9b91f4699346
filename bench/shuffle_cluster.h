#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/shuffle_input.h"
#include "bench/shuffle_plan.h"
#include "bench/shuffle_worker.h"
#include "execution/exchange/endpoint.h"
#include "session/session.h"

namespace nam::bench {

/// The servers' initial rows, by table.
using ShuffleTables = std::map<std::string, std::unique_ptr<ShuffleTable>>;

/// Compute servers that run shuffle-based plans: one fabric each, with threads connected all to all. Used by
/// one thread.
class ShuffleCluster {
 public:
  struct Options {
    uint32_t threads = 1;  // per server
    ShuffleMessages messages;
  };
  /// One server per fabric. The fabrics must outlive the cluster.
  static absl::StatusOr<std::unique_ptr<ShuffleCluster>> Open(std::vector<fabric::Fabric*> fabrics,
                                                              const Options& options);

  struct Answer {
    session::ResultSet result;
    double elapsed_ms = 0;  // from the start of the threads to the merged result
    uint64_t sent_bytes = 0;
    ShuffleWork work;  // of all threads
  };
  /// `materialize`: writes every join's output to memory before the next one begins; otherwise it continues
  /// at once.
  absl::StatusOr<Answer> Run(const ShuffleQuery& query, const ShuffleTables& rows, bool materialize);

 private:
  struct Thread {
    std::unique_ptr<execution::Endpoint> endpoint;
    std::unique_ptr<ShuffleWorker> worker;  // the last query's
    absl::Status result;
  };
  struct Server {
    fabric::Fabric* fabric = nullptr;
    std::vector<Thread> threads;
    ShuffleServerRun run;
  };
  explicit ShuffleCluster(const Options& options) : options_(options) {}
  absl::Status Connect();
  absl::StatusOr<std::unique_ptr<execution::Endpoint>> OpenEndpoint(const Server& server) const;
  absl::Status Prepare(const ShuffleQuery& query, const ShuffleTables& rows, bool materialize);
  absl::Status PrepareStage(const ShuffleQuery& query, Server& server);
  absl::StatusOr<session::ResultSet> Merge(const ShuffleQuery& query);
  absl::Status RunThreads();
  absl::Status RunThread(Server& server, Thread& thread);

  const Options options_;
  std::atomic<bool> cancel_ = false;
  const std::atomic<bool> leaving_ = false;  // servers never leave
  uint64_t runs_ = 0;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace nam::bench
