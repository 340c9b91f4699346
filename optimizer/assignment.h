#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "optimizer/plan.h"
#include "proto/catalog.pb.h"

namespace nam::optimizer {

using TableRefs = std::vector<std::shared_ptr<const proto::Table>>;  // in the order of Plan::tables

/// If the build side of `join` is partitioned by its join key in the same way as the driving table is by
/// the probe key: which of the driving table's partition keys that is. Then a partition of the driving
/// table needs one partition of the build side only; otherwise it needs all of them.
std::optional<int> MatchingKey(const Plan& plan, const Plan::Join& join, const TableRefs& tables);

/// The number of the part by key `key` that partition `partition` of a table lies in (row-major order).
uint32_t PartOf(const proto::Table& table, uint32_t partition, int key);

/// The build side's partitions that the driving table's `partitions` need, ascending.
std::vector<uint32_t> NeededPartitions(const Plan& plan, const Plan::Join& join, const TableRefs& tables,
                                       const std::vector<uint32_t>& partitions);

/// Which server streams which partitions of the driving table (I-Store, section 4.1). Cost is bytes to be
/// moved: those of the driving table and those of the build sides, which count again on every server
/// that needs them.
struct Assignment {
  struct Share {
    std::vector<uint32_t> partitions;  // of the driving table, ascending
    uint64_t driving_bytes = 0;
    uint64_t build_bytes = 0;
    uint64_t rows = 0;
  };
  std::vector<Share> servers;
  uint64_t LargestBytes() const;
};

/// Takes the better of two: the largest differencing method on single partitions (evenest), and runs of
/// partitions in row-major order (least replication).
Assignment Assign(const Plan& plan, const TableRefs& tables, int servers);

/// K-way number partitioning by the largest differencing method: the part of each item.
std::vector<int> LargestDifferencing(const std::vector<uint64_t>& costs, int parts);

}  // namespace nam::optimizer
