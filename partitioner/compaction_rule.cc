#include "partitioner/compaction_rule.h"

#include <algorithm>
#include <numeric>

#include "catalog/chain_groups.h"

namespace nam::partitioner {

std::vector<uint32_t> GroupsToMerge(std::span<const GroupSize> groups, uint32_t columns) {
  std::vector<uint32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return groups[a].rows < groups[b].rows; });
  GroupSize sum;
  size_t merged = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const GroupSize& largest = groups[order[i]];
    sum.rows += largest.rows;
    sum.bytes += largest.bytes;
    if (sum.rows * columns > kMergedValuesMax || sum.bytes > kMergedBytesMax) break;
    if (i + 1 >= kMergedGroupsMin && sum.rows >= kGrowth * largest.rows) merged = i + 1;
  }
  order.resize(merged);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<uint32_t> GroupsToMerge(const proto::Table& table) {
  if (table.has_record() || catalog::GroupCount(table) < kMergedGroupsMin) return {};
  // Those of one allocation come and go as one.
  std::vector<GroupSize> sizes;
  std::vector<uint32_t> size_of;
  for (uint32_t g = 0; g < catalog::GroupCount(table); ++g) {
    if (g == 0 || catalog::GroupAllocation(table, g) != catalog::GroupAllocation(table, g - 1))
      sizes.emplace_back();
    size_of.push_back(static_cast<uint32_t>(sizes.size()) - 1);
    sizes.back().rows += catalog::GroupRows(table, g);
    for (const proto::ServerUsage& usage : table.groups(static_cast<int>(g)).usage())
      sizes.back().bytes += usage.bytes();
  }
  const std::vector<uint32_t> merged = GroupsToMerge(sizes, static_cast<uint32_t>(table.columns_size()));
  std::vector<uint32_t> groups;
  for (uint32_t g = 0; g < size_of.size(); ++g) {
    if (std::binary_search(merged.begin(), merged.end(), size_of[g])) groups.push_back(g);
  }
  return groups;
}

}  // namespace nam::partitioner
