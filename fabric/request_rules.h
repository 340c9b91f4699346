#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "fabric/fabric.h"

/// Rules for requests that all providers share.
namespace nam::fabric {

inline constexpr uint32_t kQueueDepthMax = 1u << 16;
inline constexpr uint32_t kInlineBytesMax = 4096;

/// INVALID_ARGUMENT names the option out of range. Receives may have a different bound than sends.
absl::Status CheckQueuePairOptions(const QueuePairOptions& options, uint32_t send_depth_max = kQueueDepthMax,
                                   uint32_t receive_depth_max = kQueueDepthMax);
absl::Status CheckDatagramOptions(const DatagramOptions& options, uint32_t depth_max = kQueueDepthMax);

/// Checks a batch for a datagram queue pair with `outstanding` of `send_depth` sends in use; valid handles
/// are 1 to `targets`. INVALID_ARGUMENT: too long, or unknown target. RESOURCE_EXHAUSTED: the send queue
/// lacks room.
absl::Status CheckDatagrams(std::span<const DatagramRequest> batch, uint32_t bytes_max, size_t targets,
                            uint64_t outstanding, uint32_t send_depth);

constexpr bool IsAtomic(Opcode opcode) {
  return opcode == Opcode::kCompareAndSwap || opcode == Opcode::kFetchAdd;
}

/// True if the peer's process takes no part in the operation.
constexpr bool IsOneSided(Opcode opcode) {
  return opcode <= Opcode::kFetchAdd && opcode != Opcode::kWriteWithImmediate;
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
