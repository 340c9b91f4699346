#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "fabric/fabric.h"

/// Rules for requests that all providers share.
namespace nam::fabric {

inline constexpr uint32_t kQueueDepthMax = 1u << 16;
inline constexpr uint32_t kInlineBytesMax = 4096;

/// INVALID_ARGUMENT names the option out of range. Receives may have a different bound than sends.
absl::Status CheckQueuePairOptions(const QueuePairOptions& options, uint32_t send_depth_max = kQueueDepthMax,
                                   uint32_t receive_depth_max = kQueueDepthMax);

constexpr bool IsAtomic(Opcode opcode) {
  return opcode == Opcode::kCompareAndSwap || opcode == Opcode::kFetchAdd;
}

/// True if the peer's process takes no part in the operation.
constexpr bool IsOneSided(Opcode opcode) {
  return opcode <= Opcode::kFetchAdd && opcode != Opcode::kWriteWithImmediate;
}

absl::Status TooManyRequests(uint64_t outstanding, uint32_t send_depth, const std::string& peer);
absl::Status TooManyReceives(uint64_t outstanding, uint32_t receive_depth);

/// RESOURCE_EXHAUSTED: a queue pair to `peer` with `outstanding` of `send_depth` requests in use takes no
/// `posted` more.
inline absl::Status CheckSendRoom(size_t posted, uint64_t outstanding, uint32_t send_depth,
                                  const std::string& peer) {
  if (posted <= send_depth - outstanding) [[likely]]
    return absl::OkStatus();
  return TooManyRequests(outstanding, send_depth, peer);
}
/// The same for receives, of queue pairs of both kinds: RESOURCE_EXHAUSTED if the receive queue lacks room.
inline absl::Status CheckReceiveRoom(size_t posted, uint64_t outstanding, uint32_t receive_depth) {
  if (posted <= receive_depth - outstanding) [[likely]]
    return absl::OkStatus();
  return TooManyReceives(outstanding, receive_depth);
}

/// INVALID_ARGUMENT: wrong size, too long, or inlined where that is not allowed.
absl::Status CheckWorkRequest(const WorkRequest& request, uint32_t inline_bytes_max);
/// True for nearly all requests: those that need no CheckWorkRequest.
inline bool IsPlain(const WorkRequest& request) {
  const uint32_t bytes = request.local.bytes;
  return request.opcode < Opcode::kSend && !request.inlined &&
         (IsAtomic(request.opcode) ? bytes == sizeof(uint64_t) : bytes <= kMaxMessageBytes);
}

}  // namespace nam::fabric
