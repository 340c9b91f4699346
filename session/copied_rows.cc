#include "session/copied_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "csv/inflated_source.h"
#include "partitioner/assigned_value.h"
#include "sql/constraints.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

/// An error of the file, not of the statement's text.
absl::Status Prefixed(const std::string& place, const absl::Status& error) {
  SqlError out = SqlErrorOf(error).value_or(
      SqlError{.message = std::string(error.message()), .hint = {}, .sqlstate = sqlstate::kInternalError});
  out.message = absl::StrCat(place, ": ", out.message);
  out.position = -1;
  return ToStatus(out);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesOf(const sql::CopyStatement& statement) {
  if (statement.path.empty()) return std::vector<std::string>();
  if (!statement.files.empty()) {
    std::vector<std::string> paths;
    for (const csv::SniffedFile& file : statement.files) paths.push_back(file.path);
    return paths;
  }
  return csv::FilesOf(statement.path);
}

std::vector<csv::FileVersion> VersionsOf(const sql::CopyStatement& statement) {
  std::vector<csv::FileVersion> versions;
  for (const csv::SniffedFile& file : statement.files) versions.push_back(file.version);
  return versions;
}

const proto::Column& CopiedRows::ColumnOf(size_t field) const {
  return statement_.insert.table.table->columns(statement_.insert.columns[field]);
}

absl::StatusOr<bool> CopiedRows::NextPortion() {
  NAM_ASSIGN_OR_RETURN(const bool more, reader_.Next(portion_));
  if (!more) return false;
  if (source_ == nullptr || *source_ != portion_.source)
    source_ = std::make_shared<const std::string>(portion_.source);
  splitter_.Begin(portion_.text, portion_.last);
  if (file() == nullptr) return true;
  portion_.header = portion_.first && file()->header;
  arranged_ = file()->columns.size() == statement_.insert.columns.size();
  for (size_t i = 0; i < file()->columns.size(); ++i)
    arranged_ = arranged_ && file()->columns[i] == static_cast<int>(i);
  return true;
}

bool CopiedRows::IsSkippedBlank() const {
  if (!splitter_.line().empty()) return false;
  // For PostgreSQL the first line is the header, whatever it has.
  return width() != 1 || (file() != nullptr && portion_.header);
}

void CopiedRows::Arrange(std::vector<csv::Field>& fields) {
  if (arranged_) return;
  row_fields_.assign(statement_.insert.columns.size(), {.text = {}, .null = true});
  for (size_t i = 0; i < fields.size(); ++i) row_fields_[static_cast<size_t>(file()->columns[i])] = fields[i];
  if (statement_.file_name_column >= 0)
    row_fields_[static_cast<size_t>(statement_.file_name_column)] = {.text = file()->path, .null = false};
  fields.swap(row_fields_);
}

absl::StatusOr<bool> CopiedRows::Next(std::vector<csv::Field>& fields) {
  while (true) {
    const absl::StatusOr<bool> more = splitter_.Next(fields);
    of_one_row_ = false;
    if (!more.ok()) return AtRow(more.status());
    if (!*more) return false;
    if (file() != nullptr && IsSkippedBlank()) continue;
    if (std::exchange(portion_.header, false)) {
      NAM_RETURN_IF_ERROR(CheckHeader(fields));
      continue;
    }
    if (IsSkippedBlank()) continue;
    of_one_row_ = true;
    NAM_RETURN_IF_ERROR(CheckWidth(fields));
    Arrange(fields);
    return true;
  }
}

absl::Status CopiedRows::CheckHeader(const std::vector<csv::Field>& fields) const {
  if (!statement_.match_header) return absl::OkStatus();
  const size_t columns = statement_.insert.columns.size();
  if (fields.size() != columns) {
    return AtRow(UserError(
        sqlstate::kBadCopyFormat,
        absl::StrCat("wrong number of fields in header line: got ", fields.size(), ", expected ", columns),
        -1));
  }
  for (size_t i = 0; i < columns; ++i) {
    if (!fields[i].null && fields[i].text == ColumnOf(i).name()) continue;
    return AtRow(UserError(sqlstate::kBadCopyFormat,
                           absl::StrCat("column name mismatch in header line field ", i + 1, ": got ",
                                        Quote(fields[i].text), ", expected ", Quote(ColumnOf(i).name())),
                           -1, "name the columns in the file's order: COPY t (a, b) FROM …"));
  }
  return absl::OkStatus();
}

absl::Status CopiedRows::CheckWidth(std::vector<csv::Field>& fields) const {
  const size_t columns = width();
  // dbgen ends its lines with a delimiter.
  if (fields.size() == columns + 1 && statement_.dialect.delimiter == '|' && fields.back().text.empty() &&
      splitter_.line().ends_with('|'))
    fields.pop_back();
  if (fields.size() == columns) return absl::OkStatus();
  const bool fewer = fields.size() < columns;
  const auto column_of = [&](size_t field) -> const proto::Column& {
    return ColumnOf(file() == nullptr ? field : static_cast<size_t>(file()->columns[field]));
  };
  return AtRow(
      UserError(sqlstate::kBadCopyFormat,
                fewer ? absl::StrCat("missing data for column ", Quote(column_of(fields.size()).name()))
                      : "extra data after last expected column",
                -1, absl::StrCat("the row has ", fields.size(), " fields instead of ", columns)));
}

absl::StatusOr<Value> CopiedRows::ValueOf(size_t field, const csv::Field& text) {
  const proto::Table& table = *statement_.insert.table.table;
  const int column = statement_.insert.columns[field];
  Value value = Value::Null(statement_.values[field].type);
  if (!text.null) {
    if (int bad = 0; !IsCleanUtf8(text.text, &bad)) {
      return UserError(sqlstate::kBadEncoding, "invalid byte sequence for encoding \"UTF8\"", -1,
                       "convert the file to UTF-8, with iconv");
    }
    texts_.resize(statement_.values.size());
    texts_[field] = Value::String(std::string(text.text));
    NAM_ASSIGN_OR_RETURN(value, plan::Evaluate(statement_.values[field], sql::RowResolver(texts_)));
  }
  return partitioner::Assign(table, column, std::move(value), -1);
}

absl::Status CopiedRows::AtRow(const absl::Status& error) const {
  return Prefixed(absl::StrCat(portion_.source, ":", portion_.first_line + splitter_.lines_before()), error);
}

absl::Status CopiedRows::Place::At(const absl::Status& error) const {
  return Prefixed(absl::StrCat(*source, ":", line), error);
}

absl::Status CopiedRows::AtField(size_t field, const absl::Status& error) const {
  const absl::Status placed =
      Prefixed(absl::StrCat(portion_.source, ":", portion_.first_line + splitter_.lines_before(), ": column ",
                            ColumnOf(field).name()),
               error);
  if (statement_.forms.empty()) return placed;
  SqlError out = *SqlErrorOf(placed);
  out.hint = "types come from the files' first rows; read_csv('…', all_varchar => true) reads all as text";
  return ToStatus(out);
}

absl::Status SkippedRows::Open(const sql::CopyStatement& statement) {
  if (statement.rejects.empty()) return absl::OkStatus();
  const MutexLock lock(mutex_);
  NAM_ASSIGN_OR_RETURN(rejects_, csv::CreateFile(statement.rejects));
  rejects_ = csv::Deflate(std::move(rejects_), csv::CompressionOf(statement.rejects));
  return absl::OkStatus();
}

absl::Status SkippedRows::Add(const absl::Status& error, std::string_view row) {
  const MutexLock lock(mutex_);
  if (++count_ <= kShown) first_.push_back(SqlErrorOf(error)->message);
  if (rejects_ == nullptr) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(rejects_->Write(row));
  return row.ends_with('\n') ? absl::OkStatus() : rejects_->Write("\n");
}

absl::Status SkippedRows::Finish(ResultSet& result) {
  const MutexLock lock(mutex_);
  if (rejects_ != nullptr) NAM_RETURN_IF_ERROR(rejects_->Finish());
  if (count_ == 0) return absl::OkStatus();
  std::string message = absl::StrCat(count_, count_ == 1 ? " row was" : " rows were", " left out: ");
  absl::StrAppend(&message, absl::StrJoin(first_, "; "), count_ > kShown ? "; …" : "");
  result.warnings.push_back({std::move(message), sqlstate::kWarning});
  return absl::OkStatus();
}

}  // namespace nam::session
