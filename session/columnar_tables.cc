#include "session/columnar_tables.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/interruption.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "csv/portion_reader.h"
#include "partitioner/appended_table.h"
#include "partitioner/compaction.h"
#include "partitioner/group_writer.h"
#include "partitioner/loader.h"
#include "session/catalog_changes.h"
#include "session/copied_columns.h"
#include "session/copied_rows.h"
#include "sql/constraints.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::session {
namespace {

constexpr int64_t kReportNs = 200'000'000;
/// Each try fails because another session has appended, or a group of the table was compacted.
constexpr int kTries = 100;

absl::Status ChangedMeanwhile(const std::string& table) {
  return ToStatus(
      {.message = absl::StrCat("table ", Quote(table), " was dropped or replaced by another session"),
       .hint = "nothing of this statement has happened",
       .sqlstate = sqlstate::kSerializationFailure});
}

absl::Status AlreadyExists(const sql::CreateTableStatement& statement) {
  return ToStatus({.message = absl::StrCat("relation ", Quote(statement.table.name()), " already exists"),
                   .position = statement.position,
                   .hint = "DROP TABLE first, or write IF NOT EXISTS",
                   .sqlstate = sqlstate::kDuplicateTable});
}

/// Whether an append failed because its table is gone, or was replaced.
bool HasGone(catalog::Attachment& attachment, const proto::Table& table, const absl::Status& status) {
  if (!absl::IsAborted(status) && !absl::IsFailedPrecondition(status) && !absl::IsNotFound(status))
    return false;
  const auto now = attachment.catalog().GetTable(table.name());
  if (!now.ok()) return absl::IsNotFound(now.status());
  return catalog::CreationOf(**now) != catalog::CreationOf(table);
}

partitioner::LoadOptions InsteadOf(const proto::Table& table) {
  return {.block_bytes = table.block_bytes(),
          .pointer_group = table.pointer_group(),
          .replace = true,
          .replaces = AllocationId(table.allocation())};
}

std::vector<int> AllColumns(const proto::Table& table) {
  std::vector<int> columns(static_cast<size_t>(table.columns_size()));
  std::iota(columns.begin(), columns.end(), 0);
  return columns;
}

/// One COPY: threads take portions of the files, and give their rows to the loader.
class ParallelCopy {
 public:
  ParallelCopy(const sql::CopyStatement& statement, csv::PortionReader& reader,
               partitioner::TableLoader& loader, fabric::Fabric& fabric, const std::atomic<bool>& cancelled,
               const ColumnarTables::Report& report, bool whole_rows)
      : statement_(statement),
        whole_rows_(whole_rows),
        reader_(reader),
        loader_(loader),
        fabric_(fabric),
        cancelled_(cancelled),
        report_(report),
        began_ns_(fabric.clock().NowNs()),
        next_report_ns_(began_ns_ + kReportNs) {}

  /// Returns the error of the first bad row, whichever thread finds it.
  absl::Status Run() {
    {
      std::vector<std::unique_ptr<fabric::Thread>> threads;
      for (int t = 0; t < partitioner::LoadThreads(fabric_); ++t) {
        auto started = fabric_.TryStartThread(absl::StrCat("nam-copy-", t), [this] { Work(); });
        if (!started.ok()) break;
        threads.push_back(*std::move(started));
      }
      if (threads.empty()) Work();  // this thread is better than none
    }
    if (failed_portion_ != kNone) {
      const MutexLock lock(mutex_);
      return error_;
    }
    return cancelled_ ? absl::CancelledError("cancelled") : absl::OkStatus();
  }
  uint64_t rows() const { return rows_; }
  SkippedRows& skipped() { return skipped_; }

 private:
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

  void Work() {
    const Interruption interruption(&cancelled_);
    CopiedRows rows(statement_, reader_);
    CopiedColumns columns(statement_, rows, whole_rows_);
    partitioner::ColumnBatch batch(static_cast<size_t>(statement_.insert.table.table->columns_size()));
    while (!cancelled_ && failed_portion_ == kNone) {
      const absl::StatusOr<bool> more = rows.NextPortion();
      // An unreadable file fails after all rows that were read.
      if (!more.ok()) Fail(kNone - 1, more.status());
      if (!more.ok() || !*more) return;
      if (const absl::Status status = TakePortion(rows, columns, batch); !status.ok())
        Fail(rows.portion().number, status);
      batch.Clear();
    }
  }

