#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/record_block.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/hash_index.h"
#include "txn/record_allocator.h"
#include "txn/record_layout.h"
#include "txn/table_index.h"
#include "txn/tables.h"

namespace nam::txn {

/// Blocks up to this size are READ as a whole; of larger ones first the words, then the slot that is wanted.
inline constexpr uint32_t kWholeBlockBytesMax = 4'096;

/// A block on its way here: READ between two READs of its header. Where it can be looked at in place the same
/// is done by copies, of the words and of the slot that is wanted.
struct BlockRead {
  uint64_t record = 0;
  const std::byte* in_place = nullptr;
  static constexpr uint32_t kNoSlot = ~uint32_t{0};
  uint32_t slot = kNoSlot;     // in place: what TakeSlot is to copy
  uint64_t* before = nullptr;  // scratch, as all here
  std::byte* block = nullptr;
  uint64_t* after = nullptr;

  storage::RecordHeader header() const { return storage::RecordHeader(*after); }
  std::span<const uint64_t> version_words(const storage::RecordGeometry& geometry) const {
    return {reinterpret_cast<const uint64_t*>(block) + 1, geometry.slots};
  }
};

/// One session's way to a record table: where its blocks are, which are free, and which has a key.
class RecordTable {
 public:
  static absl::StatusOr<std::unique_ptr<RecordTable>> Open(const TableDescription& description,
                                                           storage::Channel& channel,
                                                           storage::VerbBatch& batch, uint32_t client,
                                                           TableIndex::ConfirmGone confirm_gone);
  /// As the catalog says now: those that are new are opened, those that are gone are closed.
  absl::Status SetIndexes(std::span<const IndexDescription> indexes);

  /// But for its indexes, which are indexes().
  const TableDescription& description() const { return description_; }
  const RecordLayout& layout() const { return layout_; }
  const storage::RecordGeometry& geometry() const { return layout_.geometry; }
  /// Otherwise only its words have come, and AddReadSlot brings a slot.
  bool IsWhole(const BlockRead& read) const { return read.in_place == nullptr && IsSmall(); }
  ExtentSpace& space() { return space_; }
  HashIndex& index() { return index_; }
  std::span<const std::unique_ptr<TableIndex>> indexes() const { return indexes_; }
  RecordAllocator& allocator() { return allocator_; }

  absl::StatusOr<storage::Channel::Target> Block(uint64_t record) {
    return space_.Resolve(layout_.BlockPosition(record));
  }
  /// The record went with its memory server, as far as FindLost has found.
  bool Lost(uint64_t record) const { return space_.Lost(layout_.BlockPosition(record)); }
  /// Learns which extents are lost, of the rows and of all indexes. NOT_FOUND: the table was dropped.
  absl::Status FindLost();
  /// UNAVAILABLE if any is.
  absl::Status CheckWhole();
  ///     AddRead ─Execute─▶ Take ─▶ whole, or AddReadSlot ─Execute─▶ TakeSlot
  absl::Status AddRead(BlockRead& read);
  /// Into the same scratch memory.
  absl::Status AddReadAgain(BlockRead& read);
  /// Of all blocks of a round, behind their AddReads; where memory is in place. What would be READ as a whole
  /// is fetched so: which slot is wanted is known only when the words are there, and of few slots the others
  /// are soon written to.
  void FetchWords(const BlockRead& read) const {
    storage::VerbBatch::Fetch<false>(read.in_place,
                                     IsSmall() ? geometry().block_bytes() : geometry().words_bytes());
  }
  void Take(BlockRead& read) const;
  /// The slot of a block of which only the words have come, and the header once more.
  absl::Status AddReadSlot(BlockRead& read, uint32_t slot);
  void FetchSlot(const BlockRead& read) const {
    if (IsSmall() || read.slot == BlockRead::kNoSlot) return;
    storage::VerbBatch::Fetch<false>(read.in_place + geometry().slot_offset(read.slot), geometry().row_bytes);
  }
  void TakeSlot(BlockRead& read) const;
  absl::Status AddLock(uint64_t record, storage::RecordHeader from, storage::RecordHeader to, uint64_t* old);
  uint64_t HashOf(std::span<const std::byte> key) const;

 private:
  bool IsSmall() const { return geometry().block_bytes() <= kWholeBlockBytesMax; }
  RecordTable(const TableDescription& description, storage::VerbBatch& batch, ExtentSpace records,
              ExtentSpace index, uint32_t client, TableIndex::ConfirmGone confirm_gone);

  const TableDescription description_;
  const RecordLayout layout_;
  storage::VerbBatch& batch_;
  ExtentSpace space_;
  RecordAllocator allocator_;
  HashIndex index_;
  const uint32_t client_;
  const TableIndex::ConfirmGone confirm_gone_;
  std::vector<std::unique_ptr<TableIndex>> indexes_;
};

}  // namespace nam::txn
