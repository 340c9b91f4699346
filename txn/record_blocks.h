#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/grants.h"
#include "storage/record_block.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/record_layout.h"

namespace nam::txn {

/// Blocks up to this size are READ as a whole. Of larger ones, readers take the words of all slots first,
/// then the slot that they want.
inline constexpr uint32_t kWholeBlockBytesMax = 4'096;
inline constexpr uint32_t kFewLinesBytesMax = 512;

/// A block in flight: READ between two READs of its header. Memory in place is copied the same way: the
/// words, then the wanted slot. If the grant is over after a copy, the block counts as moved.
struct BlockRead {
  uint64_t record = 0;
  const std::byte* in_place = nullptr;
  const fabric::Grant* grant = nullptr;  // of memory in place
  static constexpr uint32_t kNoSlot = ~uint32_t{0};
  uint32_t slot = kNoSlot;     // whose version has arrived, if only one has
  uint64_t* before = nullptr;  // scratch, as all here
  std::byte* block = nullptr;
  uint64_t* after = nullptr;
  storage::LockHolder holder;  // as asked before the READ

  storage::RecordHeader header() const { return storage::RecordHeader(*after); }
  storage::VersionWords version_words(const storage::RecordGeometry& geometry) const {
    return {block, geometry};
  }
};

/// Reads the blocks of a table's records. Changes nothing and needs no client slot. One thread, whose batch
/// it shares; the space and the batch outlive it.
///
///     AddRead ─Execute─▶ CopyWords ─▶ whole, or AddReadSlot ─Execute─▶ CopySlot
class RecordBlocks {
 public:
  /// The scratch memory of a block: itself, its two headers, and rounding.
  static uint64_t ScratchOf(const storage::RecordGeometry& geometry) { return geometry.block_bytes() + 192; }

  RecordBlocks(ExtentSpace& space, const RecordLayout& layout, storage::VerbBatch& batch, std::string table)
      : space_(space), layout_(layout), batch_(batch), table_(std::move(table)) {}

  ExtentSpace& space() const { return space_; }
  const RecordLayout& layout() const { return layout_; }
  const storage::RecordGeometry& geometry() const { return layout_.geometry; }
  storage::VerbBatch& batch() const { return batch_; }
  const std::string& table() const { return table_; }  // its name

  absl::StatusOr<storage::Channel::Target> Block(uint64_t record) const {
    return space_.Resolve(layout_.BlockPosition(record));
  }
  /// False: only its words have arrived, and AddReadSlot brings a slot.
  bool IsWhole(const BlockRead& read) const { return read.in_place == nullptr && IsSmall(); }
  absl::Status AddRead(BlockRead& read) const;
  /// Repeats the READ into the same scratch memory.
  absl::Status AddReadAgain(BlockRead& read) const;
  /// Prefetches what CopyWords looks at, where memory is in place: for all blocks of a round, after their
  /// AddReads, so that the processor translates their addresses in parallel. Blocks of many lines get only
  /// their words: FetchSlot prefetches the wanted version once the words tell it.
  void FetchWords(const std::byte* in_place) const {
    if (in_place == nullptr) return;
    if (IsFewLines()) {
      storage::VerbBatch::Fetch<false>(in_place, geometry().block_bytes());
    } else {
      for (uint32_t slot = 0; slot < geometry().slots; ++slot)
        storage::VerbBatch::Fetch<false>(in_place + geometry().word_offset(slot), 8);
    }
  }
  void CopyWords(BlockRead& read) const;
  /// READs a slot of a block whose words alone have arrived: the version word again, with the row, so that
  /// both are judged together; and the header once more.
  absl::Status AddReadSlot(BlockRead& read, uint32_t slot) const;
  void FetchSlot(const std::byte* in_place, uint32_t slot) const {
    if (in_place == nullptr || slot == BlockRead::kNoSlot || IsFewLines()) return;
    storage::VerbBatch::Fetch<false>(in_place + geometry().word_offset(slot), geometry().version_bytes());
  }
  void CopySlot(BlockRead& read) const;

 private:
  static void JudgeCopy(BlockRead& read);
  bool IsSmall() const { return layout_.block_bytes <= kWholeBlockBytesMax; }
  bool IsFewLines() const { return layout_.block_bytes <= kFewLinesBytesMax; }

  ExtentSpace& space_;
  const RecordLayout layout_;
  storage::VerbBatch& batch_;
  const std::string table_;
};

}  // namespace nam::txn
