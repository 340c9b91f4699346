#include "optimizer/lower.h"

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

absl::Status Bad(const char* what) {
  return absl::InvalidArgumentError(std::string("not a star: ") + what);
}

/// Estimates are for people: what is no number of rows is none.
double RowsOf(double estimate) {
  return std::isfinite(estimate) ? std::max(0.0, estimate) : 0;
}

/// The pipelines of a star, up to what reaches its end.
class StarLowering {
 public:
  StarLowering(const Plan& star, const TableRefs& tables, PlanBuilder& builder, uint32_t stage)
      : star_(star), tables_(tables), builder_(builder), stage_(stage) {}

  absl::StatusOr<Flow> Run() {
    NAM_RETURN_IF_ERROR(CheckShape());
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

  absl::Status CheckShape() const {
    const size_t n = star_.tables.size();
    if (tables_.size() != n || static_cast<size_t>(star_.driving) >= n)
      return Bad("tables that do not match");
    if (star_.order.size() > star_.output.size()) return Bad("an order by what is not put out");
    for (const Plan::Join& join : star_.joins) {
      if (static_cast<size_t>(join.table) >= n) return Bad("a join of no table");
    }
    for (size_t t = 0; t < n; ++t) {
      for (const uint32_t column : star_.tables[t].columns) {
        if (column >= static_cast<uint32_t>(tables_[t]->columns_size())) return Bad("a column of no table");
      }
    }
    return absl::OkStatus();
  }

  /// needed_[j]: columns that the probe of join j or something behind it looks at. The last: the sink alone.
  void FindNeeded() {
    const size_t joins = star_.joins.size();
    needed_.resize(joins + 1);
    ColumnSet& sink = needed_[joins];
    for (const Expr& key : star_.group_by) AddColumns(key, sink);
    for (const auto& aggregate : star_.aggregates) AddColumns(aggregate.argument, sink);
    for (const Expr& expr : star_.output) AddColumns(expr, sink);
    for (size_t j = joins; j-- > 0;) {
      needed_[j] = behind_probe(j);
      AddColumns(star_.joins[j].probe_key, needed_[j]);
    }
  }

  /// What the residuals of join j or something behind them looks at.
  ColumnSet behind_probe(size_t j) const {
    ColumnSet columns = needed_[j + 1];
    for (const Expr& residual : star_.joins[j].residuals) AddColumns(residual, columns);
    return columns;
  }

  /// The table's columns that are wanted flow on.
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
    flow.pipeline.estimates.push_back({RowsOf(from.rows * from.selectivity), RowsOf(from.selectivity)});
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
    AddColumns(join.build_key, wanted);
    NAM_ASSIGN_OR_RETURN(Flow flow, Scan(join.table, wanted));
    plan::BuildSink build;
    NAM_ASSIGN_OR_RETURN(Expr key, OverSlots(join.build_key, flow.layout));
    build.keys.push_back(std::move(key));
    build.payload = SlotsWhere(flow.layout, fetched);
    build.unique = IsUnique(join);
    Built built;
    for (const uint32_t slot : build.payload) built.payload.push_back(flow.layout[slot]);
    built.pipeline = builder_.Close(std::move(flow), std::move(build));
    return built;
  }

  bool IsUnique(const Plan::Join& join) const {
    const Type &probe = join.probe_key.type, &build = join.build_key.type;
    // Texts of one kind that differ in their blanks alone are one key beside texts of the other.
    const bool blanks_do_not_count =
        plan::IsChar(probe) != plan::IsChar(build) && plan::IgnoresBlanks(probe, build);
    if (join.build_key.op != plan::Op::kColumn || blanks_do_not_count) return false;
    return tables_[static_cast<size_t>(join.table)]->columns(join.build_key.column.column).unique();
  }

  absl::Status Probe(size_t j, const Built& built, Flow& flow) const {
    const Plan::Join& join = star_.joins[j];
    plan::ProbeStep probe;
    probe.build = built.pipeline;
    NAM_ASSIGN_OR_RETURN(Expr key, OverSlots(join.probe_key, flow.layout));
    probe.keys.push_back(std::move(key));
    probe.keep = SlotsWhere(flow.layout, behind_probe(j));
    probe.fetch = FirstNumbers(built.payload.size());
    Layout after;
    for (const uint32_t slot : probe.keep) after.push_back(flow.layout[slot]);
    after.insert(after.end(), built.payload.begin(), built.payload.end());
    NAM_ASSIGN_OR_RETURN(probe.residuals, OverSlots(join.residuals, after));
    return builder_.Append(std::move(probe), std::move(after), RowsOf(join.rows_after), flow);
  }

