#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"
#include "txn/index/hash_index.h"
#include "txn/index/table_index.h"
#include "txn/record_blocks.h"
#include "txn/record_layout.h"
#include "txn/rsi/record_allocator.h"
#include "txn/tables.h"
#include "txn/timestamps/client_slot.h"

namespace nam::txn {

/// One session's access to a record table: its blocks, its allocator and its indexes.
class RecordTable {
 public:
  static absl::StatusOr<std::unique_ptr<RecordTable>> Open(const TableDescription& description,
                                                           storage::Channel& channel,
                                                           storage::VerbBatch& batch, const ClientSlot& slot,
                                                           TableIndex::ConfirmGone confirm_gone);
  /// Follows the catalog: opens new indexes and closes dropped ones.
  absl::Status SetIndexes(std::span<const IndexDescription> indexes);
  /// Opens one for the caller alone. NOT_FOUND: it was dropped.
  absl::StatusOr<std::unique_ptr<TableIndex>> OpenIndex(const IndexDescription& index) {
    return TableIndex::Open(index, batch_.channel(), batch_, index_owner_, confirm_gone_);
  }

  /// For its indexes: called during operations of many keys (HashIndex::SetGoOn).
  void SetGoOn(std::function<absl::Status()> go_on);

  /// Follows the catalog.
  void SetReferences(std::vector<ReferenceDescription> references) { references_ = std::move(references); }

  /// Follows the catalog.
  void SetClosed(bool closed) { closed_ = closed; }
  /// TableDescription::closed.
  bool closed() const { return closed_; }

  /// Use indexes() and references() instead of its own, which are not updated.
  const TableDescription& description() const { return description_; }
  const RecordLayout& layout() const { return layout_; }
  const storage::RecordGeometry& geometry() const { return layout_.geometry; }
  /// True if a new row WRITEs its whole block, because the block is hardly larger than the row. Adjacent new
  /// rows then need one WRITE.
  bool WritesWholeBlocks() const {
    return geometry().block_bytes() - geometry().row_offset(0) - geometry().row_bytes <= kLittleBytes;
  }
  /// False: only its words have arrived, and AddReadSlot brings a slot.
  bool IsWhole(const BlockRead& read) const { return blocks_.IsWhole(read); }
  ExtentSpace& space() { return space_; }
  const RecordBlocks& blocks() const { return blocks_; }
  HashIndex& index() { return index_; }
  std::span<const std::unique_ptr<TableIndex>> indexes() const { return indexes_; }
  /// The memory that a commit takes for the index entries of one row with new keys.
  uint32_t change_bytes() const { return change_bytes_; }
  /// The foreign keys that reference this table.
  std::span<const ReferenceDescription> references() const { return references_; }
  RecordAllocator& allocator() { return allocator_; }

  absl::StatusOr<storage::Channel::Target> Block(uint64_t record) { return blocks_.Block(record); }
  /// The record was lost with its memory server, as of the last FindLost.
  bool Lost(uint64_t record) const { return space_.Lost(layout_.BlockPosition(record)); }
  /// Learns which extents of the rows and of all indexes are lost. NOT_FOUND: the table was dropped.
  absl::Status FindLost();
  /// UNAVAILABLE if an extent is lost.
  absl::Status CheckWhole();
  /// As blocks() does.
  absl::Status AddRead(BlockRead& read) { return blocks_.AddRead(read); }
  absl::Status AddReadAgain(BlockRead& read) { return blocks_.AddReadAgain(read); }
  void FetchWords(const std::byte* in_place) const { blocks_.FetchWords(in_place); }
  void CopyWords(BlockRead& read) const { blocks_.CopyWords(read); }
  absl::Status AddReadSlot(BlockRead& read, uint32_t slot) { return blocks_.AddReadSlot(read, slot); }
  void FetchSlot(const std::byte* in_place, uint32_t slot) const { blocks_.FetchSlot(in_place, slot); }
  void CopySlot(BlockRead& read) const { blocks_.CopySlot(read); }
  absl::Status AddLock(uint64_t record, storage::RecordHeader from, storage::RecordHeader to, uint64_t* old);
  /// Zeroes version words: those of all slots before the block becomes free, or one before its lock goes.
  /// `empty`: scratch memory with such a word. `newest`: the slot with the newest version, zeroed behind the
  /// others. A block without it, but with older versions, looks like one that moves: if the client died in
  /// between, readers would READ it again for ever.
  absl::Status AddEmptySlots(uint64_t record, uint32_t newest, const storage::VersionWord* empty);
  absl::Status AddEmptySlot(uint64_t record, uint32_t slot, const storage::VersionWord* empty);
  uint64_t HashOf(std::span<const std::byte> key) const;

 private:
  static constexpr uint32_t kLittleBytes = 256;

  RecordTable(const TableDescription& description, storage::VerbBatch& batch, ExtentSpace records,
              ExtentSpace index, const ClientSlot& slot, TableIndex::ConfirmGone confirm_gone);

  const TableDescription description_;
  const RecordLayout layout_;
  storage::VerbBatch& batch_;
  ExtentSpace space_;
  const RecordBlocks blocks_;
  RecordAllocator allocator_;
  HashIndex index_;
  const uint32_t index_owner_;  // names the client in locks of nodes
  const TableIndex::ConfirmGone confirm_gone_;
  std::vector<std::unique_ptr<TableIndex>> indexes_;
  uint32_t change_bytes_ = 0;
  std::function<absl::Status()> go_on_;
  std::vector<ReferenceDescription> references_;
  bool closed_ = false;
};

}  // namespace nam::txn
