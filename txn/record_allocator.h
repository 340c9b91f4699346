#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/record_layout.h"

namespace nam::txn {

/// Blocks for new rows of one table, out of a chunk that this client owns: no message, and mostly no verb.
/// One thread.
class RecordAllocator {
 public:
  RecordAllocator(ExtentSpace& space, const RecordLayout& layout, uint32_t client)
      : space_(space), layout_(layout), client_(client) {}

  /// The number of a block that is free and that nobody else is given. RESOURCE_EXHAUSTED: the memory
  /// servers are full.
  absl::StatusOr<uint64_t> Allocate(storage::VerbBatch& batch);
  /// A block that Allocate gave is free again, or that of a deleted row: its header is 0.
  absl::Status AddFree(storage::VerbBatch& batch, uint64_t record);
  /// Gives the chunk back; before the session ends.
  absl::Status Release(storage::VerbBatch& batch);
  /// The same for a client that is gone, and for all extents.
  absl::Status GiveBackOf(storage::VerbBatch& batch, uint32_t client);
  /// The words of an extent's chunks, in scratch memory.
  absl::StatusOr<std::span<const uint64_t>> ReadWords(storage::VerbBatch& batch, size_t extent);

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  absl::Status TakeChunk(storage::VerbBatch& batch);
  absl::StatusOr<bool> TakeFrom(storage::VerbBatch& batch, size_t extent, bool had);
  absl::Status FindFree(storage::VerbBatch& batch);

  ExtentSpace& space_;
  const RecordLayout layout_;
  const uint32_t client_;
  uint64_t chunk_ = kNone;
  std::vector<uint64_t> free_;  // of the chunk, in falling order
  size_t extent_ = 0;           // where to look next,
  uint64_t next_ = kNone;       // and from which of its chunks on
};

}  // namespace nam::txn
