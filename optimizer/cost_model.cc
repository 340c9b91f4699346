#include "optimizer/cost_model.h"

#include <algorithm>
#include <set>

#include "optimizer/slots.h"
#include "partitioner/table_metadata.h"
#include "plan/aggregate.h"
#include "plan/work_cost.h"

namespace nam::optimizer {
namespace {

namespace work_cost = plan::work_cost;

double Width(const TableRefs& tables, plan::ColumnRef ref) {
  return partitioner::StoredBytesOf(tables[static_cast<size_t>(ref.table)]->columns(ref.column));
}

double RowBytes(const Plan& plan, const TableRefs& tables, int table) {
  const auto number = static_cast<size_t>(table);
  return static_cast<double>(partitioner::StoredRowBytes(*tables[number], plan.tables[number].columns));
}

double NetworkMs(double bytes) {
  return bytes / kCardBytesPerUs / 1e3;
}

/// The rows that reach each join, and, last, the sink.
std::vector<double> RowsAt(const Plan& plan) {
  const Plan::Table& driving = plan.tables[static_cast<size_t>(plan.driving)];
  std::vector<double> rows{driving.rows * driving.selectivity};
  for (const Plan::Join& join : plan.joins) rows.push_back(join.rows_after);
  return rows;
}

/// The bytes that travel to join `j` of a shuffle-based plan: its key, and the columns wanted from there on.
struct Leg {
  double columns = 0;
  double bytes = 0;
};

std::set<plan::ColumnRef> WantedFrom(const Plan& plan, size_t join) {
  std::set<plan::ColumnRef> wanted;
  for (size_t j = join; j < plan.joins.size(); ++j) {
    AddColumns(plan.joins[j].probe_keys, wanted);
    for (const plan::Expr& residual : plan.joins[j].residuals) AddColumns(residual, wanted);
  }
  wanted.insert(plan.output.begin(), plan.output.end());
  return wanted;
}

Leg ProbeLeg(const Plan& plan, const TableRefs& tables, size_t join) {
  Leg leg;
  for (const plan::ColumnRef ref : WantedFrom(plan, join)) {
    bool there = ref.table == plan.driving;
    for (size_t j = 0; j < join; ++j) there = there || plan.joins[j].table == ref.table;
    if (!there) continue;
    leg.columns += 1;
    leg.bytes += Width(tables, ref);
  }
  return leg;
}

Leg BuildLeg(const Plan& plan, const TableRefs& tables, size_t join) {
  std::set<plan::ColumnRef> columns = WantedFrom(plan, join + 1);
  AddColumns(plan.joins[join].build_keys, columns);
  for (const plan::Expr& residual : plan.joins[join].residuals) AddColumns(residual, columns);
  Leg leg;
  for (const plan::ColumnRef ref : columns) {
    if (ref.table != plan.joins[join].table) continue;
    leg.columns += 1;
    leg.bytes += Width(tables, ref);
  }
  return leg;
}

ModelCost PipelinedOn(const Plan& plan, const TableRefs& tables, const Assignment::Share& share,
                      int threads) {
  const auto driving = static_cast<double>(share.rows);
  const std::vector<double> rows = RowsAt(plan);
  const double all = plan.tables[static_cast<size_t>(plan.driving)].rows;
  const double part = all == 0 ? 0 : driving / all;
  const auto bytes = static_cast<double>(share.driving_bytes + share.build_bytes);
  const std::vector<uint32_t> partitions = partitioner::PartitionsOf(share.pieces);
  double ps = bytes * work_cost::kChecksumBytePs + driving * work_cost::kFirstFilterRowPs;
  for (size_t j = 0; j < plan.joins.size(); ++j) {
    const Plan::Join& join = plan.joins[j];
    ps += rows[j] * part * work_cost::kFilterRowPs;
    const proto::Table& side = *tables[static_cast<size_t>(join.table)];
    double build =
        side.has_record() ? static_cast<double>(side.rows()) : 0;  // record tables have no partitions
    const std::optional<int> key = MatchingKey(plan, join, tables);
    for (const uint32_t p :
         partitioner::NeededPartitions(*tables[static_cast<size_t>(plan.driving)], side, key, partitions))
      build += static_cast<double>(side.partitions(static_cast<int>(p)).rows());
    ps += build * (work_cost::kFirstFilterRowPs +
                   plan.tables[static_cast<size_t>(join.table)].selectivity * work_cost::kInsertRowPs);
  }
  ps += rows.back() * part *
        (work_cost::kSinkRowPs + static_cast<double>(plan.joins.size()) * work_cost::kPartnerRowPs);
  return {.compute_ms = ps / threads / work_cost::kPsPerMs, .network_ms = NetworkMs(bytes)};
}

/// All servers do the same amount; each holds its keys' part of either input.
ModelCost Shuffled(const Plan& plan, const TableRefs& tables, double servers, int threads,
                   double& shuffled_bytes) {
  const std::vector<double> rows = RowsAt(plan);
  double read = 0, routed = 0, ps = 0;
  const auto read_table = [&](int table) {
    const Plan::Table& of = plan.tables[static_cast<size_t>(table)];
    const double bytes = of.rows * RowBytes(plan, tables, table);
    read += bytes;
    ps += bytes * work_cost::kChecksumBytePs + of.rows * work_cost::kFirstFilterRowPs;
    return of.rows * of.selectivity;
  };
  const auto route = [&](double tuples, const Leg& leg) {
    routed += tuples * leg.bytes;
    ps += tuples * (work_cost::kRouteRowPs + leg.columns * work_cost::kRouteCodePs);
  };
  read_table(plan.driving);
  for (size_t j = 0; j < plan.joins.size(); ++j) {
    const double build = read_table(plan.joins[j].table);
    route(build, BuildLeg(plan, tables, j));
    ps += build * work_cost::kInsertRowPs;
    route(rows[j], ProbeLeg(plan, tables, j));
    ps += rows[j] * work_cost::kProbeRowPs;
  }
  ps += rows.back() * work_cost::kSinkRowPs;
  shuffled_bytes = routed * (servers - 1) / servers;
  return {.compute_ms = ps / servers / threads / work_cost::kPsPerMs,
          .network_ms = NetworkMs((read + shuffled_bytes) / servers)};
}

}  // namespace

ReplicationCosts CostsOf(const ReplicatedSides& sides) {
  const double build_ps = sides.rows * (work_cost::kFirstFilterRowPs + work_cost::kInsertRowPs) +
                          sides.bytes * work_cost::kChecksumBytePs;
  const double once_ms = NetworkMs(sides.bytes / sides.senders);
  // All servers' copies leave through the same cards, but no server takes more than its own card does.
  const double read_ms = std::max(once_ms * sides.servers, NetworkMs(sides.bytes));
  // One thread of each server receives a sender's stream.
  const double receivers = std::min(sides.senders, sides.threads);
  const double receive_ps =
      sides.datagrams * work_cost::kDatagramPs + sides.bytes * work_cost::kDatagramBytePs;
  return {.read_ms = std::max(read_ms, build_ps / sides.threads / work_cost::kPsPerMs),
          .multicast_ms =
              work_cost::kMulticastStartPs / work_cost::kPsPerMs +
              std::max({once_ms, NetworkMs(sides.bytes),
                        sides.datagrams / sides.senders * work_cost::kDatagramPs / work_cost::kPsPerMs,
                        (build_ps + receive_ps) / receivers / work_cost::kPsPerMs})};
}

PlanCosts CostsOf(const Plan& plan, const TableRefs& tables, const std::vector<Assignment::Share>& shares,
                  int threads) {
  PlanCosts costs;
  if (shares.empty()) return costs;
  for (const Assignment::Share& share : shares) {
    const ModelCost cost = PipelinedOn(plan, tables, share, std::max(threads, 1));
    if (cost.ms() > costs.pipelined.ms()) costs.pipelined = cost;
    costs.replicated_bytes += static_cast<double>(share.build_bytes);
  }
  for (const Plan::Join& join : plan.joins) {
    const Plan::Table& build = plan.tables[static_cast<size_t>(join.table)];
    costs.replicated_bytes -= build.rows * RowBytes(plan, tables, join.table);
  }
  costs.replicated_bytes = std::max(costs.replicated_bytes, 0.0);
  costs.shuffle =
      Shuffled(plan, tables, static_cast<double>(shares.size()), std::max(threads, 1), costs.shuffled_bytes);
  return costs;
}

}  // namespace nam::optimizer
