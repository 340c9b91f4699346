#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/catalog.pb.h"
#include "types/value.h"

namespace nam::partitioner {

/// Converts a value of the column's kind and scale to its stored form. 22003 if a number is too large, 22001
/// if a text is too long, 23502 for NULL in a NOT NULL column. Lengths of text are in characters; excess
/// blanks are cut off, as in PostgreSQL.
absl::StatusOr<Value> Assign(const proto::Table& table, int column, Value value, int position);

/// The type as in CREATE TABLE: `smallint`, `decimal(5,2)`, `char(3)`, …
std::string ColumnTypeName(const proto::Type& type);

}  // namespace nam::partitioner
