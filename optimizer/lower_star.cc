#include "optimizer/lower_star.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "optimizer/distribution.h"
#include "plan/check.h"
#include "plan/flow.h"
#include "plan/post_order.h"
#include "plan/table_schema.h"

namespace nam::optimizer {
namespace {

using plan::ColumnRef;
using plan::Expr;

/// Estimates are for readers: replaces invalid numbers of rows.
double ValidEstimate(double estimate) {
  return std::isfinite(estimate) ? std::max(0.0, estimate) : 0;
}

/// Makes the pipelines of a star, up to its open end.
class StarLowering {
 public:
  StarLowering(const Plan& star, const TableRefs& tables, PlanBuilder& builder, uint32_t stage)
      : star_(star), tables_(tables), builder_(builder), stage_(stage) {}

  absl::StatusOr<Flow> Run() {
    for (const auto& table : tables_) table_of_.push_back(builder_.AddTable(table));
    FindNeeded();
    NAM_ASSIGN_OR_RETURN(Flow probing, Scan(star_.driving, needed_[0]));
    for (size_t j = 0; j < star_.joins.size(); ++j) {
      NAM_ASSIGN_OR_RETURN(const Built built, Build(j));
      NAM_RETURN_IF_ERROR(Probe(j, built, probing));
    }
    return probing;
  }

 private:
  struct Built {
    uint32_t pipeline = 0;
    Layout payload;
  };

  /// needed_[j]: columns that the probe of join j or later operators read. The last: the output.
  void FindNeeded() {
    const size_t joins = star_.joins.size();
    needed_.resize(joins + 1);
    needed_[joins].insert(star_.output.begin(), star_.output.end());
    for (size_t j = joins; j-- > 0;) {
      needed_[j] = behind_probe(j);
      AddColumns(star_.joins[j].probe_keys, needed_[j]);
    }
  }

  /// The columns that the residuals of join j or later operators read.
  ColumnSet behind_probe(size_t j) const {
    ColumnSet columns = needed_[j + 1];
    for (const Expr& residual : star_.joins[j].residuals) AddColumns(residual, columns);
    return columns;
  }

  /// Emits the wanted columns of the table.
  absl::StatusOr<Flow> Scan(int table, const ColumnSet& wanted) const {
    const Plan::Table& from = star_.tables[static_cast<size_t>(table)];
    const proto::Table& metadata = *tables_[static_cast<size_t>(table)];
    plan::TableScan scan;
    scan.table = table_of_[static_cast<size_t>(table)];
    scan.columns = from.columns;
    Flow flow;
    Layout read;
    for (const uint32_t column : from.columns) {
      read.push_back({table, static_cast<int>(column)});
      NAM_ASSIGN_OR_RETURN(plan::Slot slot, plan::SlotOfColumn(metadata, column));
      scan.slots.push_back(std::move(slot));
    }
    NAM_ASSIGN_OR_RETURN(scan.filters, OverSlots(from.filters, read));
    scan.output = SlotsWhere(read, wanted);
    for (const uint32_t slot : scan.output) flow.layout.push_back(read[slot]);
    NAM_ASSIGN_OR_RETURN(plan::Schema flows, plan::ScanOutput(scan));
    flow.pipeline.schemas.push_back(std::move(flows));
    flow.pipeline.estimates.push_back(
        {ValidEstimate(from.rows * from.selectivity), ValidEstimate(from.selectivity)});
    flow.pipeline.stage = stage_;
    if (metadata.has_record()) {
      flow.pipeline.source = plan::RecordScan{std::move(scan)};
    } else {
      flow.pipeline.source = plan::BlockScan{std::move(scan)};
    }
    return flow;
  }

  /// The pipeline of join j's build side.
  absl::StatusOr<Built> Build(size_t j) {
    const Plan::Join& join = star_.joins[j];
    const ColumnSet fetched = behind_probe(j);
    ColumnSet wanted = fetched;
    AddColumns(join.build_keys, wanted);
    NAM_ASSIGN_OR_RETURN(Flow flow, Scan(join.table, wanted));
    plan::BuildSink build;
    NAM_ASSIGN_OR_RETURN(build.keys, OverSlots(join.build_keys, flow.layout));
    build.payload = SlotsWhere(flow.layout, fetched);
    build.unique = IsUnique(join);
    Built built;
    for (const uint32_t slot : build.payload) built.payload.push_back(flow.layout[slot]);
    built.pipeline = builder_.Close(std::move(flow), std::move(build));
    return built;
  }

  bool IsUnique(const Plan::Join& join) const {
    if (join.build_keys.size() != 1) return false;
    const Expr& key = join.build_keys[0];
    const Type &probe = join.probe_keys[0].type, &build = key.type;
    // Texts of one type that differ in their blanks alone are one key beside texts of the other.
    const bool blanks_do_not_count =
        plan::IsChar(probe) != plan::IsChar(build) && plan::IgnoresBlanks(probe, build);
    if (key.op != plan::Op::kColumn || blanks_do_not_count) return false;
    return tables_[static_cast<size_t>(join.table)]->columns(key.column.column).unique();
  }

  absl::Status Probe(size_t j, const Built& built, Flow& flow) const {
    const Plan::Join& join = star_.joins[j];
    plan::ProbeStep probe;
    probe.build = built.pipeline;
    NAM_ASSIGN_OR_RETURN(probe.keys, OverSlots(join.probe_keys, flow.layout));
    probe.keep = SlotsWhere(flow.layout, behind_probe(j));
    probe.fetch = FirstNumbers(built.payload.size());
    Layout after;
    for (const uint32_t slot : probe.keep) after.push_back(flow.layout[slot]);
    after.insert(after.end(), built.payload.begin(), built.payload.end());
    NAM_ASSIGN_OR_RETURN(probe.residuals, OverSlots(join.residuals, after));
    return builder_.Append(std::move(probe), std::move(after), ValidEstimate(join.rows_after), flow);
  }

  const Plan& star_;
  const TableRefs& tables_;
  PlanBuilder& builder_;
  const uint32_t stage_;
  std::vector<uint32_t> table_of_;  // in the plan
  std::vector<ColumnSet> needed_;
};

}  // namespace

absl::StatusOr<Flow> LowerStar(const Plan& star, const TableRefs& tables, PlanBuilder& builder,
                               uint32_t stage) {
  return StarLowering(star, tables, builder, stage).Run();
}

}  // namespace nam::optimizer
