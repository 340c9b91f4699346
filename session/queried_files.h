#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/task.h"
#include "fabric/fabric.h"
#include "plan/logical.h"
#include "plan/physical.h"
#include "proto/table.pb.h"
#include "session/columnar_tables.h"
#include "sql/bound_query.h"

namespace nam::session {

/// The files that a statement names in its FROM. The session's stage reads their rows as they are wanted:
///
///     FileScan ─▶ plan::FileSource ─▶ FileRows
///
/// unless they are joined to a larger table, which is not to come to the session. Then they travel: as a load
/// that is never committed. It lies in memory servers, compute servers learn of it with their part of the
/// query, and it ends with the statement or with the client's lease.
class QueriedFiles {
 public:
  /// Borrows all; `cancel` ends what is read.
  QueriedFiles(ColumnarTables& columnar, fabric::Fabric& fabric, const std::atomic<bool>& cancel)
      : columnar_(columnar), fabric_(fabric), cancel_(cancel) {}

  /// Returns their number until Clear.
  uint32_t Add(const sql::CopyStatement& files);
  bool empty() const { return files_.empty(); }
  /// Called at the statement's end.
  void Clear() { files_.clear(); }

  /// A source of their rows, for so many tasks.
  absl::StatusOr<std::unique_ptr<execution::Source>> Read(const plan::FileSource& source,
                                                          const plan::Schema& rows, int tasks);

  using Report = ColumnarTables::Report;
  /// Makes scans of loaded tables of those scans of files that are joined to a larger table.
  absl::Status LoadForJoins(plan::logical::Node& root, const Report& report);
  /// The same for all scans of files. False: there is none.
  absl::StatusOr<bool> LoadAll(plan::logical::Node& root, const Report& report);

 private:
  struct Entry {
    sql::CopyStatement statement;
    ColumnarTables::Loaded loaded;  // without a table: it was not
  };
  absl::Status Load(plan::logical::Node& scan, const Report& report);

  ColumnarTables& columnar_;
  fabric::Fabric& fabric_;
  const std::atomic<bool>& cancel_;
  std::deque<Entry> files_;  // a deque: sources refer to statements
};

}  // namespace nam::session
