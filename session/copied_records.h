#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "session/copied_rows.h"
#include "session/record_changes.h"
#include "types/sql_error.h"

namespace nam::session {

/// Rows of a COPY into a record table, one after the other, in batches. Belongs to one thread.
class CopiedRecords {
 public:
  /// Borrows both.
  CopiedRecords(const sql::CopyStatement& statement, csv::PortionReader& reader)
      : statement_(statement), rows_(statement, reader) {}

  absl::Status Open() { return skipped_.Open(statement_); }
  /// nullopt when the batch is full, or all rows were returned.
  absl::StatusOr<std::optional<std::vector<Value>>> Next() {
    while (statement_.batch_rows == 0 || in_batch_ < statement_.batch_rows) {
      absl::StatusOr<std::vector<Value>> row = Read();
      ended_ = row.ok() && row->empty();
      if (ended_) return std::nullopt;
      if (row.ok()) {
        ++in_batch_;
        places_.push_back(rows_.place());
        if (places_.size() > kPlacesMax) places_.pop_front();
        return *std::move(row);
      }
      if (!statement_.skip_errors || !rows_.of_one_row()) return row.status();
      NAM_RETURN_IF_ERROR(skipped_.Add(row.status(), rows_.row()));
    }
    return std::nullopt;
  }
  /// The error of the rows that were returned, with the place of the one that it concerns.
  absl::Status Placed(const absl::Status& error) const {
    const std::optional<uint64_t> behind = RowsBehind(error);
    if (!behind.has_value() || *behind >= places_.size() || !SqlErrorOf(error).has_value()) return error;
    return places_[places_.size() - 1 - *behind].At(error);
  }
  /// Called once the batch's rows are in the table.
  void EndBatch() { count_ += std::exchange(in_batch_, 0); }
  bool ended() const { return ended_; }
  /// Rows of all batches that have ended.
  uint64_t count() const { return count_; }
  /// The statement's result.
  absl::StatusOr<ResultSet> Finish() {
    ResultSet result;
    result.command = absl::StrCat("COPY ", count_);
    NAM_RETURN_IF_ERROR(skipped_.Finish(result));
    return result;
  }

 private:
  /// No values: there is no row.
  absl::StatusOr<std::vector<Value>> Read() {
    while (true) {
      NAM_ASSIGN_OR_RETURN(const bool row, rows_.Next(fields_));
      if (row) break;
      NAM_ASSIGN_OR_RETURN(const bool portion, rows_.NextPortion());
      if (!portion) return std::vector<Value>();
    }
    std::vector<Value> values;
    for (size_t i = 0; i < fields_.size(); ++i) {
      absl::StatusOr<Value> value = rows_.ValueOf(i, fields_[i]);
      if (!value.ok()) return rows_.AtField(i, value.status());
      values.push_back(*std::move(value));
    }
    return values;
  }

  /// Of the last rows: 24 MiB at most. More than rows of a transaction with a default size.
  static constexpr size_t kPlacesMax = 1'000'000;

  const sql::CopyStatement& statement_;
  CopiedRows rows_;
  std::deque<CopiedRows::Place> places_;
  SkippedRows skipped_;
  std::vector<csv::Field> fields_;
  uint64_t count_ = 0;
  uint64_t in_batch_ = 0;  // rows returned
  bool ended_ = false;
};

}  // namespace nam::session
