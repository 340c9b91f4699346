#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "storage/channel.h"
#include "storage/record_block.h"
#include "txn/session.h"

/// The rows that a transaction has met and written, until it ends. Finds rows by their keys in constant time.
/// A transaction of a few rows builds no table for that: a linear search is faster.
namespace nam::txn {

/// A key sought at a snapshot, and the result. Pointers lead into scratch memory or a RowArena, which last as
/// long as the transaction.
struct SoughtRow {
  enum class State : uint8_t {
    kNone,       // no row has this key
    kVisible,    // `version` is what the snapshot sees
    kDeleted,    // the snapshot sees its deletion
    kInvisible,  // it was inserted after the snapshot
    kTooOld,     // the version that the snapshot sees was replaced
    kInFlight,   // a client is inserting a row, perhaps with this key
  };
  static constexpr uint32_t kNoTable = ~uint32_t{0};
  uint32_t table = 0;  // kNoTable: the transaction's own write
  std::span<const std::byte> key;
  uint64_t hash = 0;

  State state = State::kNone;
  uint64_t record = 0;
  storage::RecordHeader header;  // as last READ
  storage::VersionWord version;
  uint32_t victim = 0;
  const std::byte* row = nullptr;
};

/// One write of a transaction, on its way through the commit.
struct PendingWrite {
  using Kind = RowWrite::Kind;
  PendingWrite() {}  // without the zeroing of the implicit one
  Kind kind = Kind::kUpdate;
  uint32_t table = 0;
  uint64_t record = 0;
  storage::Channel::Target block;  // the record's
  storage::RecordHeader header;    // the value that the lock expects
  uint32_t victim = 0;
  uint64_t hash = 0;
  // Scratch: row_bytes, beginning with the key. A header and the version word fit before them, as in a
  // block's slot 0. After an insert's bytes there may be the rest of the block, zeroed.
  std::byte* row = nullptr;
  const std::byte* before = nullptr;    // the row that it replaces; null: none
  const std::byte* dead_row = nullptr;  // scratch: the deleted row whose record it takes over; null: none
  bool fresh = false;                   // creates a record instead of another version of one
  bool indexed = false;
  bool withdrawn = false;    // inserted and deleted again
  bool placed = false;       // its record is known: looked up, or allocated
  uint32_t entry_bytes = 0;  // reserved for its index entries; 0: it has made none so far
  uint64_t* old = nullptr;   // a scratch word of the commit

  uint64_t* version() const { return reinterpret_cast<uint64_t*>(row) - 1; }
  /// The write makes no version: its record is only locked.
  bool only_locks() const { return kind == Kind::kLock; }
  /// The write may give its row new keys in indexes.
  bool makes_entries() const { return kind == Kind::kInsert || kind == Kind::kUpdate; }
};

/// A filter over a few hashes: fast, and rejects nearly all others.
class SeenHashes {
 public:
  void Add(uint64_t hash) { bits_ |= BitOf(hash); }
  bool MayHave(uint64_t hash) const { return (bits_ & BitOf(hash)) != 0; }
  void Clear() { bits_ = 0; }

 private:
  static uint64_t BitOf(uint64_t hash) { return uint64_t{1} << (hash >> 58); }

  uint64_t bits_ = 0;
};

/// Maps hashes to places in a vector; several may share one. Open addressing, a power of two of cells.
class PlaceTable {
 public:
  void Add(uint64_t hash, size_t place);
  bool empty() const { return used_ == 0; }
  void Clear();
  /// The first place with the hash that `same` accepts, or `none`.
  template <typename Same>
  size_t Find(uint64_t hash, size_t none, const Same& same) const {
    if (cells_.empty()) return none;
    for (size_t at = Mixed(hash) & (cells_.size() - 1);; at = (at + 1) & (cells_.size() - 1)) {
      const Cell& cell = cells_[at];
      if (cell.place == kEmpty) return none;
      if (cell.hash == hash && same(cell.place)) return cell.place;
    }
  }

 private:
  static constexpr size_t kEmpty = ~size_t{0};
  struct Cell {
    uint64_t hash = 0;
    size_t place = kEmpty;
  };
  static uint64_t Mixed(uint64_t hash) { return (hash * 0x9e3779b97f4a7c15) >> 17; }
  void Put(uint64_t hash, size_t place);

  std::vector<Cell> cells_;
  size_t used_ = 0;
};

/// Keeps rows and keys. They stay in place until Clear.
class RowArena {
 public:
  std::byte* Take(size_t bytes);
  const std::byte* Copy(const std::byte* row, size_t bytes);
  size_t bytes() const { return bytes_; }
  void Clear();

