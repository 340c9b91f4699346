#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/channel.h"

namespace nam::storage {

/// Writes blocks to memory servers with as many WRITEs in flight as the channel's buffer has room for.
/// Has the channel to itself from the first Acquire to Flush; one thread.
class BlockSink {
 public:
  /// `use` is of the allocation that the blocks belong to.
  BlockSink(Channel& channel, fabric::Grant::Use use, uint32_t block_bytes_max);
  ~BlockSink();

  /// A zeroed-by-nobody local block to fill; valid until the Write that follows.
  absl::StatusOr<std::byte*> Acquire();
  /// Sends `bytes` of the block acquired last.
  absl::Status Write(RemotePtr<void> to, uint32_t bytes);
  /// Returns when everything written is in place.
  absl::Status Flush();

 private:
  absl::Status TakeCompletions();
  Channel& channel_;
  fabric::Grant::Use use_;
  const uint32_t slot_bytes_;
  std::vector<uint32_t> free_;
  uint32_t current_ = 0;
  size_t in_flight_ = 0;
};

}  // namespace nam::storage
