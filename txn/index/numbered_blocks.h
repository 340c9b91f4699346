#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"

namespace nam::txn {

/// Numbered blocks of one size in an extent space. Zeroed extents are valid, so nothing is initialized:
///
///     each extent   64 bytes │ block │ block │ … │ a rest
///                   extent 0: word 0 counts the blocks that were taken, beyond those that always are there
///
/// Numbers of blocks for which a short extent has no room (txn/extent_space.h) are skipped:
///
///     extent 0, short       0 … 4 │ 5 … 61 do not exist        the client that takes 5 moves the count to 62
///
/// A block that a client has taken but not used is lost if it dies. One thread.
class NumberedBlocks {
 public:
  /// Blocks 0 … fixed - 1 always exist; block `fixed` is the first to be taken.
  NumberedBlocks(storage::VerbBatch& batch, ExtentSpace space, uint64_t block_bytes, uint64_t fixed);

  static constexpr uint64_t kExtentHeaderBytes = 64;

  /// The position of a block whose number has 32 bits. Every key needs it, so it divides by multiplying.
  uint64_t PositionOf(uint32_t number) const {
    const auto extent = static_cast<uint64_t>((inverse_ * number) >> 64);
    return extent * space_.extent_bytes() + kExtentHeaderBytes +
           (number - extent * per_extent_) * block_bytes_;
  }
  absl::StatusOr<storage::Channel::Target> Resolve(uint64_t position) { return space_.Resolve(position); }
  ExtentSpace& space() { return space_; }

  /// Adds extents until the fixed blocks exist.
  absl::Status Create();
  /// Takes `count` consecutive blocks for this client alone; returns the first number. One object always
  /// takes the same count. One round trip, or none for blocks that were given back. Adds memory if needed.
  /// RESOURCE_EXHAUSTED: no memory server has room.
  absl::StatusOr<uint64_t> Allocate(uint64_t count);
  /// Returns blocks from Allocate that no other client has seen to this client's next Allocate.
  void GiveBack(uint64_t first) { spare_.push_back(first); }

 private:
  absl::Status Provide(uint64_t number);
  absl::StatusOr<uint64_t> Take(uint64_t count);
  /// Whether the extent of the number, which is known, has room for its block.
  bool Exists(uint64_t number) const {
    const uint64_t end = kExtentHeaderBytes + (number % per_extent_ + 1) * block_bytes_;
    return end <= space_.BytesOf(number / per_extent_);
  }
  absl::Status SkipFrom(uint64_t number, uint64_t count);

  storage::VerbBatch& batch_;
  ExtentSpace space_;
  uint64_t block_bytes_;
  uint64_t fixed_;
  uint64_t per_extent_;
  unsigned __int128 inverse_;  // 2^64 / per_extent_, rounded up: exact for numbers and divisors of 32 bits
  std::vector<uint64_t> spare_;
};

}  // namespace nam::txn
