#include "txn/rsi/write_set.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace nam::txn {
namespace {

/// Beyond this number rows have a table.
constexpr size_t kFewRows = 32;
constexpr size_t kKept = 1'024;
constexpr size_t kFirstPieceBytes = 4 * 1024;
constexpr size_t kPieceBytes = 64 * 1024;

bool SameKey(const std::byte* row, std::span<const std::byte> key) {
  return std::memcmp(row, key.data(), key.size()) == 0;
}

/// Memory that a large transaction has grown is not kept for small ones.
template <typename T>
void Empty(std::vector<T>& of) {
  of.clear();
  if (of.capacity() > kKept) std::vector<T>().swap(of);
}

}  // namespace

void PlaceTable::Clear() {
  Empty(cells_);
  used_ = 0;
}

void PlaceTable::Put(uint64_t hash, size_t place) {
  size_t at = Mixed(hash) & (cells_.size() - 1);
  while (cells_[at].place != kEmpty) at = (at + 1) & (cells_.size() - 1);
  cells_[at] = {hash, place};
}

void PlaceTable::Add(uint64_t hash, size_t place) {
  if (2 * (used_ + 1) > cells_.size()) {
    std::vector<Cell> before(std::max<size_t>(4 * kFewRows, 2 * cells_.size()));
    std::swap(before, cells_);
    for (const Cell& cell : before) {
      if (cell.place != kEmpty) Put(cell.hash, cell.place);
    }
  }
  Put(hash, place);
  ++used_;
}

std::byte* RowArena::Take(size_t bytes) {
  if (bytes > left_) {
    const size_t piece = std::max(std::clamp(bytes_, kFirstPieceBytes, kPieceBytes), bytes);
    pieces_.push_back(std::make_unique_for_overwrite<std::byte[]>(piece));
    next_ = pieces_.back().get();
    left_ = piece;
    bytes_ += piece;
  }
  std::byte* const place = next_;
  const size_t taken = std::min(left_, (bytes + 7) / 8 * 8);
  next_ += taken;
  left_ -= taken;
  return place;
}

const std::byte* RowArena::Copy(const std::byte* row, size_t bytes) {
  std::byte* const copy = Take(bytes);
  std::memcpy(copy, row, bytes);
  return copy;
}

void RowArena::Clear() {
  pieces_.clear();
  next_ = nullptr;
  left_ = bytes_ = 0;
}

const SoughtRow* MetRows::FindSeen(uint32_t table, uint64_t hash, std::span<const std::byte> key) const {
  const auto same = [&](size_t place) {
    const SoughtRow& row = rows_[place];
    return row.hash == hash && row.table == table && SameKey(row.row, key);
  };
  if (rows_.size() > kFewRows) {
    const size_t place = by_key_.Find(hash, rows_.size(), same);
    return place < rows_.size() ? &rows_[place] : nullptr;
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (same(i)) return &rows_[i];
  }
  return nullptr;
}

const SoughtRow& MetRows::Add(const SoughtRow& row) {
  rows_.push_back(row);
  seen_.Add(row.hash);
  if (rows_.size() <= kFewRows) return rows_.back();
  const size_t first = rows_.size() == kFewRows + 1 ? 0 : rows_.size() - 1;
  for (size_t i = first; i < rows_.size(); ++i) by_key_.Add(rows_[i].hash, i);
  return rows_.back();
}

void MetRows::Clear() {
  by_key_.Clear();
  seen_.Clear();
  Empty(rows_);
  if (arena_.bytes() > 0) arena_.Clear();
}

PendingWrite* WriteSet::FindSeen(uint32_t table, uint64_t hash, std::span<const std::byte> key) {
  const auto same = [&](size_t place) {
    const PendingWrite& write = writes_[place];
    return write.hash == hash && write.table == table && SameKey(write.row, key);
  };
  if (writes_.size() > kFewRows) {
    const size_t place = by_key_.Find(hash, writes_.size(), same);
    return place < writes_.size() ? &writes_[place] : nullptr;
  }
  for (size_t i = 0; i < writes_.size(); ++i) {
    if (same(i)) return &writes_[i];
  }
  return nullptr;
}

PendingWrite& WriteSet::Add(PendingWrite::Kind kind, uint32_t table, uint64_t hash, std::byte* row) {
  PendingWrite& write = writes_.emplace_back();  // in place at once: it is large
  write.kind = kind;
  write.table = table;
  write.hash = hash;
  write.row = row;
  seen_.Add(hash);
  ++version_;
  inserts_ += kind == PendingWrite::Kind::kInsert ? 1 : 0;
  if (writes_.size() > kFewRows + 1) [[unlikely]] {
    by_key_.Add(hash, writes_.size() - 1);
  } else if (writes_.size() == kFewRows + 1) {
    FillByKey();
  }
  return write;
}

void WriteSet::FillByKey() {
  by_key_.Clear();
  if (writes_.size() <= kFewRows) return;
  for (size_t i = 0; i < writes_.size(); ++i) by_key_.Add(writes_[i].hash, i);
}

void WriteSet::NoteChange(const PendingWrite& write, size_t row_bytes) {
  ++version_;
  changes_.push_back({.place = static_cast<size_t>(&write - writes_.data()),
                      .kind = write.kind,
                      .withdrawn = write.withdrawn,
                      .row = arena_.Copy(write.row, row_bytes),
                      .row_bytes = row_bytes});
}

void WriteSet::RollBackTo(size_t mark) {
  const size_t changes = mark >> kPlaceBits;
  const size_t writes = mark & ((size_t{1} << kPlaceBits) - 1);
  NAM_CHECK(changes <= changes_.size() && writes <= writes_.size(), "a mark that holds no more");
  for (; changes_.size() > changes; changes_.pop_back()) {
    const Change& change = changes_.back();
    PendingWrite& write = writes_[change.place];
    write.kind = change.kind;
    write.withdrawn = change.withdrawn;
    std::memcpy(write.row, change.row, change.row_bytes);
  }
  ++version_;
  writes_.resize(writes);
  inserts_ = entry_bytes_ = 0;
  for (const PendingWrite& write : writes_) {
    inserts_ += write.fresh ? 1 : 0;
    entry_bytes_ += write.entry_bytes;
  }
  FillByKey();
}

void WriteSet::DropWithdrawn() {
  std::erase_if(writes_, [](const PendingWrite& write) { return write.withdrawn; });
}

const PendingWrite* WriteSet::OfRecord(uint32_t table, uint64_t record) {
  const auto same = [&](size_t place) {
    return writes_[place].record == record && writes_[place].table == table;
  };
  const size_t none = writes_.size();
  if (none <= kFewRows) {
    for (size_t i = 0; i < none; ++i) {
      if (same(i)) return &writes_[i];
    }
    return nullptr;
  }
  if (by_record_.empty()) {
    for (size_t i = 0; i < none; ++i) by_record_.Add(RecordHash(writes_[i].table, writes_[i].record), i);
  }
  const size_t place = by_record_.Find(RecordHash(table, record), none, same);
  return place < none ? &writes_[place] : nullptr;
}

void WriteSet::Clear() {
  by_key_.Clear();
  by_record_.Clear();
  seen_.Clear();
  Empty(writes_);
  inserts_ = entry_bytes_ = 0;
  ++version_;
  Empty(changes_);
  if (arena_.bytes() > 0) arena_.Clear();
}

}  // namespace nam::txn
