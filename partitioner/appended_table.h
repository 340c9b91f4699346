#pragma once

#include "absl/status/statusor.h"
#include "partitioner/table_schema.h"
#include "proto/table.pb.h"

namespace nam::partitioner {

/// The most groups of chains that a table has: every scan meets all of them.
inline constexpr uint32_t kGroupsMax = 1'024;

/// `table` with the chains of `group` behind its own, as one more group (catalog/chain_groups.h), or instead
/// of them if it has no rows. `group` is described as a table of its own, with the same columns and
/// partitions. What planning knows of the columns' values is merged: least and greatest values are exact, how
/// many differ is an estimate. FAILED_PRECONDITION: the table has other columns by now. 54000: it has
/// kGroupsMax groups.
absl::StatusOr<proto::Table> AppendedTable(const proto::Table& table, const proto::Table& group);

/// What a loader is told of a table that is there.
absl::StatusOr<TableSchema> SchemaOf(const proto::Table& table);
/// FAILED_PRECONDITION: `group` has other columns or partitions than the table.
absl::Status CheckSameColumns(const proto::Table& table, const proto::Table& group);
/// Counts what a group takes of servers as the table's.
void AddUsage(const google::protobuf::RepeatedPtrField<proto::ServerUsage>& usage, proto::Table& table);

}  // namespace nam::partitioner