  const Plan& star_;
  const TableRefs& tables_;
  PlanBuilder& builder_;
  const uint32_t stage_;
  std::vector<uint32_t> table_of_;  // of the plan
  std::vector<ColumnSet> needed_;
};

/// The end of a star: its sink.
class StarEnd {
 public:
  StarEnd(const Plan& star, PlanBuilder& builder, plan::Stage::Site site)
      : star_(star), builder_(builder), site_(site) {}

  absl::StatusOr<plan::SinkNode> Run(Flow& flow) const {
    if (star_.aggregated) return Aggregate(flow.layout);
    plan::ProjectStep project;
    NAM_ASSIGN_OR_RETURN(project.outputs, OverSlots(star_.output, flow.layout));
    NAM_RETURN_IF_ERROR(builder_.Append(std::move(project), Layout(star_.output.size()), flow.rows(), flow));
    plan::ResultSink result;
    result.limit = star_.row_limit;
    // Without a limit the order is left to the session, which merges the servers' rows.
    if (site_ == plan::Stage::Site::kSession) result.limit = -1;
    for (size_t i = 0; i < star_.order.size() && result.limit >= 0; ++i) {
      const auto slot = static_cast<uint32_t>(star_.output.size() - star_.order.size() + i);
      result.order.push_back({slot, star_.order[i].descending, star_.order[i].nulls_first});
    }
    return result;
  }

 private:
  absl::StatusOr<plan::SinkNode> Aggregate(const Layout& layout) const {
    plan::AggregateSink sink;
    if (site_ == plan::Stage::Site::kSession) sink.phase = plan::AggregateSink::Phase::kWhole;
    NAM_ASSIGN_OR_RETURN(sink.group_by, OverSlots(star_.group_by, layout));
    for (const auto& aggregate : star_.aggregates) {
      plan::Aggregate& to = sink.aggregates.emplace_back();
      to.function = aggregate.function;
      to.type = aggregate.type;
      if (aggregate.function == plan::AggregateFunction::kCountRows) continue;
      NAM_ASSIGN_OR_RETURN(to.argument, OverSlots(aggregate.argument, layout));
    }
    return sink;
  }

  const Plan& star_;
  PlanBuilder& builder_;
  const plan::Stage::Site site_;
};

absl::StatusOr<plan::PhysicalPlan> LowerAt(const Plan& star, const TableRefs& tables,
                                           plan::Stage::Site site) {
  PlanBuilder builder;
  NAM_ASSIGN_OR_RETURN(Flow flow, LowerStar(star, tables, builder, 0));
  NAM_ASSIGN_OR_RETURN(plan::SinkNode sink, StarEnd(star, builder, site).Run(flow));
  const uint32_t claimed = builder.Close(std::move(flow), std::move(sink));
  plan::PhysicalPlan plan = std::move(builder.draft());
  plan.stages.push_back({.claimed = claimed, .result = {}, .site = site});
  StatePartitionMatches(tables, plan);
  NAM_RETURN_IF_ERROR(plan::Check(plan));
  NAM_RETURN_IF_ERROR(plan::CheckTables(plan, tables));
  return plan;
}

}  // namespace

absl::StatusOr<Flow> LowerStar(const Plan& star, const TableRefs& tables, PlanBuilder& builder,
                               uint32_t stage) {
  return StarLowering(star, tables, builder, stage).Run();
}

absl::StatusOr<plan::PhysicalPlan> Lower(const Plan& star, const TableRefs& tables) {
  return LowerAt(star, tables, plan::Stage::Site::kServers);
}

absl::StatusOr<plan::PhysicalPlan> LowerRecords(const sql::BoundQuery& query, const Plan& star,
                                                std::span<const plan::Expr* const> filters, bool ordered) {
  Plan left = star;
  left.tables[0].filters.clear();
  for (const plan::Expr* filter : filters) left.tables[0].filters.push_back(*filter);
  NAM_ASSIGN_OR_RETURN(plan::PhysicalPlan plan,
                       LowerAt(left, {query.tables[0].table}, plan::Stage::Site::kSession));
  NAM_RETURN_IF_ERROR(LowerFinish(query, star, plan, ordered));
  return plan;
}

}  // namespace nam::optimizer
