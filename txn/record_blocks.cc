#include "txn/record_blocks.h"

#include "base/status_macros.h"

namespace nam::txn {

absl::Status RecordBlocks::AddRead(BlockRead& read) const {
  read.before = reinterpret_cast<uint64_t*>(batch_.Scratch(8));
  read.block = batch_.Scratch(geometry().block_bytes());
  read.after = reinterpret_cast<uint64_t*>(batch_.Scratch(8));
  return AddReadAgain(read);
}

absl::Status RecordBlocks::AddReadAgain(BlockRead& read) const {
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

void RecordBlocks::Take(BlockRead& read) const {
  if (read.in_place == nullptr) return;
  storage::VerbBatch::Copy(read.in_place, read.before, 8);
  storage::VerbBatch::Copy(read.in_place, read.block, geometry().words_bytes());
  storage::VerbBatch::Copy(read.in_place, read.after, 8);
}

void RecordBlocks::TakeSlot(BlockRead& read) const {
  if (read.slot == BlockRead::kNoSlot) return;
  const uint32_t offset = geometry().slot_offset(read.slot);
  storage::VerbBatch::Copy(read.in_place + offset, read.block + offset, geometry().row_bytes);
  storage::VerbBatch::Copy(read.in_place, read.after, 8);
}

absl::Status RecordBlocks::AddReadSlot(BlockRead& read, uint32_t slot) const {
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

}  // namespace nam::txn
