#include "bench/two_phase/row_store.h"

#include <xxhash.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace nam::bench::two_phase {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

constexpr size_t Whole(size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

}  // namespace

uint64_t HashOfKey(std::span<const std::byte> key) {
  return XXH3_64bits(key.data(), key.size());
}

uint32_t PartitionOf(std::span<const std::byte> key, uint32_t participants) {
  // Uses the upper half: the participants' own tables use the lower bits.
  return static_cast<uint32_t>((HashOfKey(key) >> 32) * participants >> 32);
}

RowStore::RowStore(const TableLayout& layout, size_t deletions_kept)
    : layout_(layout),
      deletions_kept_(deletions_kept),
      slots_(layout.versions + 1),
      key_at_(sizeof(Block) + slots_ * sizeof(uint64_t)),
      payload_at_(key_at_ + Whole(layout.key_bytes)),
      payload_bytes_(Whole(layout.row_bytes)),
      block_bytes_(payload_at_ + slots_ * payload_bytes_),
      chunk_rows_(static_cast<uint32_t>(std::max<size_t>(1, kChunkBytes / block_bytes_))),
      rows_(0, Hash{this}, Equal{this}) {
  static_assert(sizeof(Block) == 8);
}

bool RowStore::Equal::operator()(RowNumber row, std::span<const std::byte> key) const {
  return std::memcmp(store->KeyOf(row).data(), key.data(), key.size()) == 0;
}

std::byte* RowStore::BytesOf(RowNumber row) const {
  return reinterpret_cast<std::byte*>(chunks_[row / chunk_rows_].get()) + row % chunk_rows_ * block_bytes_;
}

std::span<const std::byte> RowStore::KeyOf(RowNumber row) const {
  return {BytesOf(row) + key_at_, layout_.key_bytes};
}

std::byte* RowStore::PayloadOf(RowNumber row, uint32_t slot) const {
  return BytesOf(row) + payload_at_ + slot * payload_bytes_;
}

RowStore::Version RowStore::Find(std::span<const std::byte> key, uint64_t snapshot) const {
  const auto found = rows_.find(key);
  if (found == rows_.end()) {
    return {.state = snapshot < forgotten_ ? kRowTooOld : kNothing};
  }
  const RowNumber row = *found;
  const Block& block = BlockOf(row);
  const uint64_t* const timestamps = TimestampsOf(row);
  Version version{.state = block.locked ? kNewer : kNothing};
  uint32_t slot = block.newest;
  for (uint32_t age = 0; age < block.versions; ++age, slot = (slot + slots_ - 1) % slots_) {
    if ((timestamps[slot] & ~kDeleted) > snapshot) {
      version.state |= kNewer;
      continue;
    }
    if ((timestamps[slot] & kDeleted) != 0) return version;
    version.state |= kFound;
    version.row = {PayloadOf(row, slot), layout_.row_bytes};
    return version;
  }
  // Not dropped, but the key may have existed, with a deletion that is forgotten.
  if (block.dropped || snapshot < forgotten_) version.state |= kRowTooOld;
  return version;
}

Outcome RowStore::Validate(WriteKind kind, RowNumber row, uint64_t snapshot) const {
  const Block& block = BlockOf(row);
  if (block.locked) return Outcome::kWriteWrite;
  const uint64_t newest = TimestampsOf(row)[block.newest];
  const bool deleted = (newest & kDeleted) != 0;
  if (kind == WriteKind::kInsert && !deleted) return Outcome::kUniqueKey;
  if ((newest & ~kDeleted) > snapshot) return Outcome::kWriteWrite;
  return deleted == (kind == WriteKind::kInsert) ? Outcome::kYes : Outcome::kWriteWrite;
}

Outcome RowStore::Lock(WriteKind kind, std::span<const std::byte> row, uint64_t snapshot, RowNumber* locked) {
  const std::span<const std::byte> key = row.first(layout_.key_bytes);
  const auto found = rows_.find(key);
  if (found != rows_.end()) {
    const Outcome outcome = Validate(kind, *found, snapshot);
    if (outcome != Outcome::kYes) return outcome;
    *locked = *found;
  } else {
    // The row was read and is missing: it has been deleted since.
    if (kind != WriteKind::kInsert) return Outcome::kWriteWrite;
    if (snapshot < forgotten_) return Outcome::kTooOld;
    *locked = Create(key);
  }
  Block& block = BlockOf(*locked);
  block.locked = true;
  block.deletes = kind == WriteKind::kDelete;
  if (!block.deletes) std::memcpy(PayloadOf(*locked, SpareSlot(block)), row.data(), row.size());
  return Outcome::kYes;
}

RowStore::RowNumber RowStore::Create(std::span<const std::byte> key) {
  RowNumber row = 0;
  if (!free_.empty()) {
    row = free_.back();
    free_.pop_back();
  } else {
    NAM_CHECK(rows_made_ <= std::numeric_limits<RowNumber>::max());
    row = static_cast<RowNumber>(rows_made_++);
    if (row / chunk_rows_ == chunks_.size()) {
      chunks_.push_back(std::make_unique_for_overwrite<uint64_t[]>(chunk_rows_ * block_bytes_ / 8));
    }
  }
  BlockOf(row) = {};
  std::memcpy(BytesOf(row) + key_at_, key.data(), key.size());
  rows_.insert(row);
  return row;
}

void RowStore::Erase(RowNumber row) {
  rows_.erase(rows_.find(KeyOf(row)));
  free_.push_back(row);
}

void RowStore::Install(RowNumber row, uint64_t timestamp) {
  Block& block = BlockOf(row);
  NAM_CHECK(block.locked);
  block.newest = static_cast<uint16_t>(SpareSlot(block));
  TimestampsOf(row)[block.newest] = timestamp | (block.deletes ? kDeleted : 0);
  if (block.versions < layout_.versions) {
    ++block.versions;
  } else {
    block.dropped = true;
  }
  block.locked = false;
  if (block.deletes) deletions_.push_back({row, timestamp});
  ForgetDeletions();
}

void RowStore::Forget(RowNumber row) {
  Block& block = BlockOf(row);
  NAM_CHECK(block.locked);
  block.locked = false;
  if (block.versions == 0) {
    Erase(row);
    return;
  }
  // It may have been passed over while it was locked.
  const uint64_t newest = TimestampsOf(row)[block.newest];
  if ((newest & kDeleted) != 0) deletions_.push_back({row, newest & ~kDeleted});
}

void RowStore::ForgetDeletions() {
  while (deletions_.size() > deletions_kept_) {
    const Deletion oldest = deletions_.front();
    deletions_.pop_front();
    const Block& block = BlockOf(oldest.row);
    // It is another row by now, or inserted again, or about to be.
    if (block.locked || block.versions == 0) continue;
    if (TimestampsOf(oldest.row)[block.newest] != (oldest.timestamp | kDeleted)) continue;
    Erase(oldest.row);
    BlockOf(oldest.row).versions = 0;
    forgotten_ = std::max(forgotten_, oldest.timestamp);
  }
}

}  // namespace nam::bench::two_phase
