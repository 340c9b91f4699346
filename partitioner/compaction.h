#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "catalog/attachment.h"
#include "proto/table.pb.h"

namespace nam::partitioner {

struct CompactionOptions {
  int threads = 1;
  const std::atomic<bool>* cancel = nullptr;  // CANCELLED soon after it is set
};

/// Merges groups of a columnar table into one.
///
///     read the groups ─▶ stage, encode, write, seal: a load of this member ─▶ CommitExtend, which names the
///                                                                             replaced groups
///
/// Nothing is visible before the commit; if the process dies, the load ends with its lease. Other sessions
/// append meanwhile, and running statements read the former groups (catalog/versions_read.h). ABORTED: the
/// table was compacted, replaced or dropped meanwhile.
absl::Status CompactGroups(catalog::Attachment& attachment, const proto::Table& table,
                           const std::vector<uint32_t>& groups, const CompactionOptions& options);

/// `table` with `group` (described as in AppendedTable) as its last group, in place of the groups with the
/// allocations `replaced`, whose rows it contains. Estimates stay, unless `group` becomes the only one: then
/// its own apply. ABORTED: the table no longer has these groups.
absl::StatusOr<proto::Table> CompactedTable(const proto::Table& table, const proto::Table& group,
                                            const std::set<uint64_t>& replaced);

}  // namespace nam::partitioner
