#pragma once

#include <array>
#include <cstdint>

#include "catalog/fabric_constants.h"
#include "plan/join_algorithm.h"

/// Estimates of the distributed joins and aggregations, by the equations of Binnig et al., "The End of Slow
/// Networks: It's Time for a Redesign", sections 5.1 and 5.2, and by what these leave out: the processor's
/// time for each row, which depends on the size of the table that a row is looked up in, the way to a stage
/// of servers, and skew.
namespace nam::optimizer {

/// How often the bytes of both sides pass through memory, and through the network: waited for, or in the
/// background (selectively signaled WRITEs, prefetching READs).
struct BytePasses {
  double memory = 0;
  double network = 0;
  double background = 0;
};
/// The passes of one byte of an input, by the paper's equations. `selectivity` is the share of the rows that
/// a semi-join reduction leaves, errors included; for kGhjBloom only. kPipelined has none: the paper does not
/// cover it.
BytePasses PassesOf(plan::JoinAlgorithm algorithm, double selectivity = 1);

/// Costs of a byte: of memory, and of the network where it is waited for and in the background.
struct ByteCosts {
  double memory = 0;
  double network = 0;
  double background = 0;
  /// A card moves background bytes by itself; otherwise the posting processor does.
  bool overlapped = true;
};
double CostOf(const BytePasses& passes, const ByteCosts& costs);

/// The share of rows that a Bloom filter leaves: those with partners, and its false positives.
double AfterBloom(double selectivity, double error);
using plan::kBloomError;

/// The workers of a query.
struct ClusterShape {
  double servers = 2;
  double threads = 2;  // of each
  bool overlapped = false;
  catalog::FabricConstants constants;

  double workers() const { return servers * threads; }
};

/// One thread's time to read so many rows of a table, of so many bytes each, and to test them.
double ScanPs(double rows, double row_bytes, const catalog::FabricConstants& constants);

struct JoinSide {
  double rows = 0;
  double row_bytes = 8;  // as rows travel
  double source_ps = 0;  // one thread's time until all of its rows exist
  double matching = 1;   // the share of its rows with partners

  double bytes() const { return rows * row_bytes; }
};

struct JoinWork {
  JoinSide build, probe;
  /// Rows are looked up in an array by key instead of a hash table: keys are dense and unique.
  bool direct = false;
  /// Every server can read the whole build side; otherwise the session makes a pipelined join.
  bool whole_build = true;
  /// The share of the probe side's rows with the most common key.
  double heaviest = 0;
  /// The join drops rows of the probe side without a partner.
  bool drops_probe = true;
};

/// Wall time in ms, of both sides' rows and of the join, by JoinAlgorithm; infinite if impossible.
using JoinCosts = std::array<double, plan::kJoinAlgorithms.size()>;
double& CostOf(plan::JoinAlgorithm algorithm, JoinCosts& costs);
double CostOf(plan::JoinAlgorithm algorithm, const JoinCosts& costs);
/// Parts of RRJ and of the RDMA GHJ.
struct JoinParts {
  double rrj = 64;
  double rdma_ghj = 8;
};
/// Enough that each part's table fits a processor's second-level cache.
double RrjParts(const JoinSide& build);
/// Just enough to keep so many workers busy.
double RdmaGhjParts(double workers);
/// The costs of all algorithms but kAuto.
JoinCosts CostsOf(const JoinWork& work, const JoinParts& parts, const ClusterShape& cluster);
/// The cheapest; of equal ones the first.
plan::JoinAlgorithm CheapestOf(const JoinCosts& costs);

/// The bytes that a row in a join table takes beside its own: its heads and links.
inline constexpr double kTableBytesOfRow = 16;
/// The time of one access to a random place of so many bytes: by the cache that they fit.
double AccessPs(double working_set_bytes, const catalog::FabricConstants& constants);

struct GroupWork {
  double rows = 0;
  double groups = 1;
  double state_bytes = 24;  // of a group: its keys and aggregates
  double source_ps = 0;     // one thread's time until all rows exist
};
struct GroupCosts {
  double rdma_ms = 0;
  double dist_ms = 0;
};
GroupCosts CostsOf(const GroupWork& work, const ClusterShape& cluster);

/// Up to so many groups of one attempt leave it as its result, even if it has parts for them.
inline constexpr double kGroupsOfAnAttempt = 16'384;

}  // namespace nam::optimizer
