#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "csv/portion_reader.h"
#include "session/copied_records.h"
#include "session/record_statements.h"
#include "types/sql_error.h"

/// COPY … FROM into record tables.
namespace nam::session {
namespace {

/// So many rows are worth a columnar table.
constexpr uint64_t kManyRows = 1'000'000;

/// Adds the rows that earlier batches have left to the error.
absl::Status WithRowsThatStay(const absl::Status& error, uint64_t rows) {
  std::optional<SqlError> out = SqlErrorOf(error);
  if (rows == 0 || !out.has_value()) return error;
  absl::StrAppend(&out->hint, out->hint.empty() ? "" : "; ", "the batches before it stay: ", rows,
                  rows == 1 ? " row" : " rows");
  return ToStatus(*out);
}

}  // namespace

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::CopyStatement& statement) {
  NAM_RETURN_IF_ERROR(MayRun(statement.batch_rows > 0 ? "COPY with BATCH" : ""));
  NAM_ASSIGN_OR_RETURN(std::vector<std::string> files, FilesOf(statement));
  csv::PortionReader reader(std::move(files), statement.dialect, statement.input);
  CopiedRecords rows(statement, reader);
  const Interruption interruption(&cancelled_);
  NAM_RETURN_IF_ERROR(rows.Open());
  while (!rows.ended()) {
    const absl::StatusOr<ResultSet> batch =
        InTransaction([&] { return changes_.Insert(statement.insert, [&] { return rows.Next(); }); });
    if (!batch.ok()) return WithRowsThatStay(batch.status(), rows.count());
    rows.EndBatch();
    // A statement without batches is one transaction.
    if (statement.batch_rows == 0) break;
  }
  NAM_ASSIGN_OR_RETURN(ResultSet result, rows.Finish());
  if (rows.count() >= kManyRows && !std::exchange(told_of_columnar_tables_, true)) {
    result.warnings.push_back(
        {"a columnar table loads and scans so many rows faster: CREATE TABLE … WITH (storage = columnar)",
         sqlstate::kSuccess});
  }
  return result;
}

}  // namespace nam::session
