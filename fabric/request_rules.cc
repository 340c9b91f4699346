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

absl::Status CheckDatagramOptions(const DatagramOptions& options, uint32_t depth_max) {
  if (options.send_depth >= 1 && options.send_depth <= depth_max && options.receive_depth <= depth_max) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("datagram options out of range: send_depth %d (1 to %d), receive_depth %d (0 to %d)",
                      options.send_depth, depth_max, options.receive_depth, depth_max));
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

absl::Status CheckDatagrams(std::span<const DatagramRequest> batch, uint32_t bytes_max, size_t targets,
                            uint64_t outstanding, uint32_t send_depth) {
  for (const DatagramRequest& request : batch) {
    if (request.local.bytes > bytes_max) {
      return absl::InvalidArgumentError(absl::StrFormat("a datagram of %d bytes: the most is %d, split it",
                                                        request.local.bytes, bytes_max));
    }
    if (request.to.handle == 0 || request.to.handle > targets) {
      return absl::InvalidArgumentError(
          absl::StrFormat("datagram target %d is not of this queue pair", request.to.handle));
    }
  }
  if (batch.size() <= send_depth - outstanding) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("%d datagrams are outstanding of at most %d: take completions first, signal some, or "
                      "raise send_depth",
                      outstanding, send_depth));
}

}  // namespace nam::fabric
