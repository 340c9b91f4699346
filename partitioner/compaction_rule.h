#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "proto/table.pb.h"

/// Chooses the chain groups of a columnar table (catalog/chain_groups.h) that are merged in the background.
///
/// The smallest groups are merged, at least kMergedGroupsMin of them and as many as possible, if the result
/// has at least kGrowth times the rows of the largest of them. So
///
///   - a row is rewritten at most log4(rows of the table) times: its group grows fourfold each time, and
///     a large group is never rewritten for small appends;
///   - a table of n rows keeps at most about 16 + log4/3(n) groups, which is 100 for 10 billion rows: if
///     nothing is to be merged, each group but the 15 smallest has over a quarter of the rows of all groups
///     that are not larger.
///
/// The order of groups is insignificant, so merged groups need not be adjacent. Groups of one allocation
/// count as one and are merged together. The merging process holds a merge in memory: kMergedValuesMax and
/// kMergedBytesMax limit its size. VACUUM has no such limits.
namespace nam::partitioner {

inline constexpr uint32_t kMergedGroupsMin = 16;
inline constexpr uint64_t kGrowth = 4;
inline constexpr uint64_t kMergedValuesMax = 32 << 20;  // rows times columns
inline constexpr uint64_t kMergedBytesMax = 128 << 20;  // as stored

struct GroupSize {
  uint64_t rows = 0;
  uint64_t bytes = 0;
};

/// The numbers of the groups to merge, ascending; empty if none.
std::vector<uint32_t> GroupsToMerge(std::span<const GroupSize> groups, uint32_t columns);
std::vector<uint32_t> GroupsToMerge(const proto::Table& table);

}  // namespace nam::partitioner
