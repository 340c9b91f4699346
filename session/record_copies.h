#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "session/record_statements.h"
#include "sql/bound_query.h"

namespace nam::session {

/// What a join needs of its record tables, as analytical tables that compute servers stream like any other:
///
///     access path ─▶ rows at the transaction's snapshot ─▶ the columns that are needed ─▶ a temporary table
///
/// Conditions on one record table alone are decided here and are no part of the query that is left. The
/// tables are dropped with this object, or with the lease of its process. Of the session's thread.
class RecordCopies {
 public:
  /// `id` is no other's of this member.
  RecordCopies(catalog::Attachment& attachment, uint64_t id, uint64_t bytes_max)
      : attachment_(attachment), id_(id), bytes_max_(bytes_max) {}
  ~RecordCopies();
  RecordCopies(const RecordCopies&) = delete;
  RecordCopies& operator=(const RecordCopies&) = delete;

  /// The query over the copies. Within a transaction of `records`; 54000 if they are larger than bytes_max.
  absl::StatusOr<sql::BoundQuery> Make(const sql::BoundQuery& query, RecordStatements& records);
  /// An error of making copies, or of the query over them, with the names of the tables that were copied.
  absl::Status WithUsersNames(const absl::Status& error) const;

 private:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Copy(const sql::BoundQuery& query, size_t number,
                                                           const std::vector<bool>& needed,
                                                           RecordStatements& records);

  catalog::Attachment& attachment_;
  const uint64_t id_;
  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  std::vector<std::string> made_;                           // names
  std::vector<std::pair<std::string, std::string>> names_;  // of each copy, made or not: its own, its table's
};

}  // namespace nam::session
