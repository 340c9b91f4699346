#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "partitioner/record_row.h"
#include "session/record_access.h"
#include "sql/bound_query.h"

namespace nam::session {

/// A row that a statement has changed, as bytes.
struct RowChange {
  std::string before;  // empty: inserted
  std::string after;   // empty: deleted
};

/// Whether a table has foreign keys, or is referenced by some.
inline bool HasReferences(const sql::BoundTable& table) {
  return !table.parents.empty() || !table.children.empty();
}

/// Checks the foreign keys of the rows that a statement has changed, after all changes: new keys have their
/// parents, which are then locked, and removed keys have no children. The commit covers concurrent
/// transactions: by the locks, and by its own search for children (docs/design/transactions.md). Borrows all;
/// belongs to the session's thread.
class ForeignKeys {
 public:
  ForeignKeys(RecordAccess& access, const std::atomic<bool>& cancelled, const sql::BoundTable& table)
      : access_(access), cancelled_(cancelled), table_(table), layout_(*table.table) {}

  /// 23503 if one is violated.
  absl::Status Check(std::span<const RowChange> changes);

 private:
  /// Bytes of a key, with a row that has it.
  using Keys = std::vector<std::pair<std::string, const std::string*>>;

  absl::Status LockParents(const proto::ForeignKey& key, const proto::Table& parent,
                           std::span<const RowChange> changes);
  Keys NewKeys(const proto::ForeignKey& key, const proto::Table& parent,
               std::span<const RowChange> changes) const;
  absl::Status FindParents(const proto::ForeignKey& key, const proto::Table& parent, const Keys& keys,
                           std::set<std::string>& found, std::vector<std::string>& primary_keys);
  absl::Status CheckChildren(const proto::ForeignKey& key, const proto::Table& child,
                             std::span<const RowChange> changes);
  /// `(a, b)=(1, x)`: columns of the table and a row's values.
  std::string KeyText(const google::protobuf::RepeatedField<uint32_t>& columns, const std::string& row) const;

  RecordAccess& access_;
  const std::atomic<bool>& cancelled_;
  const sql::BoundTable& table_;
  const partitioner::RecordLayout layout_;
};

}  // namespace nam::session
