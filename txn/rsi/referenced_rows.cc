#include "txn/rsi/referenced_rows.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;

constexpr size_t kEntriesAtOnce = 64;

bool IsNull(const IndexDescription::KeyField& field, const std::byte* row) {
  return field.nullable && (static_cast<uint8_t>(row[field.null_bit / 8]) >> (field.null_bit % 8) & 1) != 0;
}

/// The key of a parent's row; empty if a part of it is NULL, so that no row references it.
std::string ParentKey(const ReferenceDescription& reference, const std::byte* row) {
  std::string key;
  for (const IndexDescription::KeyField& field : reference.fields) {
    if (IsNull(field, row)) return {};
    key.append(reinterpret_cast<const char*>(row) + field.offset, field.bytes);
  }
  return key;
}

/// The prefix of the child's index keys. For nullable columns a byte in it says that they are not NULL.
std::string ChildPrefix(const ReferenceDescription& reference, const IndexDescription& index,
                        const std::string& key) {
  std::string prefix;
  size_t from = 0;
  for (size_t i = 0; i < reference.fields.size(); ++i) {
    if (index.fields[i].nullable) prefix.push_back('\0');
    prefix.append(key, from, reference.fields[i].bytes);
    from += reference.fields[i].bytes;
  }
  return prefix;
}

/// Keys that the transaction removes from all rows of the parent: another of its rows may have got one.
std::set<std::string> KeysThatGo(const WriteSet& writes, uint32_t parent,
                                 const ReferenceDescription& reference) {
  std::set<std::string> gone;
  for (const PendingWrite& write : writes) {
    if (write.table != parent || write.before == nullptr || write.only_locks()) continue;
    std::string key = ParentKey(reference, write.before);
    const bool stays = write.kind != PendingWrite::Kind::kDelete && ParentKey(reference, write.row) == key;
    if (!stays && !key.empty()) gone.insert(std::move(key));
  }
  if (gone.empty()) return gone;
  for (const PendingWrite& write : writes) {
    if (write.table == parent && write.kind != PendingWrite::Kind::kDelete)
      gone.erase(ParentKey(reference, write.row));
  }
  return gone;
}

}  // namespace

/// Rows that may reference a key of a parent.
struct ReferencedRows::Referencing {
  const ReferenceDescription& reference;
  const std::string& parent;
  uint32_t child = 0;
  const TableIndex& index;
  const std::string& prefix;

  bool HasKey(const std::byte* row) const {
    return std::memcmp(index.KeyOf(row).bytes.data(), prefix.data(), prefix.size()) == 0;
  }
  absl::Status Violation() const {
    return AbortStatus(
        AbortReason::kForeignKey,
        absl::StrFormat("update or delete on table \"%s\" violates foreign key constraint \"%s\" on table "
                        "\"%s\"",
                        parent, reference.name, reference.child));
  }
};

absl::Status ReferencedRows::Check() {
  const size_t open = core_.open.size();  // children opened here have no writes
  for (uint32_t number = 0; number < open; ++number) {
    if (!core_.IsOpen(number)) continue;
    for (const ReferenceDescription& reference : table(number).references())
      NAM_RETURN_IF_ERROR(CheckReference(number, reference));
  }
  return absl::OkStatus();
}

