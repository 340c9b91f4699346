#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "bench/two_phase/wire.h"

namespace nam::bench::two_phase {

/// A table of the cluster; each participant holds the rows whose keys hash to it.
struct TableLayout {
  std::string name;
  uint32_t row_bytes = 0;
  uint32_t key_bytes = 0;  // a row begins with its key
  uint32_t versions = 1;   // 1 to 16
};

uint64_t HashOfKey(std::span<const std::byte> key);
/// The key's owner among `participants`.
uint32_t PartitionOf(std::span<const std::byte> key, uint32_t participants);

/// One participant's rows of one table: a multi-version hash table in its own memory. One thread.
///
/// A row is a block; blocks lie in chunks and never move. Versions are a ring with one slot more than are
/// kept: the spare one already holds what the transaction that locked the row is about to write, so that a
/// commit only writes a timestamp.
///
///     Block │ timestamp × slots │ key │ payload × slots          each a multiple of 8 bytes
///
/// A deleted key's row stays, with a deletion as its newest version, until kDeletionsKept later ones. After
/// that the store knows only the youngest deletion that it has forgotten.
class RowStore {
 public:
  RowStore(const TableLayout& layout, size_t deletions_kept);
  RowStore(const RowStore&) = delete;
  RowStore& operator=(const RowStore&) = delete;

  const TableLayout& layout() const { return layout_; }

  struct Version {
    uint8_t state = 0;  // RowState
    std::span<const std::byte> row;
  };
  Version Find(std::span<const std::byte> key, uint64_t snapshot) const;

  using RowNumber = uint32_t;
  /// Validates and locks; `row` is the key alone for a deletion.
  Outcome Lock(WriteKind kind, std::span<const std::byte> row, uint64_t snapshot, RowNumber* locked);
  /// Both unlock.
  void Install(RowNumber row, uint64_t timestamp);
  void Forget(RowNumber row);

 private:
  struct Block {
    uint16_t newest;
    uint16_t versions;
    bool locked;
    bool deletes;  // the transaction that has locked it deletes it
    bool dropped;  // older versions have been dropped
  };
  static constexpr uint64_t kDeleted = uint64_t{1} << 63;  // in a timestamp

  struct Hash {
    using is_transparent = void;
    const RowStore* store;
    size_t operator()(RowNumber row) const { return (*this)(store->KeyOf(row)); }
    size_t operator()(std::span<const std::byte> key) const { return HashOfKey(key); }
  };
  struct Equal {
    using is_transparent = void;
    const RowStore* store;
    bool operator()(RowNumber a, RowNumber b) const { return a == b; }
    bool operator()(RowNumber row, std::span<const std::byte> key) const;
    bool operator()(std::span<const std::byte> key, RowNumber row) const { return (*this)(row, key); }
  };

  std::byte* BytesOf(RowNumber row) const;
  Block& BlockOf(RowNumber row) const { return *reinterpret_cast<Block*>(BytesOf(row)); }
  uint64_t* TimestampsOf(RowNumber row) const {
    return reinterpret_cast<uint64_t*>(BytesOf(row) + sizeof(Block));
  }
  std::span<const std::byte> KeyOf(RowNumber row) const;
  std::byte* PayloadOf(RowNumber row, uint32_t slot) const;
  uint32_t SpareSlot(const Block& block) const { return (block.newest + 1u) % slots_; }
  Outcome Validate(WriteKind kind, RowNumber row, uint64_t snapshot) const;
  RowNumber Create(std::span<const std::byte> key);
  void Erase(RowNumber row);
  void ForgetDeletions();

  struct Deletion {
    RowNumber row;
    uint64_t timestamp;
  };

  const TableLayout layout_;
  const size_t deletions_kept_;
  const uint32_t slots_;
  const size_t key_at_;
  const size_t payload_at_;
  const size_t payload_bytes_;
  const size_t block_bytes_;
  const uint32_t chunk_rows_;
  std::vector<std::unique_ptr<uint64_t[]>> chunks_;
  uint64_t rows_made_ = 0;
  std::vector<RowNumber> free_;
  absl::flat_hash_set<RowNumber, Hash, Equal> rows_;
  std::deque<Deletion> deletions_;
  uint64_t forgotten_ = 0;  // the youngest deletion whose row is gone
};

}  // namespace nam::bench::two_phase