  absl::Status TakePortion(CopiedRows& rows, CopiedColumns& columns, partitioner::ColumnBatch& batch) {
    std::vector<csv::Field> fields;
    while (true) {
      const absl::StatusOr<bool> more = rows.Next(fields);
      absl::Status status = more.ok() && *more ? columns.Add(fields, batch) : more.status();
      if (!status.ok() && statement_.skip_errors && rows.of_one_row()) {
        NAM_RETURN_IF_ERROR(skipped_.Add(status, rows.row()));
        continue;
      }
      NAM_RETURN_IF_ERROR(status);
      if (!*more) break;
    }
    if (batch.rows() == 0) return absl::OkStatus();
    batch.set_place(rows.portion().number);
    NAM_RETURN_IF_ERROR(loader_.Append(batch));
    rows_ += batch.rows();
    Tell();
    return absl::OkStatus();
  }

  void Fail(uint64_t portion, absl::Status status) {
    const MutexLock lock(mutex_);
    if (portion >= failed_portion_) return;
    error_ = std::move(status);
    failed_portion_ = portion;
  }

  void Tell() {
    if (!report_ || !mutex_.TryLock()) return;
    const MutexLock lock(mutex_, std::adopt_lock);
    const int64_t now_ns = fabric_.clock().NowNs();
    if (now_ns < next_report_ns_) return;
    next_report_ns_ = now_ns + kReportNs;
    QueryProgress progress;
    progress.table = statement_.insert.table.table->name();
    progress.rows_done = rows_;
    const double share = static_cast<double>(reader_.bytes_read()) /
                         static_cast<double>(std::max<uint64_t>(reader_.bytes(), 1));
    progress.rows = reader_.bytes() == 0 ? 0 : static_cast<uint64_t>(static_cast<double>(rows_) / share);
    progress.elapsed_ms = static_cast<double>(now_ns - began_ns_) / 1e6;
    report_(progress);
  }

  const sql::CopyStatement& statement_;
  const bool whole_rows_;
  csv::PortionReader& reader_;
  partitioner::TableLoader& loader_;
  fabric::Fabric& fabric_;
  const std::atomic<bool>& cancelled_;
  const ColumnarTables::Report& report_;
  const int64_t began_ns_;
  std::atomic<uint64_t> rows_ = 0;
  SkippedRows skipped_;
  std::atomic<uint64_t> failed_portion_ = kNone;  // the first; written under the mutex
  Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);  // of failed_portion_
  int64_t next_report_ns_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

partitioner::LoadOptions ColumnarTables::AppendTo(const proto::Table& table) {
  partitioner::LoadOptions options{.block_bytes = table.block_bytes(),
                                   .pointer_group = table.pointer_group(),
                                   .append = true,
                                   .appends_to = catalog::CreationOf(table)};
  if (!settings_.compaction) return options;
  options.await_room = [this](const proto::Table& full, const absl::Status& why) {
    return compaction_.AwaitRoom(full, why, cancelled_);
  };
  return options;
}

absl::Status ColumnarTables::Commit(partitioner::TableLoader& loader,
                                    const partitioner::LoadOptions& options) {
  NAM_ASSIGN_OR_RETURN(const proto::Table table, loader.Commit());
  if (options.append && settings_.compaction) compaction_.After(table);
  return absl::OkStatus();
}

absl::StatusOr<ResultSet> ColumnarTables::Create(const sql::CreateTableStatement& statement) {
  const partitioner::LoadOptions options{.block_bytes = statement.table.block_bytes()};
  const absl::Status created =
      Load(statement.table, options, {}, [](LoadedRows&) { return absl::OkStatus(); }).status();
  if (absl::IsAlreadyExists(created)) {
    if (statement.if_not_exists) return AlreadyThere("CREATE TABLE", statement.table.name());
    return AlreadyExists(statement);
  }
  NAM_RETURN_IF_ERROR(created);
  return CreatedTable(statement, "CREATE TABLE");
}

absl::StatusOr<ResultSet> ColumnarTables::CreateAs(const sql::CreateTableAsStatement& statement,
                                                   const RunSource& run, const Report& report) {
  const proto::Table& table = statement.create.table;
  const partitioner::LoadOptions options{.block_bytes = table.block_bytes()};
  ResultSet result;
  const auto fill = [&](LoadedRows& rows) -> absl::Status {
    return statement.with_data ? run(rows).status() : absl::OkStatus();
  };
  const absl::StatusOr<uint64_t> rows = statement.file != nullptr
                                            ? LoadFiles(*statement.file, options, report, result)
                                            : Load(table, options, AllColumns(table), fill);
  if (absl::IsAlreadyExists(rows.status())) {
    if (statement.create.if_not_exists) return AlreadyThere("CREATE TABLE AS", table.name());
    return AlreadyExists(statement.create);
  }
  NAM_RETURN_IF_ERROR(rows.status());
  ResultSet created = CreatedTable(statement.create,
                                   statement.with_data ? absl::StrCat("SELECT ", *rows) : "CREATE TABLE AS");
  result.command = std::move(created.command);
  std::move(created.warnings.begin(), created.warnings.end(), std::back_inserter(result.warnings));
  return result;
}

absl::StatusOr<std::unique_ptr<partitioner::TableLoader>> ColumnarTables::BeginLoad(
    const proto::Table& table, partitioner::LoadOptions options) const {
  NAM_ASSIGN_OR_RETURN(const partitioner::TableSchema schema, partitioner::SchemaOf(table));
  options.staged_bytes_max = settings_.load_bytes_max();
  options.cancel = &cancelled_;
  return partitioner::BeginLoad(attachment_, schema, options);
}

absl::StatusOr<uint64_t> ColumnarTables::Load(const proto::Table& table,
                                              const partitioner::LoadOptions& options,
                                              const std::vector<int>& columns,
                                              const std::function<absl::Status(LoadedRows& rows)>& fill) {
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<partitioner::TableLoader> loader, BeginLoad(table, options));
  LoadedRows rows(table, columns, *loader, options);
  NAM_RETURN_IF_ERROR(fill(rows));
  NAM_RETURN_IF_ERROR(rows.End());
  NAM_RETURN_IF_ERROR(Commit(*loader, options));
  return rows.rows();
}

