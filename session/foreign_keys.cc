#include "session/foreign_keys.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "txn/session.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

using partitioner::RecordLayout;
using Columns = google::protobuf::RepeatedField<uint32_t>;

/// The bytes of a column of a row; nullopt if it is NULL.
std::optional<std::string_view> Field(const RecordLayout& layout, uint32_t column, const std::string& row) {
  const RecordLayout::Field& field = layout.field(column);
  if (field.nullable() && field.IsNull(BytesOf(row).data())) return std::nullopt;
  return std::string_view(row).substr(field.offset, field.bytes);
}

/// Columns of a row, side by side; nullopt if one is NULL.
std::optional<std::string> KeyOf(const RecordLayout& layout, const Columns& columns, const std::string& row) {
  std::string key;
  for (const uint32_t column : columns) {
    const std::optional<std::string_view> field = Field(layout, column, row);
    if (!field.has_value()) return std::nullopt;
    key.append(*field);
  }
  return key;
}

const proto::RecordPart* IndexOf(const proto::Table& table, const std::string& name, int& number) {
  for (number = 0; number < table.record().parts_size(); ++number) {
    const proto::RecordPart& part = table.record().parts(number);
    if (part.kind() == proto::ORDERED_INDEX && part.name() == name && !part.leaving()) return &part;
  }
  return nullptr;
}

}  // namespace

absl::Status ForeignKeys::Check(std::span<const RowChange> changes) {
  const proto::RecordStorage& record = table_.table->record();
  for (size_t i = 0; i < table_.parents.size(); ++i) {
    NAM_RETURN_IF_ERROR(LockParents(record.foreign_keys(static_cast<int>(i)), *table_.parents[i], changes));
  }
  for (size_t i = 0; i < table_.children.size(); ++i) {
    if (table_.children[i] == nullptr) continue;
    NAM_RETURN_IF_ERROR(
        CheckChildren(record.referenced_by(static_cast<int>(i)).key(), *table_.children[i], changes));
  }
  return absl::OkStatus();
}

/// Keys as the parent has them, in its primary key or in its unique index. A row with a new primary key is
/// another record: its entry in the child's index is new, and must precede the search of a client that
/// deletes the parent.
ForeignKeys::Keys ForeignKeys::NewKeys(const proto::ForeignKey& key, const proto::Table& parent,
                                       std::span<const RowChange> changes) const {
  std::vector<uint32_t> order = partitioner::KeyColumnsOf(parent);
  int number = 0;
  const bool primary = key.parent_index().empty();
  const proto::RecordPart* const index = primary ? nullptr : IndexOf(parent, key.parent_index(), number);
  if (index != nullptr) order.assign(index->columns().begin(), index->columns().end());
  const RecordLayout of_parent(parent);
  Keys keys;
  for (const RowChange& change : changes) {
    if (change.after.empty()) continue;
    const std::optional<std::string> now = KeyOf(layout_, key.columns(), change.after);
    if (!now.has_value()) continue;
    const bool same_row =
        !change.before.empty() &&
        change.after.compare(0, layout_.key_bytes(), change.before, 0, layout_.key_bytes()) == 0;
    if (same_row && KeyOf(layout_, key.columns(), change.before) == now) continue;
    std::string bytes;
    for (const uint32_t column : order) {
      const auto place = std::find(key.parent_columns().begin(), key.parent_columns().end(), column);
      const uint32_t own = key.columns(static_cast<int>(place - key.parent_columns().begin()));
      if (!primary && of_parent.nullable(column)) bytes.push_back('\0');
      bytes.append(*Field(layout_, own, change.after));
    }
    keys.emplace_back(std::move(bytes), &change.after);
  }
  return keys;
}

absl::Status ForeignKeys::LockParents(const proto::ForeignKey& key, const proto::Table& parent,
                                      std::span<const RowChange> changes) {
  const Keys keys = NewKeys(key, parent, changes);
  if (keys.empty()) return absl::OkStatus();
  std::set<std::string> found;
  std::vector<std::string> primary_keys;
  NAM_RETURN_IF_ERROR(FindParents(key, parent, keys, found, primary_keys));
  for (const auto& [bytes, row] : keys) {
    if (found.contains(bytes)) continue;
    return UserError(sqlstate::kForeignKeyViolation,
                     absl::StrCat("insert or update on table ", Quote(table_.table->name()),
                                  " violates foreign key constraint ", Quote(key.name())),
                     -1,
                     absl::StrCat("Key ", KeyText(key.columns(), *row), " is not present in table ",
                                  Quote(parent.name()), "."));
  }
  NAM_RETURN_IF_ERROR(access_.MayWrite(primary_keys.size()));
  return access_.Lock(parent, primary_keys, /*waits=*/true);
}

