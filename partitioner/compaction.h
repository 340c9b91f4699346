#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "catalog/attachment.h"
#include "proto/table.pb.h"

namespace nam::partitioner {

struct CompactionOptions {
  int threads = 1;
  const std::atomic<bool>* cancel = nullptr;  // CANCELLED soon after it is set
};

/// Makes one group of these groups of a columnar table.
///
///     read the groups ─▶ stage, encode, write, seal: a load of this member's ─▶ CommitExtend, which says
///                                                                              which groups it replaces
///
/// Nothing of it is seen before the commit, and a process that dies leaves a load that ends with its lease.
/// Other sessions append meanwhile; statements that run read the former groups (catalog/versions_read.h).
/// ABORTED: the table was compacted, replaced or dropped meanwhile.
absl::Status CompactGroups(catalog::Attachment& attachment, const proto::Table& table,
                           const std::vector<uint32_t>& groups, const CompactionOptions& options);

/// `table` with `group` (described as in AppendedTable) as its last group, in the place of those with the
/// allocations `replaced`, whose rows it has. Estimates are kept, those of one group alone are its own.
/// ABORTED: the table does not have these any more.
absl::StatusOr<proto::Table> CompactedTable(const proto::Table& table, const proto::Table& group,
                                            const std::vector<uint64_t>& replaced);

}  // namespace nam::partitioner
