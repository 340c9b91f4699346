#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "proto/table.pb.h"

/// The chains of a columnar table, by groups that were loaded or appended at once. Chain g · P + p holds the
/// rows of group g in partition p of P.
///
/// An allocation has one group or several, which are adjacent: a compute server that writes more rows than it
/// may hold makes a group of them each time its memory is full. They come and go together.
namespace nam::catalog {

/// The number of partitions: P.
uint32_t PartitionCount(const proto::Table& table);
/// At least one.
uint32_t GroupCount(const proto::Table& table);
/// Distinguishes the table from others of its name, regardless of appends.
uint64_t CreationOf(const proto::Table& table);
uint64_t GroupAllocation(const proto::Table& table, uint32_t group);
/// Tells the group from all others of all tables: its allocation, and which of the allocation's groups it is.
/// Less than 2^48 as long as there are fewer than 2^38 allocations.
uint64_t GroupId(const proto::Table& table, uint32_t group);
uint64_t GroupRows(const proto::Table& table, uint32_t group);
/// The memory servers that hold blocks and dictionaries of the group.
std::set<uint32_t> GroupServers(const proto::Table& table, uint32_t group);
/// The allocations of the groups with memory on the server.
std::vector<uint64_t> AllocationsOn(const proto::Table& table, uint32_t server);
/// The group's encoding of the column, with the least and the greatest value of its rows.
proto::GroupColumn GroupColumnOf(const proto::Table& table, uint32_t group, uint32_t column);
/// A complete description of the group, which a table without appends does not store.
proto::ChainGroup DescribeGroup(const proto::Table& table, uint32_t group);
/// True if CutBackTo can succeed: the table has such a group, and no later one has rows of earlier groups.
bool MayCutBackTo(uint64_t allocation, const proto::Table& table);
/// Restores the table as of when `allocation` was its last load, append or compaction, without any later
/// group. Estimates stay. False unless MayCutBackTo.
bool CutBackTo(uint64_t allocation, proto::Table& table);
/// Sets each column's least and greatest value over all groups.
void SetBounds(proto::Table& table);

}  // namespace nam::catalog
