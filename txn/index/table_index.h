#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/verb_batch.h"
#include "txn/index/ordered_index.h"
#include "txn/tables.h"

namespace nam::txn {

/// What an entry of a table's index leads to.
///
///     record 40 │ tag 24
///
/// The tag comes from the timestamp of the version that the entry was made for, and no other entry of this
/// key and record has it: if one has, of an older version, the commit is to be tried again with another
/// timestamp. So taking an entry away takes away nobody else's. Entries of one record with one key stand side
/// by side.
class IndexEntry {
 public:
  /// Of entries that CREATE INDEX made, of rows that were there.
  static constexpr uint32_t kFirstTag = 0;

  constexpr IndexEntry(uint64_t record, uint32_t tag) : word_(record << 24 | (tag & kTagMask)) {}
  constexpr explicit IndexEntry(uint64_t word) : word_(word) {}
  /// Of a commit's entries.
  static constexpr uint32_t TagOf(uint64_t timestamp) {
    return static_cast<uint32_t>(1 + timestamp % kTagMask);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t record() const { return word_ >> 24; }
  constexpr uint32_t tag() const { return static_cast<uint32_t>(word_ & kTagMask); }

 private:
  static constexpr uint64_t kTagMask = (1u << 24) - 1;
  uint64_t word_;
};

/// The key of a row in an index. Keys of one index have one size; bytes behind it do not count.
struct IndexKey {
  std::array<std::byte, kOrderedKeyBytesMax> bytes;
  uint32_t size = 0;
  bool any_null = false;
  std::span<const std::byte> view() const { return {bytes.data(), size}; }
  bool operator==(const IndexKey& other) const { return Compare(other) == 0; }
  auto operator<=>(const IndexKey& other) const { return Compare(other) <=> 0; }
  int Compare(const IndexKey& other) const {
    if (size != other.size) return size < other.size ? -1 : 1;
    return std::memcmp(bytes.data(), other.bytes.data(), size);
  }
};

/// One session's way to an ordered index of a record table: entries for every version of a row that some
/// snapshot may see. An entry promises nothing: whoever follows it looks whether the version that he sees has
/// its key.
class TableIndex {
 public:
  using ConfirmGone = std::function<absl::Status(uint32_t owner)>;
  static absl::StatusOr<std::unique_ptr<TableIndex>> Open(const IndexDescription& description,
                                                          storage::Channel& channel,
                                                          storage::VerbBatch& batch, uint32_t owner,
                                                          ConfirmGone confirm_gone);

  const IndexDescription& description() const { return description_; }
  OrderedIndex& entries() { return entries_; }
  IndexKey KeyOf(const std::byte* row) const;
  /// All that begin with something from `low` on and below `high`, which may both be shorter than keys; high
  /// empty: no bound.
  OrderedIndex::Cursor Range(std::span<const std::byte> low, std::span<const std::byte> high) const;
  static bool Before(const IndexKey& key, std::span<const std::byte> low);
  static bool Below(const IndexKey& key, std::span<const std::byte> high);

 private:
  TableIndex(const IndexDescription& description, storage::VerbBatch& batch, ExtentSpace space,
             OrderedIndexOptions options)
      : description_(description), entries_(batch, std::move(space), std::move(options)) {}

  const IndexDescription description_;
  OrderedIndex entries_;
};

}  // namespace nam::txn