absl::StatusOr<ResultSet> ColumnarTables::Insert(const sql::InsertStatement& statement,
                                                 const RunSource& run) {
  const proto::Table& table = *statement.table.table;
  const auto fill = [&](LoadedRows& rows) -> absl::Status {
    if (statement.source != nullptr) return run(rows).status();
    for (const std::vector<sql::ChangeValue>& given : statement.rows) {
      std::vector<Value> row;
      for (size_t i = 0; i < given.size(); ++i) {
        const Type type = ColumnTypeOf(table.columns(statement.columns[i]).type());
        row.push_back(Value::Null(type));
        if (!given[i].has_value()) {  // DEFAULT
          NAM_ASSIGN_OR_RETURN(row.back(), sql::ConstantDefault(table.columns(statement.columns[i])));
          continue;
        }
        NAM_ASSIGN_OR_RETURN(row.back(), plan::Evaluate(*given[i], sql::ValueResolver()));
      }
      NAM_RETURN_IF_ERROR(rows.Add(row));
    }
    return absl::OkStatus();
  };
  const absl::StatusOr<uint64_t> rows = Load(table, AppendTo(table), statement.columns, fill);
  if (HasGone(attachment_, table, rows.status())) return ChangedMeanwhile(table.name());
  NAM_RETURN_IF_ERROR(rows.status());
  return CommandResult(absl::StrCat("INSERT 0 ", *rows));
}

absl::StatusOr<ResultSet> ColumnarTables::Truncate(const sql::TruncateStatement& statement) {
  std::shared_ptr<const proto::Table> table = statement.table.table;
  for (int tries = 1;; ++tries) {
    partitioner::LoadOptions options = InsteadOf(*table);
    options.empties = true;
    const absl::Status emptied =
        Load(*table, options, {}, [](LoadedRows&) { return absl::OkStatus(); }).status();
    if (emptied.ok()) return CommandResult("TRUNCATE TABLE");
    if (!absl::IsAborted(emptied)) return emptied;
    const auto now = attachment_.catalog().GetTable(table->name());
    if (!now.ok() || tries == kTries || (*now)->has_record() ||
        catalog::CreationOf(**now) != catalog::CreationOf(*table))
      return ChangedMeanwhile(table->name());
    table = *now;
  }
}

absl::StatusOr<ResultSet> ColumnarTables::Rewrite(const sql::AlterTableStatement& statement,
                                                  const RunSource& run) {
  const proto::Table& table = statement.changed;
  const absl::Status rewritten =
      Load(table, InsteadOf(*statement.table), AllColumns(table), [&](LoadedRows& rows) {
        return run(rows).status();
      }).status();
  if (absl::IsAborted(rewritten)) return ChangedMeanwhile(table.name());
  if (absl::IsFailedPrecondition(rewritten) && absl::StrContains(rewritten.message(), "depends on")) {
    return ToStatus(
        {.message = absl::StrCat("cannot alter ", Quote(table.name()), ": ",
                                 absl::StrReplaceAll(catalog::MessageOfService(rewritten), {{"`", "\""}})),
         .position = statement.position,
         .hint = "DROP VIEW first: the new column's name means something else in it",
         .sqlstate = sqlstate::kDependentObjects});
  }
  NAM_RETURN_IF_ERROR(rewritten);
  ResultSet result = CommandResult(statement.command);
  for (const std::string& notice : statement.notices) AddNotice(notice, result);
  return result;
}

