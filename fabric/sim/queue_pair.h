#pragma once

#include <memory>
#include <string>
#include <utility>

#include "fabric/fabric.h"
#include "fabric/sim/endpoint.h"

namespace nam::fabric::sim {

/// The application's handle of one end.
class SimQueuePair final : public QueuePair {
 public:
  explicit SimQueuePair(std::shared_ptr<Endpoint> end) : end_(std::move(end)) {}
  ~SimQueuePair() override { end_->Close(); }

  uint64_t id() const override { return end_->id(); }
  QueuePairState state() const override {
    return end_->ready() ? QueuePairState::kReady : QueuePairState::kError;
  }
  std::string peer() const override { return end_->peer_name(); }
  absl::Status Post(std::span<const WorkRequest> batch) override;
  absl::Status PostReceive(std::span<const ReceiveRequest> batch) override;
  absl::StatusOr<std::span<const std::byte>> View(RemoteAddress from, size_t bytes) override;
  absl::Status Disconnect(Deadline deadline) override { return end_->Disconnect(deadline); }

 private:
  const std::shared_ptr<Endpoint> end_;
};

}  // namespace nam::fabric::sim