/// Finds each parent once.
absl::Status ForeignKeys::FindParents(const proto::ForeignKey& key, const proto::Table& parent,
                                      const Keys& keys, std::set<std::string>& found,
                                      std::vector<std::string>& primary_keys) {
  const size_t key_bytes = parent.record().key_bytes();
  const auto primary_key = [&](std::span<const std::byte> row) {
    return std::string(reinterpret_cast<const char*>(row.data()), key_bytes);
  };
  std::vector<std::string> wanted;
  for (const auto& [bytes, row] : keys) wanted.push_back(bytes);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (key.parent_index().empty()) {
    return access_.Lookup(parent, wanted, [&](std::span<const std::byte> row) -> absl::StatusOr<bool> {
      primary_keys.push_back(primary_key(row));
      found.insert(primary_keys.back());
      return true;
    });
  }
  int number = 0;
  const proto::RecordPart* const index = IndexOf(parent, key.parent_index(), number);
  if (index == nullptr) return absl::OkStatus();
  // The index may lack rows that the snapshot sees.
  if (index->usable_from() > access_.snapshot())
    return txn::AbortStatus(txn::AbortReason::kSnapshotTooOld, absl::StrCat("for index ", index->name()));
  for (const std::string& bytes : wanted) {
    if (cancelled_) return absl::CancelledError("cancelled");
    const sql::KeyRange range{bytes, partitioner::SuccessorOfPrefix(bytes)};
    const RecordAccess::OnRow take = [&](std::span<const std::byte> row) -> absl::StatusOr<bool> {
      primary_keys.push_back(primary_key(row));
      found.insert(bytes);
      return false;
    };
    NAM_RETURN_IF_ERROR(access_.ScanIndex(parent, number, range, take));
  }
  return absl::OkStatus();
}

/// Keys that the statement removed from all rows: one that moved to another row still exists.
absl::Status ForeignKeys::CheckChildren(const proto::ForeignKey& key, const proto::Table& child,
                                        std::span<const RowChange> changes) {
  int number = 0;
  const proto::RecordPart* const index = IndexOf(child, key.index(), number);
  if (index == nullptr) return absl::OkStatus();  // it is being made, and has no rows
  std::set<std::string> there;
  for (const RowChange& change : changes) {
    if (change.after.empty()) continue;
    if (const auto now = KeyOf(layout_, key.parent_columns(), change.after); now.has_value())
      there.insert(*now);
  }
  const RecordLayout of_child(child);
  for (const RowChange& change : changes) {
    if (cancelled_) return absl::CancelledError("cancelled");
    if (change.before.empty()) continue;
    const std::optional<std::string> gone = KeyOf(layout_, key.parent_columns(), change.before);
    if (!gone.has_value() || there.contains(*gone)) continue;
    std::string low;
    for (int i = 0; i < key.columns_size(); ++i) {
      if (of_child.nullable(key.columns(i))) low.push_back('\0');
      low.append(*Field(layout_, key.parent_columns(i), change.before));
    }
    bool referenced = false;
    const sql::KeyRange range{low, partitioner::SuccessorOfPrefix(low)};
    NAM_RETURN_IF_ERROR(
        access_.ScanIndex(child, number, range, [&](std::span<const std::byte>) -> absl::StatusOr<bool> {
          referenced = true;
          return false;
        }));
    if (!referenced) continue;
    return UserError(sqlstate::kForeignKeyViolation,
                     absl::StrCat("update or delete on table ", Quote(table_.table->name()),
                                  " violates foreign key constraint ", Quote(key.name()), " on table ",
                                  Quote(child.name())),
                     -1,
                     absl::StrCat("Key ", KeyText(key.parent_columns(), change.before),
                                  " is still referenced from table ", Quote(child.name()), "."));
  }
  return absl::OkStatus();
}

std::string ForeignKeys::KeyText(const Columns& columns, const std::string& row) const {
  const std::vector<Value> values = layout_.Decode(BytesOf(row));
  std::string names, shown;
  for (const uint32_t column : columns) {
    absl::StrAppend(&names, names.empty() ? "" : ", ",
                    table_.table->columns(static_cast<int>(column)).name());
    absl::StrAppend(&shown, column == columns[0] ? "" : ", ", values[column].ToString());
  }
  return absl::StrCat("(", names, ")=(", shown, ")");
}

}  // namespace nam::session
