#include "catalog/chain_groups.h"

#include <algorithm>
#include <optional>

namespace nam::catalog {

uint32_t PartitionCount(const proto::Table& table) {
  uint32_t partitions = 1;
  for (const proto::PartitionKey& key : table.partitioning()) partitions *= key.parts();
  return partitions;
}

uint32_t GroupCount(const proto::Table& table) {
  return table.groups().empty() ? 1 : static_cast<uint32_t>(table.groups_size());
}

uint64_t CreationOf(const proto::Table& table) {
  return table.creation() == 0 ? table.allocation() : table.creation();
}

uint64_t GroupAllocation(const proto::Table& table, uint32_t group) {
  return table.groups().empty() ? table.allocation() : table.groups(static_cast<int>(group)).allocation();
}

uint64_t GroupId(const proto::Table& table, uint32_t group) {
  constexpr int kPlaceBits = 10;  // of partitioner::kGroupsMax groups
  const uint64_t allocation = GroupAllocation(table, group);
  uint32_t place = 0;
  while (place < group && GroupAllocation(table, group - place - 1) == allocation) ++place;
  return (allocation << kPlaceBits) + place;
}

uint64_t GroupRows(const proto::Table& table, uint32_t group) {
  const auto partitions = static_cast<int>(PartitionCount(table)),
             first = static_cast<int>(group) * partitions;
  uint64_t rows = 0;
  for (int c = first; c < std::min(first + partitions, table.partitions_size()); ++c)
    rows += table.partitions(c).rows();
  return rows;
}

std::set<uint32_t> GroupServers(const proto::Table& table, uint32_t group) {
  std::set<uint32_t> servers;
  const auto add = [&](uint64_t remote_pointer) {
    servers.insert(static_cast<uint32_t>(remote_pointer >> 48));
  };
  const auto partitions = static_cast<int>(PartitionCount(table)),
             first = static_cast<int>(group) * partitions;
  for (int c = first; c < std::min(first + partitions, table.partitions_size()); ++c) {
    for (const uint64_t pointer : table.partitions(c).head()) add(pointer);
  }
  for (uint32_t c = 0; c < static_cast<uint32_t>(table.columns_size()); ++c) {
    const proto::GroupColumn column = GroupColumnOf(table, group, c);
    for (const uint64_t pointer : column.encoding().dictionary().segments()) add(pointer);
  }
  servers.erase(0);  // null pointers
  return servers;
}

std::vector<uint64_t> AllocationsOn(const proto::Table& table, uint32_t server) {
  if (GroupCount(table) == 1) return {GroupAllocation(table, 0)};
  std::vector<uint64_t> allocations;
  for (uint32_t g = 0; g < GroupCount(table); ++g) {
    if (GroupServers(table, g).contains(server)) allocations.push_back(GroupAllocation(table, g));
  }
  return allocations;
}

proto::GroupColumn GroupColumnOf(const proto::Table& table, uint32_t group, uint32_t column) {
  if (!table.groups().empty()) return table.groups(static_cast<int>(group)).columns(static_cast<int>(column));
  const proto::Column& from = table.columns(static_cast<int>(column));
  proto::GroupColumn out;
  *out.mutable_encoding() = from.encoding();
  out.set_min(from.min());
  out.set_max(from.max());
  return out;
}

proto::ChainGroup DescribeGroup(const proto::Table& table, uint32_t group) {
  if (!table.groups().empty()) return table.groups(static_cast<int>(group));
  proto::ChainGroup out;
  out.set_allocation(table.allocation());
  for (uint32_t c = 0; c < static_cast<uint32_t>(table.columns_size()); ++c)
    *out.add_columns() = GroupColumnOf(table, 0, c);
  *out.mutable_usage() = table.usage();
  return out;
}

namespace {

/// Restores the state before the first rows, whose chains have replaced those of the creation.
void Empty(proto::Table& table) {
  table.set_allocation(CreationOf(table));
  table.set_rows(0);
  table.clear_groups();
  table.clear_partitions();
  for (uint32_t p = 0; p < PartitionCount(table); ++p) table.add_partitions();
  for (proto::Column& column : *table.mutable_columns()) {
    if (column.encoding().has_dictionary()) continue;
    column.set_min(0);
    column.set_max(0);
    if (column.encoding().width() > 8) column.mutable_encoding()->set_plain(false);
  }
}

}  // namespace

// Numbers that are not encoded have no bounds; texts have those of a dictionary.
void SetBounds(proto::Table& table) {
  for (int c = 0; c < table.columns_size(); ++c) {
    if (table.columns(c).encoding().plain() || table.columns(c).encoding().has_dictionary()) continue;
    int64_t min = INT64_MAX, max = INT64_MIN;
    for (const proto::ChainGroup& group : table.groups()) {
      min = std::min<int64_t>(min, group.columns(c).min());
      max = std::max<int64_t>(max, group.columns(c).max());
    }
    table.mutable_columns(c)->set_min(min);
    table.mutable_columns(c)->set_max(max);
  }
}

namespace {

/// The number of the group that was the last one then; -1: the table was empty.
std::optional<int> LastGroupAt(uint64_t allocation, const proto::Table& table) {
  for (auto g = static_cast<int>(GroupCount(table)); g-- > 0;) {
    if (GroupAllocation(table, static_cast<uint32_t>(g)) == allocation) return g;
    // It contains the rows of earlier groups.
    if (!table.groups().empty() && table.groups(g).compacted()) return std::nullopt;
  }
  if (allocation != CreationOf(table)) return std::nullopt;
  return -1;
}

}  // namespace

bool MayCutBackTo(uint64_t allocation, const proto::Table& table) {
  return LastGroupAt(allocation, table).has_value();
}

bool CutBackTo(uint64_t allocation, proto::Table& table) {
  const std::optional<int> last = LastGroupAt(allocation, table);
  if (!last.has_value()) return false;
  if (*last < 0) {
    Empty(table);
    return true;
  }
  const int groups = *last + 1;
  const int chains = groups * static_cast<int>(PartitionCount(table));
  if (!table.groups().empty()) table.mutable_groups()->DeleteSubrange(groups, table.groups_size() - groups);
  table.mutable_partitions()->DeleteSubrange(chains, table.partitions_size() - chains);
  table.set_allocation(allocation);
  uint64_t rows = 0;
  for (const proto::Chain& chain : table.partitions()) rows += chain.rows();
  table.set_rows(rows);
  if (!table.groups().empty()) SetBounds(table);
  return true;
}

}  // namespace nam::catalog
