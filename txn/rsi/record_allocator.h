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

/// Allocates blocks for new rows of one table, from a chunk that this client owns: without a message, and
/// mostly without a verb. One thread.
class RecordAllocator {
 public:
  RecordAllocator(ExtentSpace& space, const RecordLayout& layout, uint32_t client)
      : space_(space), layout_(layout), client_(client) {}

  /// Returns the number of a free block that no other client gets. Its version words are 0, except perhaps
  /// slot 0's. RESOURCE_EXHAUSTED: the memory servers are full.
  absl::StatusOr<uint64_t> Allocate(storage::VerbBatch& batch);
  /// The block that Allocate will probably return after `ahead` other calls.
  std::optional<uint64_t> Expected(size_t ahead) const {
    if (ahead >= free_.size()) return std::nullopt;
    return free_[free_.size() - 1 - ahead];
  }
  /// Takes back a block from Allocate, or of a deleted row: its header and its version words are 0.
  absl::Status AddFree(storage::VerbBatch& batch, uint64_t record);
  /// Notes that a block's row was deleted, so that the block can become free later.
  absl::Status AddDeleted(storage::VerbBatch& batch, uint64_t record);
  /// Handles the chunk's blocks that are not free: adds those that it frees to `freed`, and returns how many
  /// of the others are deleted.
  using Reclaim = std::function<absl::StatusOr<uint32_t>(std::span<const uint64_t> records,
                                                         std::vector<uint64_t>& freed)>;
  /// Runs before the table grows: recovers clients that are gone, which give back their chunks. Returns their
  /// number.
  using Recover = std::function<absl::StatusOr<int>()>;
  void SetHooks(Reclaim reclaim, Recover recover) {
    reclaim_ = std::move(reclaim);
    recover_ = std::move(recover);
  }
  /// Gives back used-up chunks after a transaction.
  absl::Status AddReleaseSpent(storage::VerbBatch& batch);
  /// Gives back all chunks before the session ends.
  absl::Status Release(storage::VerbBatch& batch);
  /// Gives back the chunks of a dead client in all extents.
  absl::Status GiveBackOf(storage::VerbBatch& batch, uint32_t client);
  /// The words of an extent's chunks, in scratch memory.
  absl::StatusOr<std::span<const uint64_t>> ReadWords(storage::VerbBatch& batch, size_t extent);

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  absl::Status ClaimChunk(storage::VerbBatch& batch);
  absl::StatusOr<bool> ClaimFromAny(storage::VerbBatch& batch);
  absl::StatusOr<bool> ClaimFrom(storage::VerbBatch& batch, size_t extent, bool had);
  absl::Status FindFree(storage::VerbBatch& batch);
  void Spend();
  absl::Status AddToChunk(storage::VerbBatch& batch, uint64_t record);

  ExtentSpace& space_;
  const RecordLayout layout_;
  const uint32_t client_;
  uint64_t chunk_ = kNone;
  std::vector<uint64_t> free_;  // in the chunk, in descending order
  uint32_t deleted_ = 0;        // blocks of the chunk that the next look may free
  struct Spent {
    uint64_t chunk;
    uint64_t freed;
  };
  std::vector<Spent> spent_;
  // Looks left in this ClaimChunk.
  int looks_left_ = 0;
  uint32_t freed_min_ = kFreedMin;
  size_t extent_ = kNone;  // the next extent to look at,
  uint64_t next_ = kNone;  // and its next chunk
  Reclaim reclaim_;
  Recover recover_;
};

}  // namespace nam::txn