 private:
  std::vector<std::unique_ptr<std::byte[]>> pieces_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;   // of the last piece
  size_t bytes_ = 0;  // of all pieces
};

/// The rows that a transaction has met by their keys.
class MetRows {
 public:
  size_t size() const { return rows_.size(); }
  const SoughtRow* Find(uint32_t table, uint64_t hash, std::span<const std::byte> key) const {
    return seen_.MayHave(hash) ? FindSeen(table, hash, key) : nullptr;
  }
  /// The row with this number, if it has the key.
  const SoughtRow* Find(uint32_t number, uint32_t table, std::span<const std::byte> key) const {
    if (number >= rows_.size()) return nullptr;
    const SoughtRow& row = rows_[number];
    const bool same = row.table == table && std::memcmp(row.row, key.data(), key.size()) == 0;
    return same ? &row : nullptr;
  }
  uint32_t NumberOf(const SoughtRow& met) const { return static_cast<uint32_t>(&met - rows_.data()); }
  const SoughtRow& Add(const SoughtRow& row);
  /// Adds the row with a copy of its bytes.
  void AddCopy(SoughtRow row, size_t row_bytes) {
    row.row = arena_.Copy(row.row, row_bytes);
    row.key = {row.row, row.key.size()};
    Add(row);
  }
  /// Moves the rows from `first` on, of `row_bytes` by table, out of the memory that they were READ into.
  template <typename RowBytes>
  void MoveToArena(size_t first, const RowBytes& row_bytes) {
    for (size_t i = first; i < rows_.size(); ++i) {
      rows_[i].row = arena_.Copy(rows_[i].row, row_bytes(rows_[i].table));
      rows_[i].key = {rows_[i].row, rows_[i].key.size()};
    }
  }
  size_t bytes() const { return rows_.size() * sizeof(SoughtRow) + arena_.bytes(); }
  void Clear();

 private:
  const SoughtRow* FindSeen(uint32_t table, uint64_t hash, std::span<const std::byte> key) const;

  std::vector<SoughtRow> rows_;
  SeenHashes seen_;
  PlaceTable by_key_;  // of all rows, if there are many
  RowArena arena_;
};

/// A transaction's writes in the order of their statements, one for each row.
///
///     Mark ─▶ (writes so far, changes so far)      RollBackTo ─▶ later writes go, later changes are undone
class WriteSet {
 public:
  bool empty() const { return writes_.empty(); }
  size_t size() const { return writes_.size(); }
  /// The inserts among them, including those changed since.
  size_t inserts() const { return inserts_; }
  auto begin() { return writes_.begin(); }
  auto end() { return writes_.end(); }
  auto begin() const { return writes_.begin(); }
  auto end() const { return writes_.end(); }
  PendingWrite& operator[](size_t place) { return writes_[place]; }
  const PendingWrite& operator[](size_t place) const { return writes_[place]; }
  PendingWrite& back() { return writes_.back(); }

  PendingWrite* Find(uint32_t table, uint64_t hash, std::span<const std::byte> key) {
    return seen_.MayHave(hash) ? FindSeen(table, hash, key) : nullptr;
  }
  /// Adds a write for a row that has none yet; the row begins with its key. Invalidates the addresses of
  /// other writes.
  PendingWrite& Add(PendingWrite::Kind kind, uint32_t table, uint64_t hash, std::byte* row);
  /// Called before a write of `row_bytes` changes again.
  void NoteChange(const PendingWrite& write, size_t row_bytes);
  /// Reserves memory for the index entries that the commit makes for a write, once.
  void ReserveEntries(PendingWrite& write, uint32_t bytes) {
    if (!write.makes_entries() || write.entry_bytes != 0) return;
    write.entry_bytes = bytes;
    entry_bytes_ += bytes;
  }
  /// The memory reserved for index entries.
  size_t entry_bytes() const { return entry_bytes_; }

  /// A new number after each change; 0 only before the first.
  uint64_t version() const { return version_; }

  size_t Mark() const { return changes_.size() << kPlaceBits | writes_.size(); }
  void RollBackTo(size_t mark);

  /// Drops withdrawn writes as the commit begins. No Find, Add or Mark until Clear.
  void DropWithdrawn();
  /// The write of a record, after DropWithdrawn.
  const PendingWrite* OfRecord(uint32_t table, uint64_t record);
  /// Called when writes have got other records.
  void ForgetRecords() { by_record_.Clear(); }

  size_t bytes() const { return writes_.size() * sizeof(PendingWrite) + arena_.bytes(); }
  void Clear();

 private:
  static constexpr int kPlaceBits = 32;
  /// A write before its change.
  struct Change {
    size_t place = 0;
    PendingWrite::Kind kind = PendingWrite::Kind::kUpdate;
    bool withdrawn = false;
    const std::byte* row = nullptr;  // in arena_
    size_t row_bytes = 0;
  };
  static uint64_t RecordHash(uint32_t table, uint64_t record) { return record << 12 ^ table; }
  PendingWrite* FindSeen(uint32_t table, uint64_t hash, std::span<const std::byte> key);
  void FillByKey();

  std::vector<PendingWrite> writes_;
  SeenHashes seen_;  // those of withdrawn or rolled back writes, too
  size_t inserts_ = 0;
  size_t entry_bytes_ = 0;
  uint64_t version_ = 0;
  std::vector<Change> changes_;
  PlaceTable by_key_;     // of all writes, if there are many
  PlaceTable by_record_;  // likewise, once OfRecord is called
  RowArena arena_;
};

}  // namespace nam::txn
