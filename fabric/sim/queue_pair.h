#pragma once

#include <memory>
#include <string>
#include <utility>

#include "fabric/fabric.h"
#include "fabric/immediate.h"
#include "fabric/sim/endpoint.h"

namespace nam::fabric::sim {

/// The application's handle of one end.
class SimQueuePair : public QueuePair {
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

 protected:
  const std::shared_ptr<Endpoint> end_;
};

/// A queue pair of a world with in-place memory. Operations take effect on the calling thread, which lets
/// others run before each one and between the parts of a torn one.
class InPlaceQueuePair final : public SimQueuePair, public ImmediateOperations {
 public:
  InPlaceQueuePair(Scheduler& scheduler, std::shared_ptr<Endpoint> end)
      : SimQueuePair(std::move(end)), scheduler_(scheduler) {}

  absl::StatusOr<std::span<const std::byte>> View(RemoteAddress from, size_t bytes) override;
  const std::byte* ViewNow(RemoteAddress from, size_t bytes) override;
  CompletionStatus ReadNow(RemoteAddress from, std::byte* into, uint32_t bytes) override;
  CompletionStatus WriteNow(const std::byte* from, uint32_t bytes, RemoteAddress to) override;
  CompletionStatus CompareAndSwapNow(RemoteAddress at, uint64_t compare, uint64_t swap,
                                     uint64_t* old) override;
  CompletionStatus FetchAddNow(RemoteAddress at, uint64_t add, uint64_t* old) override;

 private:
  Scheduler& scheduler_;
};

std::unique_ptr<QueuePair> MakeQueuePair(Scheduler& scheduler, std::shared_ptr<Endpoint> end, bool in_place);

}  // namespace nam::fabric::sim
