#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "proto/table.pb.h"

/// A columnar table's chains by groups of those that were loaded or appended at once. Chain g · P + p holds
/// the rows of group g that are in partition p of P.
namespace nam::catalog {

/// How many partitions the table has: P.
uint32_t PartitionCount(const proto::Table& table);
/// At least one.
uint32_t GroupCount(const proto::Table& table);
/// Tells the table from others of its name, whatever has been appended to it.
uint64_t CreationOf(const proto::Table& table);
uint64_t GroupAllocation(const proto::Table& table, uint32_t group);
uint64_t GroupRows(const proto::Table& table, uint32_t group);
/// The memory servers that blocks and dictionaries of the group lie on.
std::set<uint32_t> GroupServers(const proto::Table& table, uint32_t group);
/// The allocations of the groups that have memory on the server, where the table has some.
std::vector<uint64_t> AllocationsOn(const proto::Table& table, uint32_t server);
/// How the group's chains hold the column, with the least and the greatest value of its rows.
proto::GroupColumn GroupColumnOf(const proto::Table& table, uint32_t group, uint32_t column);
/// The group as a description of its own, which a table that was never appended to does not have.
proto::ChainGroup DescribeGroup(const proto::Table& table, uint32_t group);
/// Whether CutBackTo can do it: the table has such a group, and no later one has rows of earlier groups.
bool MayCutBackTo(uint64_t allocation, const proto::Table& table);
/// The table as it was when `allocation` was its last load, append or compaction; nothing of later groups is
/// left. Estimates stay as they are. False unless MayCutBackTo.
bool CutBackTo(uint64_t allocation, proto::Table& table);
/// Least and greatest values of columns become those of the groups' together.
void SetBounds(proto::Table& table);

}  // namespace nam::catalog
