#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/catalog.pb.h"

/// What the catalog looks at when groups of a columnar table have become one (catalog/chain_groups.h).
namespace nam::catalog {

/// The allocations of the table's groups without those that the request replaces; none of a table without
/// rows. ABORTED when it does not have one of these any more.
absl::StatusOr<std::vector<uint64_t>> GroupsLeft(const proto::Table& table,
                                                 const proto::CommitExtendRequest& request);
/// Whether the last group of `compacted` is marked as one with rows of earlier groups, and no row has come or
/// gone.
bool IsCompacted(const proto::Table& table, const proto::Table& compacted);
/// Notes that statements bound before `version` may read these groups, which the table has no more.
/// RESOURCE_EXHAUSTED: there are too many such groups already.
absl::Status Retire(const google::protobuf::RepeatedField<uint64_t>& allocations, uint64_t version,
                    proto::Table& table);
/// The table without the retired groups that no statement reads which sees `version` or a later one; the
/// allocations of these groups.
std::vector<uint64_t> ForgetRetired(uint64_t version, proto::Table& table);

}  // namespace nam::catalog
