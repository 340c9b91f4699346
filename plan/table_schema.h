#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/physical.h"
#include "proto/table.pb.h"

/// What plans say of tables, from the catalog: the optimizer states it, every server checks it.
namespace nam::plan {

/// In the order of PhysicalPlan::tables.
using TableMetadata = std::vector<std::shared_ptr<const proto::Table>>;

/// What a column holds. Of a loaded table its statistics are bounds; of a record table the column's width is.
absl::StatusOr<Slot> SlotOfColumn(const proto::Table& table, uint32_t column);

/// Which of the claimed table's partition keys `claimed_column` is, if `build_column`'s table has its rows
/// with equal values of that column in the part of the same number: then a partition of the claimed table
/// needs one partition of the build side. Nothing if it needs all of them.
std::optional<int32_t> MatchingKey(const proto::Table& build, uint32_t build_column,
                                   const proto::Table& claimed, uint32_t claimed_column);

/// Whether the tables are what the plan takes them for: their versions, columns, slots and partition matches.
/// FAILED_PRECONDITION if a table is another version, INVALID_ARGUMENT otherwise. `plan` passed Check.
absl::Status CheckTables(const PhysicalPlan& plan, const TableMetadata& tables);

}  // namespace nam::plan
