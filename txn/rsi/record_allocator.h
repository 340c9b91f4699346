#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
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

  /// The number of a block that is free and that nobody else is given. All its version words are 0, but for
  /// slot 0's, perhaps. RESOURCE_EXHAUSTED: the memory servers are full.
  absl::StatusOr<uint64_t> Allocate(storage::VerbBatch& batch);
  /// What Allocate will probably give after `ahead` others.
  std::optional<uint64_t> Expected(size_t ahead) const {
    if (ahead >= free_.size()) return std::nullopt;
    return free_[free_.size() - 1 - ahead];
  }
  /// A block that Allocate gave is free again, or that of a deleted row: its header is 0, and so are its
  /// version words.
  absl::Status AddFree(storage::VerbBatch& batch, uint64_t record);
  /// The row of a block was deleted: some day the block can be free.
  absl::Status AddDeleted(storage::VerbBatch& batch, uint64_t record);
  /// What a client does with blocks of its chunk that are not free: those that it makes free come to `freed`.
  /// The result is how many of the others are deleted.
  using Reclaim = std::function<absl::StatusOr<uint32_t>(std::span<const uint64_t> records,
                                                         std::vector<uint64_t>& freed)>;
  /// Before the table grows: has clients that are gone give back what they had; how many there were.
  using Recover = std::function<absl::StatusOr<int>()>;
  void SetHooks(Reclaim reclaim, Recover recover) {
    reclaim_ = std::move(reclaim);
    recover_ = std::move(recover);
  }
  /// After a transaction: chunks that it has used up go back.
  absl::Status AddReleaseSpent(storage::VerbBatch& batch);
  /// Gives all chunks back; before the session ends.
  absl::Status Release(storage::VerbBatch& batch);
  /// The same for a client that is gone, and for all extents.
  absl::Status GiveBackOf(storage::VerbBatch& batch, uint32_t client);
  /// The words of an extent's chunks, in scratch memory.
  absl::StatusOr<std::span<const uint64_t>> ReadWords(storage::VerbBatch& batch, size_t extent);

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  absl::Status TakeChunk(storage::VerbBatch& batch);
  absl::StatusOr<bool> TakeFromAny(storage::VerbBatch& batch);
  absl::StatusOr<bool> TakeFrom(storage::VerbBatch& batch, size_t extent, bool had);
  absl::Status FindFree(storage::VerbBatch& batch);
  void Spend();
  absl::Status AddToChunk(storage::VerbBatch& batch, uint64_t record);

  ExtentSpace& space_;
  const RecordLayout layout_;
  const uint32_t client_;
  uint64_t chunk_ = kNone;
  std::vector<uint64_t> free_;  // of the chunk, in falling order
  uint32_t deleted_ = 0;        // blocks of the chunk that may be free when somebody looks again
  struct Spent {
    uint64_t chunk;
    uint64_t freed;
  };
  std::vector<Spent> spent_;
  // Of this TakeChunk.
  int looks_left_ = 0;
  uint32_t freed_min_ = kFreedMin;
  size_t extent_ = kNone;  // where to look next,
  uint64_t next_ = kNone;  // and from which of its chunks on
  Reclaim reclaim_;
  Recover recover_;
};

}  // namespace nam::txn
