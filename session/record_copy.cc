#include <algorithm>
#include <functional>
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

/// Tells how far a COPY has come, ten times a second.
class CopyProgress {
 public:
  CopyProgress(const std::string& table, const csv::PortionReader& reader, Clock& clock,
               const std::function<void(const QueryProgress&)>& report)
      : table_(table), reader_(reader), clock_(clock), report_(report), began_ns_(clock.NowNs()) {}

  void RowRead() {
    ++rows_;
    if (!report_ || rows_ % kRowsOfALook != 0) return;
    const int64_t now_ns = clock_.NowNs();
    if (now_ns < next_report_ns_) return;
    next_report_ns_ = now_ns + kReportNs;
    const uint64_t read = std::max<uint64_t>(reader_.bytes_read(), 1);
    const double share = static_cast<double>(reader_.bytes()) / static_cast<double>(read);
    report_({.table = table_,
             .rows_done = rows_,
             .rows = static_cast<uint64_t>(static_cast<double>(rows_) * share),
             .elapsed_ms = static_cast<double>(now_ns - began_ns_) / 1e6});
  }

 private:
  static constexpr uint64_t kRowsOfALook = 256;
  static constexpr int64_t kReportNs = 100'000'000;

  const std::string& table_;
  const csv::PortionReader& reader_;
  Clock& clock_;
  const std::function<void(const QueryProgress&)>& report_;
  const int64_t began_ns_;
  int64_t next_report_ns_ = 0;
  uint64_t rows_ = 0;
};

}  // namespace

absl::StatusOr<ResultSet> RecordStatements::Run(const sql::CopyStatement& statement,
                                                const std::function<void(const QueryProgress&)>& report) {
  NAM_RETURN_IF_ERROR(MayRun(statement.batch_rows > 0 ? "COPY with BATCH" : ""));
  NAM_ASSIGN_OR_RETURN(std::vector<std::string> files, FilesOf(statement));
  csv::PortionReader reader(std::move(files), statement.dialect, statement.input);
  reader.Expect(VersionsOf(statement));
  CopiedRecords rows(statement, reader);
  CopyProgress progress(statement.insert.table.table->name(), reader, clock_, report);
  const Interruption interruption(&cancelled_);
  NAM_RETURN_IF_ERROR(rows.Open());
  while (!rows.ended()) {
    const RecordChanges::NextRow next = [&] {
      progress.RowRead();
      return rows.Next();
    };
    const absl::StatusOr<ResultSet> batch =
        statement.batch_rows == 0 ? InsertStream(statement.insert, [&] { return next; })
                                  : InTransaction([&] { return changes_.Insert(statement.insert, next); });
    if (!batch.ok()) return WithRowsThatStay(rows.Placed(batch.status()), rows.count());
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
