#include "txn/rsi/record_table.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace nam::txn {

absl::StatusOr<std::unique_ptr<RecordTable>> RecordTable::Open(const TableDescription& description,
                                                               storage::Channel& channel,
                                                               storage::VerbBatch& batch,
                                                               const ClientSlot& slot,
                                                               TableIndex::ConfirmGone confirm_gone) {
  NAM_ASSIGN_OR_RETURN(ExtentSpace records,
                       ExtentSpace::Open(channel, description.records, description.extent_bytes));
  NAM_ASSIGN_OR_RETURN(ExtentSpace index,
                       ExtentSpace::Open(channel, description.index, description.index_extent_bytes));
  std::unique_ptr<RecordTable> table(new RecordTable(description, batch, std::move(records), std::move(index),
                                                     slot, std::move(confirm_gone)));
  NAM_RETURN_IF_ERROR(table->SetIndexes(description.indexes));
  table->SetReferences(description.referenced_by);
  table->SetClosed(description.closed);
  return table;
}

RecordTable::RecordTable(const TableDescription& description, storage::VerbBatch& batch, ExtentSpace records,
                         ExtentSpace index, const ClientSlot& slot, TableIndex::ConfirmGone confirm_gone)
    : description_(description),
      layout_(RecordLayout::Of(storage::RecordGeometry::Of(description.row_bytes, description.versions),
                               description.extent_bytes)),
      batch_(batch),
      space_(std::move(records)),
      blocks_(space_, layout_, batch, description.name),
      allocator_(space_, layout_, slot.client),
      index_(batch, std::move(index), description.index_root_bits),
      index_owner_(ordered_header::OwnerOf(slot.client, slot.owner.session)),
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
    NAM_ASSIGN_OR_RETURN(now[i], OpenIndex(indexes[i]));
  }
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (now[i] == nullptr) now[i] = std::move(*known(indexes[i]));
  }
  indexes_ = std::move(now);
  change_bytes_ = 0;
  for (const std::unique_ptr<TableIndex>& index : indexes_) {
    change_bytes_ += index->change_bytes();
    index->entries().SetGoOn(go_on_);
  }
  return absl::OkStatus();
}

void RecordTable::SetGoOn(std::function<absl::Status()> go_on) {
  go_on_ = std::move(go_on);
  index_.SetGoOn(go_on_);
  for (const std::unique_ptr<TableIndex>& index : indexes_) index->entries().SetGoOn(go_on_);
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

absl::Status RecordTable::AddLock(uint64_t record, storage::RecordHeader from, storage::RecordHeader to,
                                  uint64_t* old) {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, Block(record));
  batch_.CompareAndSwap(block, from.word(), to.word(), old);
  return absl::OkStatus();
}

absl::Status RecordTable::AddEmptySlots(uint64_t record, uint32_t newest, const storage::VersionWord* empty) {
  for (uint32_t slot = 0; slot < geometry().slots; ++slot) {
    if (slot != newest) NAM_RETURN_IF_ERROR(AddEmptySlot(record, slot, empty));
  }
  return AddEmptySlot(record, newest, empty);
}

absl::Status RecordTable::AddEmptySlot(uint64_t record, uint32_t slot, const storage::VersionWord* empty) {
  NAM_ASSIGN_OR_RETURN(storage::Channel::Target at, Block(record));
  at.address.offset += geometry().word_offset(slot);
  batch_.Write(reinterpret_cast<const std::byte*>(empty), sizeof(*empty), at);
  return absl::OkStatus();
}

uint64_t RecordTable::HashOf(std::span<const std::byte> key) const {
  return HashIndex::HashOf(key);
}

}  // namespace nam::txn
