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

/// Plans' facts about tables, from the catalog: the optimizer states them, every server checks them.
namespace nam::plan {

/// In the order of PhysicalPlan::tables.
using TableMetadata = std::vector<std::shared_ptr<const proto::Table>>;

/// The slot of a column. The bounds are a loaded table's statistics, or a record table's column width.
absl::StatusOr<Slot> SlotOfColumn(const proto::Table& table, uint32_t column);

/// The partition key of the claimed table that is `claimed_column`, if `build_column`'s table keeps rows with
/// equal values of that column in the part of the same number: then a partition of the claimed table needs
/// one partition of the build side. nullopt if it needs all of them.
std::optional<int32_t> MatchingKey(const proto::Table& build, uint32_t build_column,
                                   const proto::Table& claimed, uint32_t claimed_column);

/// Checks the plan's tables: their versions, columns, slots and partition matches. FAILED_PRECONDITION if a
/// table is another version, INVALID_ARGUMENT otherwise. `plan` passed Check.
absl::Status CheckTables(const PhysicalPlan& plan, const TableMetadata& tables);

}  // namespace nam::plan
