#pragma once

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/physical.h"

/// Runs plans as their headers say, a row at a time: for tests.
namespace nam::plan::testing {

using Row = std::vector<Value>;
using Rows = std::vector<Row>;

/// By number in PhysicalPlan::tables: all columns of the table that the plan's scan reads, at their place.
using TableRows = std::map<uint32_t, Rows>;

/// By pipeline: what reached the sink, as the sink sees it: a build its payload behind its keys, an
/// aggregation its groups' keys, then arguments; others the rows. Of a ResultSink or SortSink all rows,
/// whatever its limit. Errors are those of expressions, and 21000 of single joins. What an aggregation leaves
/// is not computed: a PageSource over it has no rows, nor has a window. A RepeatStep repeats a row three
/// times at most. Throws std::out_of_range if the plan names something that is not there, and
/// std::logic_error if what flows is not what its schema says: Check has failed.
absl::StatusOr<std::vector<Rows>> Run(const PhysicalPlan& plan, const TableRows& tables);

}  // namespace nam::plan::testing
