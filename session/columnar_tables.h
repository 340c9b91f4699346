#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "partitioner/loader.h"
#include "session/compaction_requests.h"
#include "session/loaded_rows.h"
#include "session/session.h"
#include "session/settings.h"
#include "sql/bound_query.h"

namespace nam::session {

/// Makes and fills columnar tables. A statement's rows become visible at once or not at all, after the
/// existing ones (catalog/chain_groups.h); concurrent appends do not conflict.
class ColumnarTables {
 public:
  using Report = std::function<void(const QueryProgress&)>;
  /// Runs the statement's query, whose rows become the table's.
  using RunSource = std::function<absl::StatusOr<ResultSet>(LoadedRows& rows)>;
  /// Borrows all; `cancelled` ends a COPY.
  ColumnarTables(catalog::Attachment& attachment, const SessionSettings& settings,
                 const std::atomic<bool>& cancelled)
      : attachment_(attachment), settings_(settings), cancelled_(cancelled), compaction_(attachment) {}

  /// Makes an empty table. 42P07: a table of its name exists.
  absl::StatusOr<ResultSet> Create(const sql::CreateTableStatement& statement);
  /// Makes a table of a query's rows. With NO DATA the query does not run. 42P07: a table of its name exists.
  absl::StatusOr<ResultSet> CreateAs(const sql::CreateTableAsStatement& statement, const RunSource& run,
                                     const Report& report);
  /// Appends the rows of files. 40001 if the table has been dropped or replaced meanwhile. `report` runs on a
  /// thread of its own; may be empty.
  absl::StatusOr<ResultSet> Copy(const sql::CopyStatement& statement, const Report& report);
  /// A table of files, with its loader's lifetime.
  struct Loaded {
    std::unique_ptr<partitioner::TableLoader> loader;
    std::shared_ptr<const proto::Table> table;
  };
  absl::StatusOr<Loaded> LoadUncommitted(const sql::CopyStatement& files, const Report& report);
  absl::StatusOr<ResultSet> Insert(const sql::InsertStatement& statement, const RunSource& run);
  absl::StatusOr<ResultSet> Truncate(const sql::TruncateStatement& statement);
  /// ALTER TABLE … ADD COLUMN: makes the table with other columns, from the rows of `run`. 40001 likewise.
  absl::StatusOr<ResultSet> Rewrite(const sql::AlterTableStatement& statement, const RunSource& run);
  /// Merges the groups that exist when it begins into one. 40001 as for COPY.
  absl::StatusOr<ResultSet> Vacuum(const sql::VacuumStatement& statement);

 private:
  /// A load with the rows of the statement's files; its result warns of skipped ones.
  struct Filled {
    std::unique_ptr<partitioner::TableLoader> loader;
    uint64_t rows = 0;
  };
  /// `whole_rows`: refuses rows that no statement could read whole.
  absl::StatusOr<Filled> Fill(const sql::CopyStatement& statement, const partitioner::LoadOptions& options,
                              const Report& report, bool whole_rows, ResultSet& result);
  absl::StatusOr<uint64_t> LoadFiles(const sql::CopyStatement& statement,
                                     const partitioner::LoadOptions& options, const Report& report,
                                     ResultSet& result);
  /// Loads the rows of `fill` into the table, as `options` say.
  absl::StatusOr<uint64_t> Load(const proto::Table& table, const partitioner::LoadOptions& options,
                                const std::vector<int>& columns,
                                const std::function<absl::Status(LoadedRows& rows)>& fill);
  partitioner::LoadOptions AppendTo(const proto::Table& table);
  /// Commits, and asks a compute server to compact if an append has left many groups.
  absl::Status Commit(partitioner::TableLoader& loader, const partitioner::LoadOptions& options);

  catalog::Attachment& attachment_;
  /// Begins a load with the bound on its memory.
  absl::StatusOr<std::unique_ptr<partitioner::TableLoader>> BeginLoad(const proto::Table& table,
                                                                      partitioner::LoadOptions options) const;
  const SessionSettings& settings_;
  const std::atomic<bool>& cancelled_;
  CompactionRequests compaction_;
};

}  // namespace nam::session
