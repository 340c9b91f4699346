#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "proto/table.pb.h"

/// Which groups of chains of a columnar table (catalog/chain_groups.h) become one in the background.
///
/// The smallest groups are merged, at least kMergedGroupsMin of them, if the group that comes of them has at
/// least kGrowth times the rows of the largest of them. As many are merged as this allows. So
///
///   - a row is written again at most log4(rows of the table) times: its group grows fourfold each time, and
///   a
///     large group is never rewritten for small appends;
///   - a table of n rows keeps no more than about 16 + log4/3(n) groups, which is 100 of 10 billion rows:
///   where
///     nothing is to be merged, each group but the 15 smallest has over a quarter of the rows of all that are
///     no larger.
///
/// The order of groups means nothing, so those that are merged need not be neighbours. A merge is held in
/// memory by whoever does it: it is no larger than kMergedValuesMax and kMergedBytesMax. VACUUM has no such
/// bounds.
namespace nam::partitioner {

inline constexpr uint32_t kMergedGroupsMin = 16;
inline constexpr uint64_t kGrowth = 4;
inline constexpr uint64_t kMergedValuesMax = 32 << 20;  // rows times columns
inline constexpr uint64_t kMergedBytesMax = 128 << 20;  // as they are stored

struct GroupSize {
  uint64_t rows = 0;
  uint64_t bytes = 0;
};

/// The numbers of the groups to be merged, ascending; empty: none.
std::vector<uint32_t> GroupsToMerge(std::span<const GroupSize> groups, uint32_t columns);
std::vector<uint32_t> GroupsToMerge(const proto::Table& table);

}  // namespace nam::partitioner
