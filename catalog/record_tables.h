#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "base/strong_id.h"
#include "proto/table.pb.h"

/// What the catalog has to know of tables: which memory they have, and what record tables may not say.
namespace nam::catalog {

/// Not empty, not too long, no control characters.
absl::Status CheckTableName(const std::string& name);
/// All that belong to the table: those of its groups, retired ones too, or of its extents.
std::set<uint64_t> AllocationsOf(const proto::Table& table);
/// Every memory server that the table's pointers or counts name.
std::set<uint32_t> ServersOf(const proto::Table& table);

/// INVALID_ARGUMENT unless its storage is well formed and all extents are of the table's own allocation; OK
/// for other tables, but for one with the name of the transaction state.
absl::Status CheckNewRecordTable(const proto::Table& table);
/// INVALID_ARGUMENT unless they are extents of this allocation.
absl::Status CheckExtents(const google::protobuf::RepeatedPtrField<proto::RecordExtent>& extents,
                          AllocationId allocation);
/// PERMISSION_DENIED for the name of a table or an index of the system's, unless the call may touch those.
absl::Status CheckNotSystem(const std::string& name, bool may_be_system);
/// Whether the member may make it: the transaction state, or what has the member's number in its name.
bool IsOwnSystemName(const std::string& name, uint32_t member);
/// nullptr if there is none.
proto::RecordPart* FindPart(proto::Table& table, const std::string& name);

/// Of a record table: what its extents take of every memory server.
void CountUsage(proto::Table& table);

}  // namespace nam::catalog
