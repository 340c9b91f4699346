#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/catalog.pb.h"
#include "types/value.h"

namespace nam::partitioner {

/// A value of the column's kind and scale as the column stores it. 22003 if a number is too large for it,
/// 22001 if a text is too long, 23502 if it is NULL and must not be. Lengths of text are in characters;
/// blanks that are too much are cut off, as in PostgreSQL.
absl::StatusOr<Value> Assign(const proto::Table& table, int column, Value value, int position);

/// As CREATE TABLE writes it: `smallint`, `decimal(5,2)`, `char(3)`, …
std::string ColumnTypeName(const proto::Type& type);

}  // namespace nam::partitioner
