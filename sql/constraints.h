#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "proto/table.pb.h"
#include "sql/bound_query.h"

namespace nam::sql {

/// Checks a row. 23514 if one of the checks is false for it.
absl::Status Check(const proto::Table& table, const std::vector<BoundCheck>& checks,
                   const std::vector<Value>& row);

/// The name of the constraint that is a key of the table: ConflictAction::kPrimaryKey, or
/// RecordStorage.parts[key].
std::string ConstraintName(const proto::Table& table, int key);

/// 23505: a row with the key of these columns exists. `row` has the values of the whole row.
absl::Status DuplicateKey(const proto::Table& table, int key, const std::vector<Value>& row);

/// 2BP01: the table cannot be dropped, as another one has a foreign key to it.
absl::Status StillReferenced(const std::string& table, const proto::ReferencingKey& reference);

/// The columns of table 0 are the row's values.
inline plan::Resolver RowResolver(const std::vector<Value>& row) {
  return [&row](const plan::Expr& e) { return row[static_cast<size_t>(e.column.column)]; };
}

/// gen_random_uuid() in a DEFAULT, or as a value of INSERT: a column of no table, with a new value each time
/// that it is read.
plan::Expr RandomUuid(int position);
bool AsksRandomUuid(const plan::Expr& expr);
/// Resolves RandomUuid() in values without a row, which name no other column.
plan::Resolver ValueResolver();

}  // namespace nam::sql
