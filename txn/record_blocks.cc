#include "txn/record_blocks.h"

#include "base/status_macros.h"

namespace nam::txn {
namespace {

storage::Channel::Target At(storage::Channel::Target block, uint64_t offset) {
  block.address.offset += offset;
  return block;
}

}  // namespace

absl::Status RecordBlocks::AddRead(BlockRead& read) const {
  read.before = batch_.Word();
  read.block = batch_.Scratch(geometry().block_bytes());
  read.after = batch_.Word();
  return AddReadAgain(read);
}

absl::Status RecordBlocks::AddReadAgain(BlockRead& read) const {
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, Block(read.record));
  read.slot = BlockRead::kNoSlot;
  read.in_place = batch_.InPlace(block, geometry().block_bytes());
  read.grant = block.grant;
  if (read.in_place != nullptr) return absl::OkStatus();
  batch_.Read(block, reinterpret_cast<std::byte*>(read.before), 8);
  if (IsSmall()) {
    batch_.Read(block, read.block, geometry().block_bytes());
  } else {
    for (uint32_t slot = 0; slot < geometry().slots; ++slot) {
      const uint32_t offset = geometry().word_offset(slot);
      batch_.Read(At(block, offset), read.block + offset, 8);
    }
  }
  batch_.Read(block, reinterpret_cast<std::byte*>(read.after), 8);
  return absl::OkStatus();
}

// The copied bytes are meaningless unless the grant still holds: then no header is trusted. The READs that
// follow are refused.
void RecordBlocks::JudgeCopy(BlockRead& read) {
  if (read.grant == nullptr || !read.grant->over()) [[likely]]
    return;
  *read.before = storage::RecordHeader::Unlocked(1).word();
  *read.after = storage::RecordHeader().word();
}

void RecordBlocks::CopyWords(BlockRead& read) const {
  if (read.in_place == nullptr) return;
  storage::VerbBatch::Copy(read.in_place, read.before, 8);
  for (uint32_t slot = 0; slot < geometry().slots; ++slot) {
    const uint32_t offset = geometry().word_offset(slot);
    storage::VerbBatch::Copy(read.in_place + offset, read.block + offset, 8);
  }
  storage::VerbBatch::Copy(read.in_place, read.after, 8);
  JudgeCopy(read);
}

void RecordBlocks::CopySlot(BlockRead& read) const {
  if (read.in_place == nullptr || read.slot == BlockRead::kNoSlot) return;
  const uint32_t offset = geometry().word_offset(read.slot);
  storage::VerbBatch::Copy(read.in_place + offset, read.block + offset, geometry().slot_bytes());
  storage::VerbBatch::Copy(read.in_place, read.after, 8);
  JudgeCopy(read);
}

absl::Status RecordBlocks::AddReadSlot(BlockRead& read, uint32_t slot) const {
  read.slot = slot;
  if (read.in_place != nullptr) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const storage::Channel::Target block, Block(read.record));
  const uint32_t offset = geometry().word_offset(slot);
  batch_.Read(At(block, offset), read.block + offset, geometry().version_bytes());
  batch_.Read(block, reinterpret_cast<std::byte*>(read.after), 8);
  return absl::OkStatus();
}

}  // namespace nam::txn
