#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "proto/table.pb.h"
#include "sql/bound_query.h"

namespace nam::sql {

/// Converts a value of the column's kind and scale to its stored form. 22003 if a number is too large, 22001
/// if a text is too long, 23502 for NULL in a NOT NULL column. Lengths of text are in characters; excess
/// blanks are cut off, as in PostgreSQL.
absl::StatusOr<Value> Assign(const proto::Table& table, int column, Value value, int position);

/// 23514 if one of them is false for the row.
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
/// For values without a row, which name no other column.
plan::Resolver ValueResolver();

/// The type as in CREATE TABLE: `smallint`, `decimal(5,2)`, `char(3)`, …
std::string ColumnTypeName(const proto::Type& type);

}  // namespace nam::sql