/// Others may append meanwhile: their groups stay as they are. Others may compact.
absl::StatusOr<ResultSet> ColumnarTables::Vacuum(const sql::VacuumStatement& statement) {
  std::shared_ptr<const proto::Table> table = statement.table;
  for (int tries = 1; catalog::GroupCount(*table) > 1; ++tries) {
    std::vector<uint32_t> groups(catalog::GroupCount(*table));
    std::iota(groups.begin(), groups.end(), 0);
    const absl::Status compacted = partitioner::CompactGroups(
        attachment_, *table, groups,
        {.threads = partitioner::LoadThreads(attachment_.fabric()), .cancel = &cancelled_});
    if (compacted.ok()) break;
    if (HasGone(attachment_, *table, compacted)) return ChangedMeanwhile(table->name());
    if (!absl::IsAborted(compacted) || tries == kTries) return compacted;
    NAM_ASSIGN_OR_RETURN(table, attachment_.catalog().GetTable(table->name()));
  }
  return CommandResult("VACUUM");
}

absl::StatusOr<ResultSet> ColumnarTables::Copy(const sql::CopyStatement& statement, const Report& report) {
  const proto::Table& table = *statement.insert.table.table;
  ResultSet result;
  const absl::StatusOr<uint64_t> rows = LoadFiles(statement, AppendTo(table), report, result);
  if (HasGone(attachment_, table, rows.status())) return ChangedMeanwhile(table.name());
  NAM_RETURN_IF_ERROR(rows.status());
  result.command = absl::StrCat("COPY ", *rows);
  return result;
}

absl::StatusOr<uint64_t> ColumnarTables::LoadFiles(const sql::CopyStatement& statement,
                                                   const partitioner::LoadOptions& options,
                                                   const Report& report, ResultSet& result) {
  NAM_ASSIGN_OR_RETURN(const Filled filled, Fill(statement, options, report, true, result));
  NAM_RETURN_IF_ERROR(Commit(*filled.loader, options));
  return filled.rows;
}

absl::StatusOr<ColumnarTables::Loaded> ColumnarTables::LoadUncommitted(const sql::CopyStatement& files,
                                                                       const Report& report) {
  // Nothing is committed, so no table of this name is replaced.
  const partitioner::LoadOptions options{.block_bytes = files.insert.table.table->block_bytes(),
                                         .replace = true};
  ResultSet result;
  // For the catalog a dotted name would be in a schema.
  sql::CopyStatement unnamed = files;
  auto described = std::make_shared<proto::Table>(*files.insert.table.table);
  described->set_name("read_csv");
  unnamed.insert.table.table = std::move(described);
  // Its query need not read all columns, nor all rows.
  NAM_ASSIGN_OR_RETURN(Filled filled, Fill(unnamed, options, report, false, result));
  NAM_ASSIGN_OR_RETURN(proto::Table table, filled.loader->WriteOnly());
  table.set_name(files.insert.table.table->name());
  return Loaded{std::move(filled.loader), std::make_shared<const proto::Table>(std::move(table))};
}

absl::StatusOr<ColumnarTables::Filled> ColumnarTables::Fill(const sql::CopyStatement& statement,
                                                            const partitioner::LoadOptions& options,
                                                            const Report& report, bool whole_rows,
                                                            ResultSet& result) {
  NAM_ASSIGN_OR_RETURN(std::vector<std::string> files, FilesOf(statement));
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<partitioner::TableLoader> loader,
                       BeginLoad(*statement.insert.table.table, options));
  csv::PortionReader reader(std::move(files), statement.dialect, statement.input);
  reader.Expect(VersionsOf(statement));
  ParallelCopy copy(statement, reader, *loader, attachment_.fabric(), cancelled_, report, whole_rows);
  const Interruption interruption(&cancelled_);
  NAM_RETURN_IF_ERROR(copy.skipped().Open(statement));
  NAM_RETURN_IF_ERROR(copy.Run());
  NAM_RETURN_IF_ERROR(copy.skipped().Finish(result));
  return Filled{std::move(loader), copy.rows()};
}

}  // namespace nam::session
