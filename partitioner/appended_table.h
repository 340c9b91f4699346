#pragma once

#include "absl/status/statusor.h"
#include "partitioner/table_schema.h"
#include "proto/table.pb.h"

namespace nam::partitioner {

/// The most chain groups of a table; every scan visits all of them.
inline constexpr uint32_t kGroupsMax = 1'024;
/// The most bytes of a table's description. Descriptions travel in messages, and a list of tables has all of
/// them in one.
inline constexpr uint64_t kDescriptionBytesMax = uint64_t{8} << 20;

/// Whether the table's description has room for so many further groups, by estimate: each has a chain for
/// every partition. Half of the description stays free for what is not known.
bool HasRoomFor(const proto::Table& table, double groups);

/// `table` with the chains of `group` appended as one more group (catalog/chain_groups.h), or in place of its
/// own if it has no rows. `group` is described as a table of its own, with the same columns and partitions.
/// The columns' statistics are merged: least and greatest values are exact, distinct counts are estimates.
/// FAILED_PRECONDITION: the table's columns have changed. 54000: it has kGroupsMax groups, or its description
/// would exceed kDescriptionBytesMax.
absl::StatusOr<proto::Table> AppendedTable(const proto::Table& table, const proto::Table& group);

/// The schema of an existing table, for a loader.
absl::StatusOr<TableSchema> SchemaOf(const proto::Table& table);
/// FAILED_PRECONDITION if the columns or partitions of `group` differ from the table's.
absl::Status CheckSameColumns(const proto::Table& table, const proto::Table& group);
/// Adds a group's memory per server to the table's.
void AddUsage(const google::protobuf::RepeatedPtrField<proto::ServerUsage>& usage, proto::Table& table);

}  // namespace nam::partitioner
