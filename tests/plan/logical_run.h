#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/logical.h"

/// What logical trees mean, row by row: the reference that other ways to run them are compared with. Joins
/// are nested loops, and the right input of a dependent join runs once for each row of the left one.
namespace nam::plan::logical::testing {

using Row = std::vector<Value>;
using Rows = std::vector<Row>;
/// Rows by the table's name; a row has a value for every column of the table.
using TableRows = std::map<std::string, Rows>;

/// The result's rows. INTERNAL if an operator makes a value that its columns rule out: another type, or NULL
/// where none may be.
absl::StatusOr<Rows> Run(const Query& query, const TableRows& tables);

/// A total order of rows of one type; NULLs are equal and last.
bool Before(const Row& a, const Row& b);

}  // namespace nam::plan::logical::testing
