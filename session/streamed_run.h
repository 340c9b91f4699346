#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/catalog.pb.h"
#include "proto/compute.pb.h"
#include "session/compute_clients.h"
#include "session/explain.h"
#include "session/stage_output.h"

namespace nam::session {

/// Runs a streamed stage: all its members at the same time, or none.
///
///     open     each server in the order of member ids: its turn, its memory, its ends of the exchanges
///     attempt  all of them, with where all ends are
///     ended    by all: their rows count
///     lost     a member, or its memory is other queries': what has come is dropped, and the stage runs again
///              on those that are left, as another attempt
///
/// Nothing counts before all have ended, so no row counts twice. One thread, one stage.
class StreamedRun {
 public:
  struct Options {
    proto::AttemptRequest request;  // plan, stage and settings
    bool sockets = false;           // over sockets, whatever the cluster's fabric is
    uint32_t exchanges = 0;         // in the stage
    uint32_t message_bytes = 0;
    std::vector<ServerReport>& servers;  // possible members; in the end the actual ones
    ComputeClients& clients;
    std::function<uint64_t()> next_attempt;
    /// Living compute servers, asked for if all others are lost.
    std::function<absl::StatusOr<std::vector<proto::Member>>()> members;
    StageOutput output;
    /// Called with attempts that do not count, and may have left pages in scratch memory.
    std::function<void(uint64_t attempt)> drop_scratch;
    Clock& clock;
    const std::atomic<bool>& cancel;
  };
  explicit StreamedRun(Options options) : options_(std::move(options)), started_ns_(options_.clock.NowNs()) {}
  /// CANCELLED; or the first error that no other members could repair.
  absl::Status Run();

 private:
  struct Server {
    bool gone = false;     // lost, leaving, or it takes no more queries
    bool crowded = false;  // it is asked for all the memory that the stage may need
    std::vector<std::string> addresses;
    double started_ms = 0, ended_ms = 0;  // its part in the attempt that counts
  };
  using Work = std::unique_ptr<ComputeClients::Work>;

  /// Runs the stage as one attempt. False: it does not count, and another may be worthwhile.
  absl::StatusOr<bool> RunOnce();
  absl::StatusOr<std::vector<size_t>> FindMembers();
  /// False: one of the members is lost.
  absl::StatusOr<bool> OpenAll(const std::vector<size_t>& members, uint64_t first_attempt);
  /// An allocation for each member if the rows become a table's, otherwise none.
  absl::StatusOr<std::vector<uint64_t>> BeginAttempts(size_t members);
  void AbortAttempts(const std::vector<uint64_t>& allocations);
  void StartAll(const std::vector<size_t>& members, uint64_t first_attempt,
                const std::vector<uint64_t>& allocations);
  absl::StatusOr<bool> AwaitAll(const std::vector<size_t>& members, std::vector<Work>& ended);
  /// False: the attempt does not count.
  absl::StatusOr<bool> Look(const ComputeClients::Work& work);
  absl::Status Deliver(std::vector<Work> ended);
  void Lose(size_t server, const absl::Status& why);
  double NowMs() const { return static_cast<double>(options_.clock.NowNs() - started_ns_) / 1e6; }

  Options options_;
  std::vector<Server> servers_;  // as options_.servers
  uint32_t threads_ = 1;         // of each member, in this attempt
  absl::Status first_loss_;
  const int64_t started_ns_;
};

}  // namespace nam::session
