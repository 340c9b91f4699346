#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plan/physical.h"
#include "proto/table.pb.h"

namespace nam::optimizer {

/// Tables of a plan, by their numbers in it.
using TableRefs = std::vector<std::shared_ptr<const proto::Table>>;

/// What a stage of compute servers reads of tables: the basis of assignment, multicast and EXPLAIN.
struct StageTables {
  struct Side {
    uint32_t pipeline = 0;  // of the plan: reads it
    uint32_t number = 0;    // in PhysicalPlan::tables
    std::shared_ptr<const proto::Table> table;
    std::vector<uint32_t> columns;
  };
  struct Build : Side {
    /// BlockScan::co_partitioned_key. nullopt: a server needs all partitions.
    std::optional<int> co_partitioned_key;
    /// Probes others before it builds, so that it begins late.
    bool probes = false;
  };
  std::optional<Side> claimed;  // none: the stage claims parts, or nothing
  std::vector<Build> builds;    // of scans alone, in the plan's order

  /// The partitions of a build side that a server with these of the claimed table needs.
  std::vector<uint32_t> NeededOf(const Build& build, const std::vector<uint32_t>& partitions) const;
};

/// `tables`: the plan's.
StageTables StageTablesOf(const plan::PhysicalPlan& plan, const TableRefs& tables, uint32_t stage);

}  // namespace nam::optimizer
