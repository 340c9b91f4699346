#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "session/copied_rows.h"

namespace nam::session {

/// Rows of a COPY into a record table, one after the other. Belongs to one thread.
class CopiedRecords {
 public:
  /// Borrows both.
  CopiedRecords(const sql::CopyStatement& statement, csv::PortionReader& reader)
      : statement_(statement), rows_(statement, reader) {}

  /// Nothing when all were given.
  absl::StatusOr<std::optional<std::vector<Value>>> Next() {
    while (true) {
      absl::StatusOr<std::vector<Value>> row = Read();
      if (row.ok() && row->empty()) return std::nullopt;
      if (row.ok()) {
        ++count_;
        return *std::move(row);
      }
      if (!statement_.skip_errors || !rows_.of_one_row()) return row.status();
      skipped_.Add(row.status());
    }
  }
  /// The statement's result, of what an INSERT of the rows has said.
  ResultSet Finish(ResultSet inserted) {
    inserted.command = absl::StrCat("COPY ", count_);
    skipped_.AddTo(inserted);
    return inserted;
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

  const sql::CopyStatement& statement_;
  CopiedRows rows_;
  SkippedRows skipped_;
  std::vector<csv::Field> fields_;
  uint64_t count_ = 0;
};

}  // namespace nam::session
