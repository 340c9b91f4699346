#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "txn/index/table_index.h"
#include "txn/rsi/row_reader.h"
#include "txn/rsi/session_core.h"

namespace nam::txn {

/// The part of a commit that protects foreign keys: before the commit deletes referenced rows or changes
/// their keys, it searches the children's indexes for the old keys.
///
///     child    lock the parent ─▶ entry in the child's index ─▶ decide ─▶ give the parent's header back
///     parent   lock the row    ─▶ look for entries           ─▶ decide
///
/// The two locks of the parent's row exclude each other. If the child's comes first, its entry exists before
/// the other can lock the row, and the search finds it. If the deletion comes first, the header that the
/// child expects never comes back. docs/design/transactions.md.
class ReferencedRows {
 public:
  ReferencedRows(SessionCore& core, RowReader& reader)
      : core_(core),
        reader_(reader),
        batch_(core.batch),
        writes_(core.transaction.writes),
        transaction_(core.transaction) {}

  /// Runs after the locks of all rows and after the transaction's own entries. FAILED_PRECONDITION
  /// (kForeignKey): a row references one that goes; ABORTED: one may.
  absl::Status Check();

 private:
  struct Referencing;
  RecordTable& table(uint32_t number) { return core_.table(number); }
  absl::Status CheckReference(uint32_t parent, const ReferenceDescription& reference);
  /// The number of the open child; nullopt if it was dropped.
  absl::StatusOr<std::optional<uint32_t>> ChildOf(const ReferenceDescription& reference);
  std::optional<uint32_t> OpenChild(const ReferenceDescription& reference);
  absl::Status Judge(const Referencing& referencing, std::span<const uint64_t> records);
  absl::Status Judge(const Referencing& referencing, const BlockRead& block);

  SessionCore& core_;
  RowReader& reader_;
  storage::VerbBatch& batch_;
  WriteSet& writes_;
  const RsiTransaction& transaction_;
};

}  // namespace nam::txn
