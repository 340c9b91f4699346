#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/channel.h"

namespace nam::storage {

/// Writes blocks to memory servers, with as many WRITEs in flight as fit the channel's buffer. Has exclusive
/// use of the channel from the first Acquire to Flush. One thread.
class BlockSink {
 public:
  /// `use` belongs to the blocks' allocation.
  BlockSink(Channel& channel, fabric::Grant::Use use, uint32_t block_bytes_max);
  ~BlockSink();

  /// A local block to fill, not zeroed; valid until the next Write.
  absl::StatusOr<std::byte*> Acquire();
  /// Sends `bytes` of the last acquired block.
  absl::Status Write(RemotePtr<void> to, uint32_t bytes);
  /// Sends a block that is longer than block_bytes_max, from the caller's memory, after all others. It is in
  /// place when this returns. PERMISSION_DENIED if the grant is over.
  absl::Status WriteLong(RemotePtr<void> to, std::span<const std::byte> block,
                         const std::shared_ptr<fabric::Grant>& grant);
  uint32_t block_bytes_max() const { return slot_bytes_; }
  /// Returns when all blocks written are in place.
  absl::Status Flush();

 private:
  absl::Status PollCompletions();
  Channel& channel_;
  fabric::Grant::Use use_;
  const uint32_t slot_bytes_;
  std::vector<uint32_t> free_;
  uint32_t current_ = 0;
  size_t in_flight_ = 0;
};

}  // namespace nam::storage
