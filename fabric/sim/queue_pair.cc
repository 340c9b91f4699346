#include "fabric/sim/queue_pair.h"

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/request_rules.h"

namespace nam::fabric::sim {

absl::Status SimQueuePair::Post(std::span<const WorkRequest> batch) {
  for (const WorkRequest& request : batch) {
    NAM_RETURN_IF_ERROR(CheckWorkRequest(request, end_->options().inline_bytes_max));
  }
  if (batch.size() > end_->send_room()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%d work requests to %s, and room for %d of at most %d: take completions first, signal some, or "
        "raise send_depth",
        batch.size(), end_->peer_name(), end_->send_room(), end_->options().send_depth));
  }
  end_->Post(batch);
  return absl::OkStatus();
}

absl::Status SimQueuePair::PostReceive(std::span<const ReceiveRequest> batch) {
  if (batch.size() > end_->receive_room()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%d receives, and room for %d of at most %d: take completions first, or raise receive_depth",
        batch.size(), end_->receive_room(), end_->options().receive_depth));
  }
  end_->PostReceive(batch);
  return absl::OkStatus();
}

absl::StatusOr<std::span<const std::byte>> SimQueuePair::View(RemoteAddress, size_t) {
  return absl::FailedPreconditionError("the sim fabric has no view of a peer's memory: READ it instead");
}

}  // namespace nam::fabric::sim
