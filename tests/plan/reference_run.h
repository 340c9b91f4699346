#pragma once

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/physical.h"

/// Runs plans as their headers specify, a row at a time: for tests.
namespace nam::plan::testing {

using Row = std::vector<Value>;
using Rows = std::vector<Row>;

/// Rows by number in PhysicalPlan::tables: all columns of the table that the plan's scan reads, at their
/// places.
using TableRows = std::map<uint32_t, Rows>;

/// The rows that reached each pipeline's sink, as the sink sees them. A build has its payload behind its
/// keys; an aggregation has its groups' keys, then arguments; other sinks have the rows. A ResultSink or
/// SortSink gets all rows, whatever its limit. Errors are those of expressions, and 21000 of single joins.
/// The output of an aggregation is not computed: a PageSource over it has no rows, nor has a window. A
/// RepeatStep repeats a row three times at most. Throws std::out_of_range if the plan names something that
/// does not exist, and std::logic_error if rows do not match their schema: Check has failed.
absl::StatusOr<std::vector<Rows>> Run(const PhysicalPlan& plan, const TableRows& tables);

}  // namespace nam::plan::testing
