#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>

#include "absl/status/statusor.h"
#include "computeserver/open_attempts.h"
#include "computeserver/result_store.h"
#include "execution/attempt.h"
#include "execution/channel_pool.h"
#include "execution/memory_budget.h"
#include "execution/prepared_stage.h"

namespace nam::computeserver {

/// Translates an attempt's error for its client. If other queries have the server's memory, tells the client
/// to retry once it can have all that it wants (`whole`: it had that). If its build sides took most of that,
/// says so (kBuildSidesTooLarge). A result that `result_bytes_max` allows, but the server's memory never
/// fits, is the server's error, too.
absl::StatusOr<proto::AttemptReply> OrCrowded(absl::StatusOr<proto::AttemptReply> reply,
                                              const execution::MemoryGrant& memory, bool whole,
                                              uint64_t build_bytes, uint64_t result_bytes_max);

/// An attempt with all that it owns, from its first call to its last. Its result, or each window of it, goes
/// where the coordinator READs it.
class AttemptRun final : public OpenAttempt {
 public:
  /// The server's; outlives the run.
  struct Server {
    execution::ChannelPool& channels;
    execution::ChannelPool& claim_channels;
    ResultStore& results;
    const std::atomic<bool>& leaving;
  };
  /// `whole`: it has all of the memory that its settings allow.
  AttemptRun(const Server& server, uint64_t id, MemberId client, bool whole,
             std::unique_ptr<execution::PreparedStage> stage, execution::MulticastBuild multicast,
             execution::ExchangeLanes lanes = {})
      : server_(server),
        id_(id),
        client_(client),
        whole_(whole),
        stage_(std::move(stage)),
        attempt_(*stage_, std::move(multicast), server.channels, server.claim_channels, cancel_,
                 std::move(lanes)) {}
  ~AttemptRun() override;

  absl::StatusOr<proto::AttemptReply> Advance(const catalog::IncomingCall& call) override;
  void Cancel() override { cancel_ = true; }
  void LeaveWindow() override { leaves_window_ = true; }

 private:
  absl::StatusOr<proto::AttemptReply> Go(const catalog::IncomingCall& call);
  absl::StatusOr<proto::AttemptReply> Window();
  absl::StatusOr<proto::AttemptReply> End();
  absl::Status Keep(std::span<const std::span<const std::byte>> pages, proto::AttemptReply& reply);

  const Server server_;
  const uint64_t id_;
  const MemberId client_;
  const bool whole_;
  std::atomic<bool> cancel_ = false;
  const std::unique_ptr<execution::PreparedStage> stage_;
  execution::Attempt attempt_;
  bool started_ = false;
  bool handed_over_ = false;  // some of its rows
  std::atomic<bool> leaves_window_ = false;
  bool ended_ = false;  // and the client owns what it has left
};

}  // namespace nam::computeserver
