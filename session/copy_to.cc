#include "session/copy_to.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "csv/byte_sink.h"
#include "csv/inflated_source.h"
#include "csv/row_writer.h"
#include "session/result_batch.h"

namespace nam::session {
namespace {

/// Writes rows as text into a sink.
class WrittenRows final : public RowReceiver {
 public:
  WrittenRows(const sql::CopyToStatement& statement, std::unique_ptr<csv::ByteSink> sink)
      : header_(statement.dialect.header),
        writer_(statement.dialect, statement.force_quote.size(), statement.force_quote),
        sink_(std::move(sink)) {}

  absl::Status Begin(const std::vector<ResultSet::Column>& columns) override {
    if (!header_) return absl::OkStatus();
    std::vector<std::string> names;
    for (const ResultSet::Column& column : columns) names.push_back(column.name);
    return writer_.AddHeader(names, text_);
  }
  absl::Status Add(const ResultBatch& rows) override {
    for (size_t row = 0; row < rows.rows(); ++row) {
      for (size_t column = 0; column < rows.columns(); ++column)
        NAM_RETURN_IF_ERROR(AddField(rows, column, row));
      writer_.EndRow(text_);
      if (text_.size() >= kWriteBytes) NAM_RETURN_IF_ERROR(Flush());
    }
    rows_ += rows.rows();
    return absl::OkStatus();
  }
  uint64_t bytes_held() const override { return text_.capacity(); }

  absl::Status End() {
    NAM_RETURN_IF_ERROR(Flush());
    return sink_->Finish();
  }
  uint64_t rows() const { return rows_; }

 private:
  static constexpr size_t kWriteBytes = 1 << 20;

  absl::Status AddField(const ResultBatch& rows, size_t column, size_t row) {
    if (rows.null(column, row)) {
      writer_.AddNull(text_);
      return absl::OkStatus();
    }
    if (rows.is_text(column, row)) return writer_.Add(rows.text(column, row), text_);
    field_.clear();
    rows.AppendText(column, row, field_);
    return writer_.Add(field_, text_);
  }
  absl::Status Flush() {
    const absl::Status written = sink_->Write(text_);
    text_.clear();
    return written;
  }

  const bool header_;
  csv::RowWriter writer_;
  const std::unique_ptr<csv::ByteSink> sink_;
  std::string text_;   // not yet in the sink
  std::string field_;  // of the current row
  uint64_t rows_ = 0;
};

absl::StatusOr<std::unique_ptr<csv::ByteSink>> OpenSink(const sql::CopyToStatement& statement,
                                                        RowReceiver& client) {
  if (statement.path.empty())
    return csv::SinkTo([&client](std::string_view bytes) { return client.Write(bytes); });
  return csv::CreateFile(statement.path);
}

}  // namespace

absl::StatusOr<ResultSet> CopyTo(const sql::CopyToStatement& statement, RowReceiver& client,
                                 const std::function<absl::StatusOr<ResultSet>(RowReceiver& rows)>& run) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<csv::ByteSink> sink, OpenSink(statement, client));
  const csv::Compression compression = csv::CompressionOf(statement.path, statement.dialect);
  WrittenRows rows(statement, csv::Deflate(std::move(sink), compression));
  NAM_RETURN_IF_ERROR(run(rows).status());
  NAM_RETURN_IF_ERROR(rows.End());
  ResultSet result;
  result.command = absl::StrCat("COPY ", rows.rows());
  return result;
}

}  // namespace nam::session
