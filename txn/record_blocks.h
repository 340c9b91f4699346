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

/// Blocks up to this size are READ as a whole; of larger ones first the words of all slots, then the slot
/// that is wanted.
inline constexpr uint32_t kWholeBlockBytesMax = 4'096;
inline constexpr uint32_t kFewLinesBytesMax = 512;

/// A block on its way here: READ between two READs of its header. Where it can be looked at in place the same
/// is done by copies, of the words and of the slot that is wanted; of memory whose grant is over behind a
/// copy it is a block that has moved.
struct BlockRead {
  uint64_t record = 0;
  const std::byte* in_place = nullptr;
  const fabric::Grant* grant = nullptr;  // of the memory in place
  static constexpr uint32_t kNoSlot = ~uint32_t{0};
  uint32_t slot = kNoSlot;     // whose version has come, if not all of them have
  uint64_t* before = nullptr;  // scratch, as all here
  std::byte* block = nullptr;
  uint64_t* after = nullptr;
  storage::LockHolder holder;  // as asked before the block was READ

  storage::RecordHeader header() const { return storage::RecordHeader(*after); }
  storage::VersionWords version_words(const storage::RecordGeometry& geometry) const {
    return {block, geometry};
  }
};

/// The blocks of a table's records, for reading. Changes nothing and needs no client slot. One thread, whose
/// batch it shares; the space and the batch outlive it.
///
///     AddRead ─Execute─▶ Take ─▶ whole, or AddReadSlot ─Execute─▶ TakeSlot
class RecordBlocks {
 public:
  /// Scratch memory that a block takes: itself, its two headers, and what rounding adds.
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
  /// Otherwise only its words have come, and AddReadSlot brings a slot.
  bool IsWhole(const BlockRead& read) const { return read.in_place == nullptr && IsSmall(); }
  absl::Status AddRead(BlockRead& read) const;
  /// Into the same scratch memory.
  absl::Status AddReadAgain(BlockRead& read) const;
  /// Asks for what Take looks at, where memory is in place: of all blocks of a round in a row, behind their
  /// AddReads, so that the processor translates their addresses at once. Of more than a few lines only those
  /// with words: FetchSlot asks for the version that is wanted, once the words say which it is.
  void FetchWords(const std::byte* in_place) const {
    if (in_place == nullptr) return;
    if (IsFewLines()) {
      storage::VerbBatch::Fetch<false>(in_place, geometry().block_bytes());
    } else {
      for (uint32_t slot = 0; slot < geometry().slots; ++slot)
        storage::VerbBatch::Fetch<false>(in_place + geometry().word_offset(slot), 8);
    }
  }
  void Take(BlockRead& read) const;
  /// The slot of a block of which only the words have come: its version word again, with the row, so that the
  /// two are judged together; and the header once more.
  absl::Status AddReadSlot(BlockRead& read, uint32_t slot) const;
  void FetchSlot(const std::byte* in_place, uint32_t slot) const {
    if (in_place == nullptr || slot == BlockRead::kNoSlot || IsFewLines()) return;
    storage::VerbBatch::Fetch<false>(in_place + geometry().word_offset(slot), geometry().version_bytes());
  }
  void TakeSlot(BlockRead& read) const;

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
