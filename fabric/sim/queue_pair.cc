#include "fabric/sim/queue_pair.h"

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::fabric::sim {
namespace {

constexpr uint32_t kInlineBytesMax = 4096;

}  // namespace

absl::Status SimQueuePair::CheckOptions(const QueuePairOptions& options, const NicModel& model) {
  const uint32_t depth_max = model.queue_depth_max;
  if (options.send_depth == 0 || options.send_depth > depth_max || options.receive_depth > depth_max ||
      options.inline_bytes_max > kInlineBytesMax) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "queue pair options out of range: send_depth %d (1 to %d), receive_depth %d (0 to %d), "
        "inline_bytes_max %d (0 to %d)",
        options.send_depth, depth_max, options.receive_depth, depth_max, options.inline_bytes_max,
        kInlineBytesMax));
  }
  return absl::OkStatus();
}

absl::Status SimQueuePair::CheckRequest(const WorkRequest& request) const {
  const uint32_t bytes = request.local.bytes;
  const bool atomic = request.opcode == Opcode::kCompareAndSwap || request.opcode == Opcode::kFetchAdd;
  const uint32_t bytes_max = request.opcode == Opcode::kSend ? kMaxSendBytes : kMaxMessageBytes;
  if (request.opcode >= Opcode::kReceive) {
    return absl::InvalidArgumentError("receives are posted by PostReceive");
  }
  if (atomic && bytes != sizeof(uint64_t)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s needs 8 bytes for the old value, not %d", OpcodeName(request.opcode), bytes));
  }
  if (bytes > bytes_max) {
    return absl::InvalidArgumentError(absl::StrFormat("%s of %d bytes: the most is %d, split it",
                                                      OpcodeName(request.opcode), bytes, bytes_max));
  }
  if (!request.inlined) return absl::OkStatus();
  if (atomic || request.opcode == Opcode::kRead) {
    return absl::InvalidArgumentError(absl::StrFormat("%s cannot be inlined", OpcodeName(request.opcode)));
  }
  if (bytes > end_->options().inline_bytes_max) {
    return absl::InvalidArgumentError(absl::StrFormat("%d bytes inlined: the most is %d (inline_bytes_max)",
                                                      bytes, end_->options().inline_bytes_max));
  }
  return absl::OkStatus();
}

absl::Status SimQueuePair::Post(std::span<const WorkRequest> batch) {
  for (const WorkRequest& request : batch) NAM_RETURN_IF_ERROR(CheckRequest(request));
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
