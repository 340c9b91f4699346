#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/catalog.pb.h"

/// The catalog's checks when groups of a columnar table have been merged (catalog/chain_groups.h).
namespace nam::catalog {

/// The allocations of the table's groups that the request does not replace; empty for a table without rows.
/// ABORTED if the table no longer has one of the replaced groups.
absl::StatusOr<std::vector<uint64_t>> GroupsLeft(const proto::Table& table,
                                                 const proto::CommitExtendRequest& request);
/// True if the last group of `compacted` is marked as containing rows of earlier groups, and the number of
/// rows is unchanged.
bool IsCompacted(const proto::Table& table, const proto::Table& compacted);
/// Records that statements bound before `version` may read these groups, which the table no longer has.
/// RESOURCE_EXHAUSTED: too many such groups.
absl::Status Retire(const google::protobuf::RepeatedField<uint64_t>& allocations, uint64_t version,
                    proto::Table& table);
/// Removes the retired groups that no statement with `version` or a later one reads; returns their
/// allocations.
std::vector<uint64_t> ForgetRetired(uint64_t version, proto::Table& table);

}  // namespace nam::catalog