absl::Status ReferencedRows::CheckReference(uint32_t parent, const ReferenceDescription& reference) {
  const std::set<std::string> gone = KeysThatGo(writes_, parent, reference);
  if (gone.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(const std::optional<uint32_t> child, ChildOf(reference));
  if (!child.has_value()) return absl::OkStatus();
  const auto indexes = table(*child).indexes();
  const auto index = std::find_if(indexes.begin(), indexes.end(), [&](const auto& open) {
    return open->description().name == reference.index;
  });
  // The child is being made: it has no rows yet, and its writers will lock the parent's row first.
  if (index == indexes.end()) return absl::OkStatus();
  const size_t key_bytes = (*index)->description().key_bytes;
  for (const std::string& key : gone) {
    NAM_RETURN_IF_ERROR(core_.GoOn());
    const std::string prefix = ChildPrefix(reference, (*index)->description(), key);
    std::string low = prefix, high = prefix;
    low.resize(key_bytes, '\0');
    high.resize(key_bytes, '\xff');
    OrderedIndex::Entries entries;
    std::vector<uint64_t> records;
    OrderedIndex& found = (*index)->entries();
    for (OrderedIndex::Cursor cursor =
             found.Range(std::as_bytes(std::span(low)), std::as_bytes(std::span(high)));
         !cursor.done();) {
      NAM_RETURN_IF_ERROR(found.Next(cursor, kEntriesAtOnce, entries));
      records.clear();
      for (const uint64_t value : entries.values) records.push_back(IndexEntry(value).record());
      NAM_RETURN_IF_ERROR(
          Judge({reference, table(parent).description().name, *child, **index, prefix}, records));
    }
  }
  return absl::OkStatus();
}

std::optional<uint32_t> ReferencedRows::OpenChild(const ReferenceDescription& reference) {
  for (uint32_t number = 0; number < core_.open.size(); ++number) {
    if (core_.IsOpen(number) && table(number).description().allocation == reference.child_allocation)
      return number;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<uint32_t>> ReferencedRows::ChildOf(const ReferenceDescription& reference) {
  if (const std::optional<uint32_t> known = OpenChild(reference); known.has_value()) return known;
  const absl::StatusOr<TableDescription> child = core_.tables.Find(reference.child);
  if (absl::IsNotFound(child.status())) return std::nullopt;
  if (child.ok() && child->allocation != reference.child_allocation) return std::nullopt;
  const absl::Status opened = child.ok() ? core_.TableOf(*child).status() : child.status();
  if (opened.ok()) return OpenChild(reference);
  if (core_.channel->broken()) return opened;
  return AbortStatus(AbortReason::kWriteWrite,
                     absl::StrFormat("table %s, whose rows may reference it, cannot be opened: %s",
                                     reference.child, std::string(opened.message())));
}

// Judges rows that have had the key, have it, or are about to.
absl::Status ReferencedRows::Judge(const Referencing& referencing, std::span<const uint64_t> records) {
  RecordTable& child = table(referencing.child);
  std::vector<BlockRead> others;
  for (const uint64_t record : records) {
    const PendingWrite* const own = writes_.OfRecord(referencing.child, record);
    if (own == nullptr) {
      others.push_back({.record = record});
    } else if (own->kind != PendingWrite::Kind::kDelete && referencing.HasKey(own->row)) {
      return referencing.Violation();
    }
  }
  const uint64_t read_bytes = child.geometry().block_bytes() + 192;
  const size_t window = std::clamp<size_t>(batch_.scratch_at_hand() / 2 / read_bytes, 1, kEntriesAtOnce);
  for (size_t first = 0; first < others.size(); first += window) {
    const std::span<BlockRead> some =
        std::span(others).subspan(first, std::min(window, others.size() - first));
    const size_t kept = batch_.scratch_used();
    NAM_RETURN_IF_ERROR(core_.CheckScratch(some.size() * read_bytes));
    NAM_RETURN_IF_ERROR(reader_.ReadBlocks(child, some, RowReader::kNewest));
    absl::Status judged;
    for (const BlockRead& block : some) {
      if (judged.ok()) judged = Judge(referencing, block);
    }
    batch_.Reset(kept);
    NAM_RETURN_IF_ERROR(judged);
  }
  return absl::OkStatus();
}

absl::Status ReferencedRows::Judge(const Referencing& referencing, const BlockRead& block) {
  RecordTable& child = table(referencing.child);
  const RecordHeader header = block.header();
  // A row that gave the key up after this commit's timestamp still has it at that moment.
  if (header.locked() || core_.ChangedLater(header))
    return core_.Conflict(header, referencing.child, block.record);
  const storage::VersionChoice choice = reader_.Choose(child, block, RowReader::kNewest);
  if (choice.outcome != storage::VersionChoice::Outcome::kVersion || choice.version.deleted())
    return absl::OkStatus();
  if (!referencing.HasKey(block.block + child.geometry().row_offset(choice.slot))) return absl::OkStatus();
  uint64_t& newest = core_.conflicts.newest;
  newest = std::max(newest, header.timestamp());  // for the next snapshot
  return referencing.Violation();
}

}  // namespace nam::txn
