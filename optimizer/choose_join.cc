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

/// Whether the build side is an array by key.
bool IsDirect(const StoredColumn* key) {
  if (key == nullptr || !key->column->unique()) return false;
  const double range = static_cast<double>(key->column->max()) - static_cast<double>(key->column->min());
  return range < kSparsest * static_cast<double>(key->rows);
}

bool DropsProbe(JoinKind kind) {
  return kind == JoinKind::kInner || kind == JoinKind::kSemi || kind == JoinKind::kRight;
}

}  // namespace

bool HasHash(const Expr& key) {
  return !key.type.packed();
}

bool MayGoByParts(const std::vector<Expr>& keys) {
  return !keys.empty() && std::all_of(keys.begin(), keys.end(), HasHash);
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

JoinChoice TreeLowering::Choose(const JoinOf& join, const Flow& probed, const Flow& built, bool whole) {
  JoinWork work{.build = {.rows = built.rows(),
                          .row_bytes = BytesOfRow(built.schema()),
                          .source_ps = SourcePs(built, builder_.tables(), options_.cluster)},
                .probe = {.rows = probed.rows(),
                          .row_bytes = BytesOfRow(probed.schema()),
                          .source_ps = SourcePs(probed, builder_.tables(), options_.cluster)},
                .direct = IsUnique(join, built) && IsDirect(cardinalities_.StoredOf(join.right[0])),
                .whole_build = whole,
                .heaviest = join.heaviest,
                .drops_probe = DropsProbe(join.kind)};
  if (join.values > 0) work.probe.matching = std::min(1.0, built.rows() / join.values);
  const bool too_large = IsTooLarge(built.rows(), built.schema());
  const JoinPossibilities can{
      .by_parts = MayGoByParts(join.left),
      .no_exchange = too_large ? NoExchange::kTooLarge : WhyNoExchange(join, probed, built),
      .drops_probe = work.drops_probe,
      .build_too_large = whole && too_large,
      .session_too_small = !whole && std::max(probed.rows(), built.rows()) > kMostRowsOfSessionJoin};
  const JoinParts parts{.rrj = RrjParts(work.build), .rdma_ghj = RdmaGhjParts(options_.cluster.workers())};
  return ChooseJoin(options_.join, can, CostsOf(work, parts, options_.cluster));
}

GroupCosts TreeLowering::CostsOfGroups(double rows, double groups, const plan::Schema& schema) const {
  return CostsOf(GroupWork{.rows = rows, .groups = std::max(1.0, groups), .state_bytes = BytesOfRow(schema)},
                 options_.cluster);
}

}  // namespace nam::optimizer
