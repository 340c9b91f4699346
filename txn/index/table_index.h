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

/// The target of an entry in a table's index.
///
///     record 40 │ tag 24
///
/// The tag comes from the timestamp of the version that the entry was made for, or is random if that has none
/// yet. No other entry of this key and record has the same tag: if one of an older version has, the commit
/// retries with another one. So a client removes only its own entry. A key's entries of one record are
/// adjacent.
class IndexEntry {
 public:
  /// The tag of entries that CREATE INDEX made for existing rows.
  static constexpr uint32_t kFirstTag = 0;

  constexpr IndexEntry(uint64_t record, uint32_t tag) : word_(record << 24 | (tag & kTagMask)) {}
  constexpr explicit IndexEntry(uint64_t word) : word_(word) {}
  /// The tag of entries that a commit makes.
  static constexpr uint32_t TagOf(uint64_t timestamp) {
    return static_cast<uint32_t>(1 + timestamp % (kEarlyTags - 1));
  }
  /// The tag of entries that it makes before it has a timestamp.
  static constexpr uint32_t EarlyTag(uint64_t random) {
    return static_cast<uint32_t>(kEarlyTags + random % kEarlyTags);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t record() const { return word_ >> 24; }
  constexpr uint32_t tag() const { return static_cast<uint32_t>(word_ & kTagMask); }

 private:
  static constexpr uint64_t kTagMask = (1u << 24) - 1;
  static constexpr uint64_t kEarlyTags = 1u << 23;  // the first of them, and their number
  uint64_t word_;
};

/// A row's key in an index. All keys of an index have one size; bytes beyond it do not count.
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

/// One session's access to an ordered index of a record table. Holds entries for every version of a row that
/// a snapshot may see. An entry promises nothing: a reader checks that the version that it sees has the
/// entry's key.
class TableIndex {
 public:
  using ConfirmGone = std::function<absl::Status(uint32_t owner)>;
  static absl::StatusOr<std::unique_ptr<TableIndex>> Open(const IndexDescription& description,
                                                          storage::Channel& channel,
                                                          storage::VerbBatch& batch, uint32_t owner,
                                                          ConfirmGone confirm_gone);

  const IndexDescription& description() const { return description_; }
  OrderedIndex& entries() { return entries_; }
  /// The memory that a commit takes for each entry that it makes.
  uint32_t change_bytes() const {
    return static_cast<uint32_t>(sizeof(OrderedIndex::Change) + (entries_.shape().entry_bytes() + 7) / 8 * 8);
  }
  IndexKey KeyOf(const std::byte* row) const;
  /// Writes a row's key, of the index's key_bytes. Returns whether a part of it is NULL.
  bool WriteKey(const std::byte* row, std::byte* key) const;
  /// Scans the keys that begin with a prefix from `low` on and below `high`. Both may be shorter than keys;
  /// empty `high`: no bound.
  OrderedIndex::Cursor Range(std::span<const std::byte> low, std::span<const std::byte> high) const;
  static bool Before(const std::byte* key, std::span<const std::byte> low);
  static bool Below(const std::byte* key, std::span<const std::byte> high);

 private:
  TableIndex(const IndexDescription& description, storage::VerbBatch& batch, ExtentSpace space,
             OrderedIndexOptions options)
      : description_(description), entries_(batch, std::move(space), std::move(options)) {}

  const IndexDescription description_;
  OrderedIndex entries_;
};

}  // namespace nam::txn
