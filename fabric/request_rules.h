#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "fabric/fabric.h"

/// What no provider takes, said once for all of them.
namespace nam::fabric {

inline constexpr uint32_t kQueueDepthMax = 1u << 16;
inline constexpr uint32_t kInlineBytesMax = 4096;

/// INVALID_ARGUMENT names what is out of range. Receives may have another bound than sends.
absl::Status CheckQueuePairOptions(const QueuePairOptions& options, uint32_t send_depth_max = kQueueDepthMax,
                                   uint32_t receive_depth_max = kQueueDepthMax);
absl::Status CheckDatagramOptions(const DatagramOptions& options, uint32_t depth_max = kQueueDepthMax);

/// A batch for a datagram queue pair that takes `bytes_max` and has made `targets` targets, 1 and up, with
/// `outstanding` sends of `send_depth`. INVALID_ARGUMENT: too long, or to no such target. RESOURCE_EXHAUSTED:
/// the send queue lacks room.
absl::Status CheckDatagrams(std::span<const DatagramRequest> batch, uint32_t bytes_max, size_t targets,
                            uint64_t outstanding, uint32_t send_depth);

constexpr bool IsAtomic(Opcode opcode) {
  return opcode == Opcode::kCompareAndSwap || opcode == Opcode::kFetchAdd;
}

/// The peer's process takes no part in it.
constexpr bool IsOneSided(Opcode opcode) {
  return opcode <= Opcode::kFetchAdd && opcode != Opcode::kWriteWithImmediate;
}

/// INVALID_ARGUMENT: of the wrong size, too long, or inlined though it must not be.
absl::Status CheckWorkRequest(const WorkRequest& request, uint32_t inline_bytes_max);
/// Nearly every request: one that CheckWorkRequest need not be asked about.
inline bool IsPlain(const WorkRequest& request) {
  const uint32_t bytes = request.local.bytes;
  return request.opcode < Opcode::kSend && !request.inlined &&
         (IsAtomic(request.opcode) ? bytes == sizeof(uint64_t) : bytes <= kMaxMessageBytes);
}

}  // namespace nam::fabric
