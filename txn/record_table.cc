#include "txn/record_table.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace nam::txn {

absl::StatusOr<std::unique_ptr<RecordTable>> RecordTable::Open(const TableDescription& description,
                                                               storage::Channel& channel,
                                                               storage::VerbBatch& batch, uint32_t client,
                                                               TableIndex::ConfirmGone confirm_gone) {
  NAM_ASSIGN_OR_RETURN(ExtentSpace records,
                       ExtentSpace::Open(channel, description.records, description.extent_bytes));
  NAM_ASSIGN_OR_RETURN(ExtentSpace index,
                       ExtentSpace::Open(channel, description.index, description.index_extent_bytes));
  std::unique_ptr<RecordTable> table(new RecordTable(description, batch, std::move(records), std::move(index),
                                                     client, std::move(confirm_gone)));
  NAM_RETURN_IF_ERROR(table->SetIndexes(description.indexes));
  return table;
}

RecordTable::RecordTable(const TableDescription& description, storage::VerbBatch& batch, ExtentSpace records,
                         ExtentSpace index, uint32_t client, TableIndex::ConfirmGone confirm_gone)
    : description_(description),
      layout_(RecordLayout::Of(storage::RecordGeometry::Of(description.row_bytes, description.versions),
                               description.extent_bytes)),
      batch_(batch),
      space_(std::move(records)),
      allocator_(space_, layout_, client),
      index_(batch, std::move(index), description.index_root_bits),
      client_(client),
      confirm_gone_(std::move(confirm_gone)) {}

absl::Status RecordTable::SetIndexes(std::span<const IndexDescription> indexes) {
  std::vector<std::unique_ptr<TableIndex>> now(indexes.size());
  const auto known = [&](const IndexDescription& index) {
    return std::find_if(indexes_.begin(), indexes_.end(), [&](const std::unique_ptr<TableIndex>& open) {
      return open != nullptr && open->description().allocation == index.allocation;
    });
  };
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (known(indexes[i]) != indexes_.end()) continue;
    NAM_ASSIGN_OR_RETURN(now[i],
                         TableIndex::Open(indexes[i], batch_.channel(), batch_, client_, confirm_gone_));
  }
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (now[i] == nullptr) now[i] = std::move(*known(indexes[i]));
  }
  indexes_ = std::move(now);
  return absl::OkStatus();
}

absl::Status RecordTable::FindLost() {
  NAM_RETURN_IF_ERROR(space_.FindNew());
  NAM_RETURN_IF_ERROR(index_.space().FindNew());
  for (const std::unique_ptr<TableIndex>& index : indexes_) {
    const absl::Status found = index->entries().space().FindNew();
    if (!found.ok() && !absl::IsNotFound(found)) return found;  // that index was dropped
  }
  return absl::OkStatus();
}

absl::Status RecordTable::CheckWhole() {
  NAM_RETURN_IF_ERROR(space_.CheckWhole());
  NAM_RETURN_IF_ERROR(index_.space().CheckWhole());
  for (const std::unique_ptr<TableIndex>& index : indexes_)
    NAM_RETURN_IF_ERROR(index->entries().space().CheckWhole());
  return absl::OkStatus();
}

absl::Status RecordTable::AddRead(BlockRead& read) {
  read.before = reinterpret_cast<uint64_t*>(batch_.Scratch(8));
  read.block = batch_.Scratch(geometry().block_bytes());
  read.after = reinterpret_cast<uint64_t*>(batch_.Scratch(8));
  return AddReadAgain(read);
}

absl::Status RecordTable::AddReadAgain(BlockRead& read) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, Block(read.record));
  read.slot = BlockRead::kNoSlot;
  read.in_place = batch_.InPlace(block, geometry().block_bytes());
  if (read.in_place != nullptr) return absl::OkStatus();
  const uint32_t bytes = IsWhole(read) ? geometry().block_bytes() : geometry().words_bytes();
  batch_.Read(block, reinterpret_cast<std::byte*>(read.before), 8);
  batch_.Read(block, read.block, bytes);
  batch_.Read(block, reinterpret_cast<std::byte*>(read.after), 8);
  return absl::OkStatus();
}

void RecordTable::Take(BlockRead& read) const {
  if (read.in_place == nullptr) return;
  storage::VerbBatch::Copy(read.in_place, read.before, 8);
  storage::VerbBatch::Copy(read.in_place, read.block, geometry().words_bytes());
  storage::VerbBatch::Copy(read.in_place, read.after, 8);
}

void RecordTable::TakeSlot(BlockRead& read) const {
  if (read.slot == BlockRead::kNoSlot) return;
  const uint32_t offset = geometry().slot_offset(read.slot);
  storage::VerbBatch::Copy(read.in_place + offset, read.block + offset, geometry().row_bytes);
  storage::VerbBatch::Copy(read.in_place, read.after, 8);
}

absl::Status RecordTable::AddReadSlot(BlockRead& read, uint32_t slot) {
  if (read.in_place != nullptr) {
    read.slot = slot;
    return absl::OkStatus();
  }
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, Block(read.record));
  storage::Channel::Target at = block;
  at.address.offset += geometry().slot_offset(slot);
  batch_.Read(at, read.block + geometry().slot_offset(slot), geometry().row_bytes);
  batch_.Read(block, reinterpret_cast<std::byte*>(read.after), 8);
  return absl::OkStatus();
}

absl::Status RecordTable::AddLock(uint64_t record, storage::RecordHeader from, storage::RecordHeader to,
                                  uint64_t* old) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, Block(record));
  batch_.CompareAndSwap(block, from.word(), to.word(), old);
  return absl::OkStatus();
}

uint64_t RecordTable::HashOf(std::span<const std::byte> key) const {
  return HashIndex::HashOf(key);
}

}  // namespace nam::txn
