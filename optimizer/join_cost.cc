#include "optimizer/join_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "plan/work_cost.h"

namespace nam::optimizer {

using catalog::FabricConstants;
using plan::JoinAlgorithm;

namespace {

namespace work_cost = plan::work_cost;

constexpr double kNever = std::numeric_limits<double>::infinity();
/// For a Bloom filter with kBloomError: 1.44 log2(1 / error) for each key.
constexpr double kBloomBytesOfRow = 0.6;
/// A thread's table of groups, until it is written.
constexpr double kGroupsOfATable = 131'072;
constexpr double kBytesOfPart = 1 << 20;
constexpr double kFewestJoinParts = 64, kMostJoinParts = 1024;
/// Large parts: some for each worker, so that none is left alone with the last one.
constexpr double kLargePartsOfWorker = 2, kFewestLargeParts = 8;

double PowerOfTwo(double parts) {
  return std::bit_ceil(static_cast<uint32_t>(parts));
}

// Uncalibrated rows cost what other estimates and virtual time assume.
static_assert(FabricConstants().build_row_ps == work_cost::kInsertRowPs);
static_assert(FabricConstants().probe_row_ps == work_cost::kProbeKeyPs);
static_assert(FabricConstants().direct_probe_row_ps == work_cost::kFilterRowPs);
static_assert(FabricConstants().group_row_ps == work_cost::kSinkRowPs);
static_assert(FabricConstants().combine_group_ps == work_cost::kCombineGroupPs);
static_assert(FabricConstants().finish_row_ps == work_cost::kFinishRowPs);

/// The cost of a pass over memory, and through the network, of what algorithms move beside it.
ByteCosts BytesOf(JoinAlgorithm algorithm, const ClusterShape& cluster) {
  const FabricConstants& constants = cluster.constants;
  const bool in_parts = algorithm == JoinAlgorithm::kRrj || algorithm == JoinAlgorithm::kRdmaGhj;
  // A server's rows for itself do not leave it.
  const double remote = (cluster.servers - 1) / cluster.servers;
  const double sent = std::min(constants.send_byte_ps, constants.socket_byte_ps);
  // Half of the passes are WRITEs of pages, half READs.
  const double in_background = (constants.write_64k_byte_ps + constants.read_byte_ps) / 2;
  return {.memory = constants.memory_byte_ps,
          .network = in_parts ? 0 : sent * remote,
          .background = in_parts ? in_background : 0,
          .overlapped = cluster.overlapped};
}

/// One thread's time to put one side's rows into so many tables, and to look up the other side's rows.
double JoinPs(const JoinWork& work, double build_rows, double probe_rows, double tables,
              const FabricConstants& constants) {
  const double row_bytes = work.build.row_bytes + (work.direct ? 0 : kTableBytesOfRow);
  const double access = AccessPs(work.build.rows * row_bytes / tables, constants);
  const double build_row_ps = work.direct ? constants.direct_build_row_ps : constants.build_row_ps;
  const double probe_row_ps = work.direct ? constants.direct_probe_row_ps : constants.probe_row_ps;
  return build_rows * (build_row_ps + access) + probe_rows * (probe_row_ps + access);
}

/// The time of all workers for work in so many pieces, one of which has the most common key.
double InPieces(double ps, double pieces, double heaviest, const ClusterShape& cluster) {
  const double largest = std::min(1.0, heaviest + 1 / pieces);
  return ps * std::max(1 / cluster.workers(), largest);
}

double PipelinedPs(const JoinWork& work, const ClusterShape& cluster) {
  const FabricConstants& constants = cluster.constants;
  const JoinSide &build = work.build, &probe = work.probe;
  if (!work.whole_build) {
    // Servers leave their rows to the session, where one thread joins them.
    const double rows = build.rows + probe.rows;
    return (build.source_ps + probe.source_ps + rows * constants.finish_row_ps) / cluster.workers() +
           (build.bytes() + probe.bytes()) * (constants.read_byte_ps + constants.memory_byte_ps) +
           rows * constants.finish_row_ps + JoinPs(work, build.rows, probe.rows, 1, constants) +
           2 * constants.stage_ps;
  }
  // Every server reads all of the build side, and shares it among its threads only.
  return (build.source_ps + JoinPs(work, build.rows, 0, 1, constants)) / cluster.threads +
         (probe.source_ps + JoinPs(work, 0, probe.rows, 1, constants)) / cluster.workers() +
         constants.stage_ps;
}

/// Both sides go to parts in scratch memory, which tasks join.
double ByPartsPs(JoinAlgorithm algorithm, double parts, const JoinWork& work, const ClusterShape& cluster) {
  const FabricConstants& constants = cluster.constants;
  const JoinSide &build = work.build, &probe = work.probe;
  const double rows = build.rows + probe.rows, bytes = build.bytes() + probe.bytes();
  const double moved = bytes * CostOf(PassesOf(algorithm), BytesOf(algorithm, cluster));
  const double partition = build.source_ps + probe.source_ps + rows * constants.partition_row_ps + moved;
  const double join = JoinPs(work, build.rows, probe.rows, parts, constants);
  // Each worker opens a page of each part, of either side, and begins a slab.
  const double opened = 3 * parts * constants.part_ps + 2 * constants.slab_ps;
  // Several tasks share a part that a common key makes large.
  return partition / cluster.workers() + InPieces(join, parts, /*heaviest=*/0, cluster) +
         opened / cluster.threads + 3 * constants.stage_ps + 2 * cluster.servers * constants.call_ps;
}

/// Rows are sent to the server that owns their key, and joined there.
double ExchangePs(JoinAlgorithm algorithm, const JoinWork& work, const ClusterShape& cluster) {
  const FabricConstants& constants = cluster.constants;
  const JoinSide &build = work.build, &probe = work.probe;
  const bool reduced = algorithm == JoinAlgorithm::kGhjBloom;
  // Only the build side's filter exists before its rows are sent: it drops rows of the probe side.
  const double left = reduced && work.drops_probe ? AfterBloom(probe.matching, kBloomError) : 1;
  const ByteCosts costs = BytesOf(algorithm, cluster);
  const BytePasses passes = PassesOf(JoinAlgorithm::kGhj);
  double ps = build.source_ps + probe.source_ps +
              (build.bytes() + left * probe.bytes()) * CostOf(passes, costs) +
              (build.rows + left * probe.rows) * constants.partition_row_ps;
  double alone = 0;
  if (reduced) {
    const double filter = build.rows * kBloomBytesOfRow;
    ps += build.bytes() * costs.memory +
          (build.rows + probe.rows) * (constants.bloom_row_ps + AccessPs(filter, constants));
    alone = filter * (costs.network + costs.memory) + cluster.servers * constants.call_ps;
  }
  const double join = JoinPs(work, build.rows, left * probe.rows, cluster.workers(), constants);
  return ps / cluster.workers() + alone + InPieces(join, cluster.workers(), work.heaviest, cluster) +
         2 * constants.stage_ps + 2 * cluster.servers * constants.call_ps;
}

}  // namespace

BytePasses PassesOf(JoinAlgorithm algorithm, double selectivity) {
  switch (algorithm) {
    case JoinAlgorithm::kGhj:  // read, written by the receiver; the radix join reads twice
      return {.memory = 4, .network = 1};
    case JoinAlgorithm::kGhjBloom:  // a scan for the filter, then the rows that it leaves
      return {.memory = 1 + 4 * selectivity, .network = selectivity};
    case JoinAlgorithm::kRdmaGhj:  // read while WRITEs go on, then the radix join over prefetched parts
      return {.memory = 3, .background = 2};
    case JoinAlgorithm::kRrj:  // partitioned as in the radix join, and joined
      return {.memory = 2, .background = 2};
    case JoinAlgorithm::kAuto:
    case JoinAlgorithm::kPipelined:
      break;
  }
  return {};
}

double CostOf(const BytePasses& passes, const ByteCosts& costs) {
  const double memory = passes.memory * costs.memory, background = passes.background * costs.background;
  return passes.network * costs.network +
         (costs.overlapped ? std::max(memory, background) : memory + background);
}

double AfterBloom(double selectivity, double error) {
  return std::min(1.0, selectivity + (1 - selectivity) * error);
}

double& CostOf(JoinAlgorithm algorithm, JoinCosts& costs) {
  return costs[static_cast<size_t>(algorithm)];
}
double CostOf(JoinAlgorithm algorithm, const JoinCosts& costs) {
  return costs[static_cast<size_t>(algorithm)];
}

double AccessPs(double working_set_bytes, const FabricConstants& constants) {
  // Accesses beyond a cache hit it as often as its share of the whole.
  if (working_set_bytes <= constants.l2_bytes) return constants.l2_access_ps;
  const double in_l2 = constants.l2_bytes / working_set_bytes;
  if (working_set_bytes <= constants.l3_bytes)
    return in_l2 * constants.l2_access_ps + (1 - in_l2) * constants.l3_access_ps;
  const double in_l3 = constants.l3_bytes / working_set_bytes;
  const double in_cache = in_l2 * constants.l2_access_ps + (in_l3 - in_l2) * constants.l3_access_ps;
  return in_cache + (1 - in_l3) * constants.memory_access_ps;
}

double ScanPs(double rows, double row_bytes, const FabricConstants& constants) {
  return rows *
         (work_cost::kFirstFilterRowPs + row_bytes * (work_cost::kChecksumBytePs + constants.read_byte_ps));
}

double RrjParts(const JoinSide& build) {
  return PowerOfTwo(std::clamp(build.rows * (build.row_bytes + kTableBytesOfRow) / kBytesOfPart,
                               kFewestJoinParts, kMostJoinParts));
}

double RdmaGhjParts(double workers) {
  return PowerOfTwo(std::clamp(workers * kLargePartsOfWorker, kFewestLargeParts, kMostJoinParts));
}

JoinCosts CostsOf(const JoinWork& work, const JoinParts& parts, const ClusterShape& cluster) {
  JoinCosts costs;
  costs.fill(kNever);
  const auto set = [&](JoinAlgorithm algorithm, double ps) {
    CostOf(algorithm, costs) = ps / work_cost::kPsPerMs;
  };
  set(JoinAlgorithm::kPipelined, PipelinedPs(work, cluster));
  set(JoinAlgorithm::kRrj, ByPartsPs(JoinAlgorithm::kRrj, parts.rrj, work, cluster));
  set(JoinAlgorithm::kRdmaGhj, ByPartsPs(JoinAlgorithm::kRdmaGhj, parts.rdma_ghj, work, cluster));
  set(JoinAlgorithm::kGhj, ExchangePs(JoinAlgorithm::kGhj, work, cluster));
  set(JoinAlgorithm::kGhjBloom, ExchangePs(JoinAlgorithm::kGhjBloom, work, cluster));
  return costs;
}

JoinAlgorithm CheapestOf(const JoinCosts& costs) {
  auto cheapest = JoinAlgorithm::kPipelined;
  for (size_t a = 0; a < costs.size(); ++a) {
    if (costs[a] < CostOf(cheapest, costs)) cheapest = static_cast<JoinAlgorithm>(a);
  }
  return cheapest;
}

GroupCosts CostsOf(const GroupWork& work, const ClusterShape& cluster) {
  const FabricConstants& constants = cluster.constants;
  const double workers = cluster.workers();
  const double of_thread = std::min(work.groups, work.rows / workers);
  const double of_server = std::min(work.groups, work.rows / cluster.servers);
  const double table_bytes = work.state_bytes + kTableBytesOfRow;

  // Each server combines its threads' groups; one thread of the session merges all servers'.
  const double grouped =
      (work.source_ps + work.rows * (constants.group_row_ps + AccessPs(of_thread * table_bytes, constants))) /
      workers;
  const double combined =
      of_thread * (constants.combine_group_ps + AccessPs(of_server * table_bytes, constants));
  const double merged = cluster.servers * of_server *
                        (work.state_bytes * (constants.read_byte_ps + constants.memory_byte_ps) +
                         constants.combine_group_ps + AccessPs(work.groups * table_bytes, constants));
  const double dist = grouped + combined + merged + constants.stage_ps;
  GroupCosts costs{.rdma_ms = dist / work_cost::kPsPerMs, .dist_ms = dist / work_cost::kPsPerMs};
  if (of_server <= kGroupsOfAnAttempt) return costs;

  // Tables of bounded size reduce what they can; their overflow is written as states.
  const double in_table = std::min(of_thread, kGroupsOfATable);
  const double states_of_thread =
      of_thread <= kGroupsOfATable
          ? of_thread
          : std::min(work.rows / workers, work.rows / workers * (1 - in_table / of_thread) + in_table);
  const double states = states_of_thread * workers;
  const ByteCosts bytes = BytesOf(JoinAlgorithm::kRrj, cluster);
  const double table_ps = constants.group_row_ps + AccessPs(in_table * table_bytes, constants);
  const double written =
      states * (constants.partition_row_ps + work.state_bytes * CostOf(PassesOf(JoinAlgorithm::kRrj), bytes));
  const double parts = std::clamp(work.groups / kGroupsOfAnAttempt, 64.0, 1024.0);
  const double merge_ps =
      states * (constants.combine_group_ps + AccessPs(work.groups / parts * table_bytes, constants));
  const double rdma = (work.source_ps + work.rows * table_ps + written) / workers +
                      InPieces(merge_ps, parts, 0, cluster) +
                      (2 * parts * constants.part_ps + constants.slab_ps) / cluster.threads +
                      2 * constants.stage_ps + cluster.servers * constants.call_ps;
  costs.rdma_ms = rdma / work_cost::kPsPerMs;
  return costs;
}

}  // namespace nam::optimizer
