#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "base/strong_id.h"
#include "proto/table.pb.h"

/// The catalog's view of tables: the memory that they use, and checks of record tables.
namespace nam::catalog {

/// Rejects empty and too long names, and control characters.
absl::Status CheckTableName(const std::string& name);
/// All allocations of the table: of its groups, including retired ones, or of its extents.
std::set<uint64_t> AllocationsOf(const proto::Table& table);
/// Every memory server named by the table's pointers or counts.
std::set<uint32_t> ServersOf(const proto::Table& table);

/// INVALID_ARGUMENT unless the record storage is well-formed and all extents belong to the table's own
/// allocation. OK for other tables, except one with the name of the transaction state.
absl::Status CheckNewRecordTable(const proto::Table& table);
/// INVALID_ARGUMENT unless all extents belong to this allocation.
absl::Status CheckExtents(const google::protobuf::RepeatedPtrField<proto::RecordExtent>& extents,
                          AllocationId allocation);
/// PERMISSION_DENIED for the name of a system table or index, unless the call may change those.
absl::Status CheckNotSystem(const std::string& name, bool may_be_system);
/// True if the member may create it: the transaction state, or a name with the member's number.
bool IsOwnSystemName(const std::string& name, uint32_t member);
/// True for names of tables that loads fill for other tables.
bool IsLoadName(const std::string& name);
/// True if the table, which loads fill, belongs to the member.
bool IsLoadNameOf(const std::string& name, uint32_t member);
/// nullptr if there is none.
proto::RecordPart* FindPart(proto::Table& table, const std::string& name);

/// Computes a record table's use of each memory server from its extents.
void CountUsage(proto::Table& table);

}  // namespace nam::catalog
