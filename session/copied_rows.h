#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "csv/byte_sink.h"
#include "csv/portion_reader.h"
#include "csv/row_splitter.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// The files of a COPY, in their order; standard input if it names none. 58P01 if a pattern matches no file.
absl::StatusOr<std::vector<std::string>> FilesOf(const sql::CopyStatement& statement);
/// The versions of files in a query, as its binder has seen them; empty: of none.
std::vector<csv::FileVersion> VersionsOf(const sql::CopyStatement& statement);

/// Rows of a COPY, portion by portion, as fields and as values. Belongs to one thread; a reader may have
/// several.
class CopiedRows {
 public:
  /// Borrows both.
  CopiedRows(const sql::CopyStatement& statement, csv::PortionReader& reader)
      : statement_(statement), reader_(reader), splitter_(statement.dialect) {}

  /// Advances to the next portion of the files. False if there is none.
  absl::StatusOr<bool> NextPortion();
  const csv::Portion& portion() const { return portion_; }

  /// The next row of the portion, with a field for each column of the statement. False if there is none.
  /// Skips empty lines, unless there is one column only. Errors tell the row's place: 22P04 if it has fewer
  /// or more fields.
  absl::StatusOr<bool> Next(std::vector<csv::Field>& fields);
  /// Whether the last error concerns one row alone, so that the next one may be read.
  bool of_one_row() const { return of_one_row_; }

  /// The text of the row from Next.
  std::string_view row() const { return splitter_.row(); }

  /// A field as a value of its column (`field`: in the statement): as `'text'` is in an INSERT.
  absl::StatusOr<Value> ValueOf(size_t field, const csv::Field& text);
  /// The error, with the place of the row from Next: `people.csv:17: column age: …`.
  absl::Status AtField(size_t field, const absl::Status& error) const;
  absl::Status AtRow(const absl::Status& error) const;
  /// The place of the row from Next.
  struct Place {
    std::shared_ptr<const std::string> source;
    uint64_t line = 0;
    absl::Status At(const absl::Status& error) const;
  };
  Place place() const { return {source_, portion_.first_line + splitter_.lines_before()}; }

 private:
  absl::Status CheckHeader(const std::vector<csv::Field>& fields) const;
  absl::Status CheckWidth(std::vector<csv::Field>& fields) const;
  /// Whether a row without a character is none.
  bool IsSkippedBlank() const;
  /// Puts fields of one of several files into the order of the statement's columns.
  void Arrange(std::vector<csv::Field>& fields);
  /// The portion's, of files in a query; else null.
  const csv::SniffedFile* file() const {
    return statement_.files.empty() ? nullptr : &statement_.files[portion_.file];
  }
  size_t width() const {
    return file() == nullptr ? statement_.insert.columns.size() : file()->columns.size();
  }
  const proto::Column& ColumnOf(size_t field) const;

  const sql::CopyStatement& statement_;
  csv::PortionReader& reader_;
  csv::RowSplitter splitter_;
  csv::Portion portion_;
  std::shared_ptr<const std::string> source_;  // the portion's
  bool of_one_row_ = true;
  bool arranged_ = true;                // fields of the portion's file come in the columns' order
  std::vector<csv::Field> row_fields_;  // of Arrange
  std::vector<Value> texts_;            // of ValueOf's current field
};

/// Rows that ON_ERROR ignore has skipped. Thread-safe.
class SkippedRows {
 public:
  /// Called once, first: makes the file for them, if the statement names one. Errors of csv::CreateFile.
  absl::Status Open(const sql::CopyStatement& statement);
  /// `row`: its text, which the file gets unchanged.
  absl::Status Add(const absl::Status& error, std::string_view row);
  /// At the statement's end: warns of them, and makes the file visible.
  absl::Status Finish(ResultSet& result);

 private:
  static constexpr size_t kShown = 10;
  Mutex mutex_;
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> first_ ABSL_GUARDED_BY(mutex_);          // the first errors
  std::unique_ptr<csv::ByteSink> rejects_ ABSL_GUARDED_BY(mutex_);  // null: there is no file
};

}  // namespace nam::session
