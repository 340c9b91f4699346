#include <algorithm>
#include <variant>

#include "base/status_macros.h"
#include "optimizer/tree_lowering.h"
#include "plan/flow.h"
#include "plan/table_schema.h"
#include "plan/work_cost.h"

/// Chooses the distributed join and the aggregation with the least estimated cost.
namespace nam::optimizer {

using plan::Expr;
using plan::JoinAlgorithm;
using plan::JoinKind;
using plan::Op;

namespace {

namespace work_cost = plan::work_cost;

/// More rows are not joined in the session if they can go by parts.
constexpr double kMostRowsOfSessionJoin = 10'000;
/// Keys of a larger range cannot index an array.
constexpr double kSparsest = 8;

double BytesOfSlot(const plan::Slot& slot) {
  constexpr double kBytesOfText = 16;
  switch (PhysicalOf(slot.type)) {
    case Physical::kText:
      return kBytesOfText;
    case Physical::kTruth:
      return 1;
    case Physical::kInt64:
    case Physical::kInt128: {
      if (!slot.bounds.known) return PhysicalOf(slot.type) == Physical::kInt64 ? 8 : 16;
      const double spread = static_cast<double>(slot.bounds.high) - static_cast<double>(slot.bounds.low);
      return spread < 256 ? 1 : spread < 65536 ? 2 : spread < 4294967296.0 ? 4 : spread < 1.8e19 ? 8 : 16;
    }
    default:
      return 16;
  }
}

/// One thread's time until all rows of a flow exist.
double SourcePs(const Flow& flow, const TableRefs& tables, const ClusterShape& cluster) {
  const plan::Pipeline& pipeline = flow.pipeline;
  double ps = 0;
  if (const plan::TableScan* scan = plan::ScanOf(pipeline); scan != nullptr) {
    ps = ScanPs(static_cast<double>(tables[scan->table]->rows()), BytesOfRow(scan->slots), cluster.constants);
  } else {
    // For parts, which are read, or joined.
    ps = pipeline.estimates[0].rows *
         (cluster.constants.finish_row_ps + BytesOfRow(pipeline.schemas[0]) * cluster.constants.read_byte_ps);
  }
  for (size_t s = 0; s < pipeline.steps.size(); ++s)
    ps += pipeline.estimates[s].rows * work_cost::kFilterRowPs;
  return ps;
}

/// Whether the build side of a star's join is an array by key.
bool IsDirect(const Plan::Join& join, const TableRefs& tables) {
  if (join.build_keys.size() != 1 || join.build_keys[0].op != Op::kColumn) return false;
  const proto::Table& table = *tables[static_cast<size_t>(join.table)];
  const proto::Column& column = table.columns(join.build_keys[0].column.column);
  const double range = static_cast<double>(column.max()) - static_cast<double>(column.min());
  return column.unique() && range < kSparsest * static_cast<double>(table.rows());
}

bool DropsProbe(JoinKind kind) {
  return kind == JoinKind::kInner || kind == JoinKind::kSemi || kind == JoinKind::kRight;
}

absl::StatusOr<plan::Schema> SchemaOf(const ColumnSet& columns, const TableRefs& tables,
                                      const std::vector<bool>& some) {
  plan::Schema schema;
  for (const plan::ColumnRef column : columns) {
    const auto t = static_cast<size_t>(column.table);
    if (!some[t]) continue;
    NAM_ASSIGN_OR_RETURN(schema.emplace_back(),
                         plan::SlotOfColumn(*tables[t], static_cast<uint32_t>(column.column)));
  }
  return schema;
}

absl::StatusOr<plan::Schema> SchemaOfTable(const Plan::Table& table, const proto::Table& metadata) {
  plan::Schema schema;
  for (const uint32_t column : table.columns) {
    NAM_ASSIGN_OR_RETURN(schema.emplace_back(), plan::SlotOfColumn(metadata, column));
  }
  return schema;
}

}  // namespace

bool HasHash(const Expr& key) {
  return !key.type.packed();
}

bool MayGoByParts(const std::vector<Expr>& keys) {
  return !keys.empty() && std::all_of(keys.begin(), keys.end(), HasHash);
}

double ShareOfMostCommon(const proto::Table& table, int column) {
  const proto::Column& of = table.columns(column);
  if (of.common().empty() || table.rows() == 0) return 0;
  return std::min(1.0, static_cast<double>(of.common(0).rows()) / static_cast<double>(table.rows()));
}

double HeaviestOf(const std::vector<Expr>& keys, const TableRefs& tables) {
  double heaviest = 1;
  for (const Expr& key : keys) {
    if (key.op != Op::kColumn) return 0;
    const proto::Table& table = *tables[static_cast<size_t>(key.column.table)];
    heaviest = std::min(heaviest, ShareOfMostCommon(table, key.column.column));
  }
  return heaviest;
}

double BytesOfRow(const plan::Schema& schema) {
  double bytes = 0;
  for (const plan::Slot& slot : schema) bytes += BytesOfSlot(slot);
  return bytes;
}

double BytesOfRows(double rows, const plan::Schema& schema) {
  return rows * (kTableBytesOfRow + BytesOfRow(schema));
}

uint32_t PartsOfRows(double rows, const plan::Schema& schema) {
  return static_cast<uint32_t>(RrjParts({.rows = rows, .row_bytes = BytesOfRow(schema)}));
}

bool TreeLowering::IsTooLarge(double rows, const plan::Schema& schema) const {
  return options_.join == JoinAlgorithm::kAuto &&
         BytesOfRows(rows, schema) >= static_cast<double>(options_.build_bytes_max);
}

JoinChoice TreeLowering::Choose(const JoinWork& work, const JoinPossibilities& can) const {
  const JoinParts parts{.rrj = RrjParts(work.build), .rdma_ghj = RdmaGhjParts(options_.cluster.workers())};
  return ChooseJoin(options_.join, can, CostsOf(work, parts, options_.cluster));
}

JoinChoice TreeLowering::Choose(const JoinOf& join, const Flow& probed, const Flow& built, bool whole) {
  JoinWork work{.build = {.rows = built.rows(),
                          .row_bytes = BytesOfRow(built.schema()),
                          .source_ps = SourcePs(built, builder_.tables(), options_.cluster)},
                .probe = {.rows = probed.rows(),
                          .row_bytes = BytesOfRow(probed.schema()),
                          .source_ps = SourcePs(probed, builder_.tables(), options_.cluster)},
                .whole_build = whole,
                .heaviest = join.heaviest,
                .drops_probe = DropsProbe(join.kind)};
  if (join.rows >= 0 && probed.rows() > 0) work.probe.matching = std::min(1.0, join.rows / probed.rows());
  const bool too_large = IsTooLarge(built.rows(), built.schema());
  return Choose(
      work, {.by_parts = MayGoByParts(join.left),
             .no_exchange = too_large ? NoExchange::kTooLarge : WhyNoExchange(join, probed, built),
             .drops_probe = work.drops_probe,
             .build_too_large = whole && too_large,
             .session_too_small = !whole && std::max(probed.rows(), built.rows()) > kMostRowsOfSessionJoin});
}

absl::StatusOr<JoinChoice> TreeLowering::Choose(const Plan& star, const TableRefs& tables, size_t j) const {
  const Plan::Join& join = star.joins[j];
  const auto t = static_cast<size_t>(join.table);
  const Plan::Table& build = star.tables[t];
  const Plan::Table& driving = star.tables[static_cast<size_t>(star.driving)];
  std::vector<bool> before(tables.size());
  before[static_cast<size_t>(star.driving)] = true;
  for (size_t i = 0; i < j; ++i) before[static_cast<size_t>(star.joins[i].table)] = true;
  NAM_ASSIGN_OR_RETURN(const plan::Schema built, SchemaOfTable(build, *tables[t]));
  NAM_ASSIGN_OR_RETURN(const plan::Schema read,
                       SchemaOfTable(driving, *tables[static_cast<size_t>(star.driving)]));
  NAM_ASSIGN_OR_RETURN(const plan::Schema probed, SchemaOf(NeededFrom(star, j), tables, before));
  const double rows = build.rows * build.selectivity;
  const double probes = j == 0 ? driving.rows * driving.selectivity : star.joins[j - 1].rows_after;
  const JoinWork work{
      .build = {.rows = rows,
                .row_bytes = BytesOfRow(built),
                .source_ps = ScanPs(build.rows, BytesOfRow(built), options_.cluster.constants)},
      .probe = {.rows = probes,
                .row_bytes = BytesOfRow(probed),
                .source_ps = ScanPs(driving.rows, BytesOfRow(read), options_.cluster.constants),
                .matching = probes > 0 ? std::min(1.0, join.rows_after / probes) : 1},
      .direct = IsDirect(join, tables),
      .heaviest = HeaviestOf(join.probe_keys, tables)};
  const bool too_large = IsTooLarge(rows, built);
  return Choose(work, {.by_parts = MayGoByParts(join.build_keys),
                       .no_exchange = too_large ? NoExchange::kTooLarge : NoExchange::kPossible,
                       .build_too_large = too_large});
}

GroupCosts TreeLowering::CostsOfGroups(double rows, double groups, const plan::Schema& schema) const {
  return CostsOf(GroupWork{.rows = rows, .groups = std::max(1.0, groups), .state_bytes = BytesOfRow(schema)},
                 options_.cluster);
}

}  // namespace nam::optimizer
