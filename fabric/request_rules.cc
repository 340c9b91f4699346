#include "fabric/request_rules.h"

#include "absl/strings/str_format.h"

namespace nam::fabric {

absl::Status CheckQueuePairOptions(const QueuePairOptions& options, uint32_t send_depth_max,
                                   uint32_t receive_depth_max) {
  if (options.send_depth >= 1 && options.send_depth <= send_depth_max &&
      options.receive_depth <= receive_depth_max && options.inline_bytes_max <= kInlineBytesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("queue pair options out of range: send_depth %d (1 to %d), receive_depth %d (0 to %d), "
                      "inline_bytes_max %d (0 to %d)",
                      options.send_depth, send_depth_max, options.receive_depth, receive_depth_max,
                      options.inline_bytes_max, kInlineBytesMax));
}

absl::Status CheckWorkRequest(const WorkRequest& request, uint32_t inline_bytes_max) {
  const Opcode opcode = request.opcode;
  if (opcode >= Opcode::kReceive) return absl::InvalidArgumentError("receives are posted by PostReceive");
  const uint32_t bytes = request.local.bytes;
  if (IsAtomic(opcode) && bytes != sizeof(uint64_t)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s needs 8 bytes for the old value, not %d", OpcodeName(opcode), bytes));
  }
  const uint32_t bytes_max = opcode == Opcode::kSend ? kMaxSendBytes : kMaxMessageBytes;
  if (bytes > bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s of %d bytes: the most is %d, split it", OpcodeName(opcode), bytes, bytes_max));
  }
  if (!request.inlined) return absl::OkStatus();
  if (opcode == Opcode::kRead || IsAtomic(opcode)) {
    return absl::InvalidArgumentError(absl::StrFormat("%s cannot be inlined", OpcodeName(opcode)));
  }
  if (bytes > inline_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d bytes inlined: the most is %d (inline_bytes_max)", bytes, inline_bytes_max));
  }
  return absl::OkStatus();
}

absl::Status TooManyRequests(uint64_t outstanding, uint32_t send_depth, const std::string& peer) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("%d work requests to %s are outstanding of at most %d: take completions first, signal "
                      "some, or raise send_depth",
                      outstanding, peer, send_depth));
}

absl::Status TooManyReceives(uint64_t outstanding, uint32_t receive_depth) {
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%d receives are outstanding of at most %d: take completions first, or raise receive_depth",
      outstanding, receive_depth));
}

}  // namespace nam::fabric
