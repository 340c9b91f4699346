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

/// Which column of the query lies in which slot.
using Layout = std::vector<ColumnRef>;

absl::Status Bad(const char* what) {
  return absl::InvalidArgumentError(std::string("not a star: ") + what);
}

std::vector<uint32_t> SlotsWhere(const Layout& layout, const std::set<ColumnRef>& wanted) {
  std::vector<uint32_t> slots;
  for (uint32_t slot = 0; slot < layout.size(); ++slot) {
    if (wanted.contains(layout[slot])) slots.push_back(slot);
  }
  return slots;
}

std::vector<uint32_t> FirstNumbers(size_t n) {
  std::vector<uint32_t> numbers(n);
  for (uint32_t i = 0; i < n; ++i) numbers[i] = i;
  return numbers;
}

/// The same over slots. INVALID_ARGUMENT if a column lies nowhere, 54001 if the expression is too deep: what
/// the user wrote reaches recursion only behind this.
absl::StatusOr<Expr> OverSlots(const Expr& expr, const Layout& layout) {
  NAM_RETURN_IF_ERROR(plan::ForPostOrder(expr, [](const Expr&) { return absl::OkStatus(); }));
  Expr out = expr;
  std::vector<Expr*> open{&out};
  while (!open.empty()) {
    Expr& e = *open.back();
    open.pop_back();
    if (e.op == plan::Op::kColumn) {
      const auto found = std::find(layout.begin(), layout.end(), e.column);
      if (found == layout.end()) return Bad("a column that is not joined yet, or that is not read");
      e.column = {0, static_cast<int>(found - layout.begin())};
    }
    for (Expr& child : e.children) open.push_back(&child);
  }
  return out;
}

absl::StatusOr<std::vector<Expr>> OverSlots(const std::vector<Expr>& exprs, const Layout& layout) {
  std::vector<Expr> out;
  for (const Expr& expr : exprs) {
    NAM_ASSIGN_OR_RETURN(Expr over, OverSlots(expr, layout));
    out.push_back(std::move(over));
  }
  return out;
}

/// However deep the expression is.
void AddColumns(const Expr& expr, std::set<ColumnRef>& columns) {
  std::vector<const Expr*> open{&expr};
  while (!open.empty()) {
    const Expr& e = *open.back();
    open.pop_back();
    if (e.op == plan::Op::kColumn) columns.insert(e.column);
    for (const Expr& child : e.children) open.push_back(&child);
  }
}

/// Estimates are for people: what is no number of rows is none.
double RowsOf(double estimate) {
  return std::isfinite(estimate) ? std::max(0.0, estimate) : 0;
}

class Lowering {
 public:
  Lowering(const Plan& star, const TableRefs& tables, plan::Stage::Site site)
      : star_(star), tables_(tables), site_(site) {}

  absl::StatusOr<plan::PhysicalPlan> Run() {
    NAM_RETURN_IF_ERROR(CheckShape());
    for (const auto& table : tables_)
      out_.tables.push_back({table->name(), table->allocation(), table->has_record()});
    FindNeeded();
    plan::Pipeline probing;
    NAM_ASSIGN_OR_RETURN(Layout layout, Scan(star_.driving, needed_[0], probing));
    for (size_t j = 0; j < star_.joins.size(); ++j) {
      NAM_RETURN_IF_ERROR(Build(j));
      NAM_RETURN_IF_ERROR(Probe(j, layout, probing));
    }
    NAM_RETURN_IF_ERROR(End(layout, probing));
    probing.after = FirstNumbers(star_.joins.size());
    out_.pipelines.push_back(std::move(probing));
    out_.stages.push_back(
        {.claimed = static_cast<uint32_t>(star_.joins.size()), .result = {}, .site = site_});
    StatePartitionMatches(tables_, out_);
    NAM_RETURN_IF_ERROR(plan::Check(out_));
    NAM_RETURN_IF_ERROR(plan::CheckTables(out_, tables_));
    return std::move(out_);
  }

 private:
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
    std::set<ColumnRef>& sink = needed_[joins];
    for (const Expr& key : star_.group_by) AddColumns(key, sink);
    for (const auto& aggregate : star_.aggregates) AddColumns(aggregate.argument, sink);
    for (const Expr& expr : star_.output) AddColumns(expr, sink);
    for (size_t j = joins; j-- > 0;) {
      needed_[j] = behind_probe(j);
      AddColumns(star_.joins[j].probe_key, needed_[j]);
    }
  }

  /// What the residuals of join j or something behind them looks at.
  std::set<ColumnRef> behind_probe(size_t j) const {
    std::set<ColumnRef> columns = needed_[j + 1];
    for (const Expr& residual : star_.joins[j].residuals) AddColumns(residual, columns);
    return columns;
  }

  /// The table's columns that are wanted flow on.
  absl::StatusOr<Layout> Scan(int table, const std::set<ColumnRef>& wanted, plan::Pipeline& pipeline) const {
    const Plan::Table& from = star_.tables[static_cast<size_t>(table)];
    plan::TableScan scan;
    scan.table = static_cast<uint32_t>(table);
    scan.columns = from.columns;
    Layout read, layout;
    for (const uint32_t column : from.columns) {
      read.push_back({table, static_cast<int>(column)});
      NAM_ASSIGN_OR_RETURN(plan::Slot slot, plan::SlotOfColumn(*tables_[static_cast<size_t>(table)], column));
      scan.slots.push_back(std::move(slot));
    }
    NAM_ASSIGN_OR_RETURN(scan.filters, OverSlots(from.filters, read));
    scan.output = SlotsWhere(read, wanted);
    for (const uint32_t slot : scan.output) layout.push_back(read[slot]);
    NAM_ASSIGN_OR_RETURN(plan::Schema flows, plan::ScanOutput(scan));
    pipeline.schemas.push_back(std::move(flows));
    pipeline.estimates.push_back({RowsOf(from.rows * from.selectivity), RowsOf(from.selectivity)});
    if (tables_[static_cast<size_t>(table)]->has_record()) {
      pipeline.source = plan::RecordScan{std::move(scan)};
    } else {
      pipeline.source = plan::BlockScan{std::move(scan)};
    }
    return layout;
  }

  /// The pipeline of join j's build side.
  absl::Status Build(size_t j) {
    const Plan::Join& join = star_.joins[j];
    const std::set<ColumnRef> fetched = behind_probe(j);
    std::set<ColumnRef> wanted = fetched;
    AddColumns(join.build_key, wanted);
    plan::Pipeline pipeline;
    NAM_ASSIGN_OR_RETURN(const Layout layout, Scan(join.table, wanted, pipeline));
    plan::BuildSink build;
    NAM_ASSIGN_OR_RETURN(Expr key, OverSlots(join.build_key, layout));
    build.keys.push_back(std::move(key));
    build.payload = SlotsWhere(layout, fetched);
    build.unique = IsUnique(join);
    pipeline.sink = std::move(build);
    out_.pipelines.push_back(std::move(pipeline));
    return absl::OkStatus();
  }

  bool IsUnique(const Plan::Join& join) const {
    const Type &probe = join.probe_key.type, &build = join.build_key.type;
    // Texts of one kind that differ in their blanks alone are one key beside texts of the other.
    const bool blanks_do_not_count =
        plan::IsChar(probe) != plan::IsChar(build) && plan::IgnoresBlanks(probe, build);
    if (join.build_key.op != plan::Op::kColumn || blanks_do_not_count) return false;
    return tables_[static_cast<size_t>(join.table)]->columns(join.build_key.column.column).unique();
  }

  absl::Status Probe(size_t j, Layout& layout, plan::Pipeline& pipeline) const {
    const Plan::Join& join = star_.joins[j];
    const std::set<ColumnRef> behind = behind_probe(j);
    const plan::Pipeline& built = out_.pipelines[j];
    plan::ProbeStep probe;
    probe.build = static_cast<uint32_t>(j);
    NAM_ASSIGN_OR_RETURN(Expr key, OverSlots(join.probe_key, layout));
    probe.keys.push_back(std::move(key));
    probe.keep = SlotsWhere(layout, behind);
    probe.fetch = FirstNumbers(std::get<plan::BuildSink>(built.sink).payload.size());
    Layout after;
    for (const uint32_t slot : probe.keep) after.push_back(layout[slot]);
    const plan::TableScan& scan = *plan::ScanOf(built);
    for (const uint32_t slot : std::get<plan::BuildSink>(built.sink).payload)
      after.push_back({join.table, static_cast<int>(scan.columns[scan.output[slot]])});
    NAM_ASSIGN_OR_RETURN(probe.residuals, OverSlots(join.residuals, after));
    layout = std::move(after);
    return Append(std::move(probe), RowsOf(join.rows_after), pipeline);
  }

  absl::Status Append(plan::StepNode step, double rows, plan::Pipeline& pipeline) const {
    NAM_ASSIGN_OR_RETURN(plan::Schema flows, plan::StepOutput(out_, step, pipeline.schemas.back()));
    pipeline.steps.push_back(std::move(step));
    pipeline.schemas.push_back(std::move(flows));
    pipeline.estimates.push_back({rows, 1});
    return absl::OkStatus();
  }

  absl::Status End(const Layout& layout, plan::Pipeline& pipeline) const {
    if (star_.aggregated) return Aggregate(layout, pipeline);
    plan::ProjectStep project;
    NAM_ASSIGN_OR_RETURN(project.outputs, OverSlots(star_.output, layout));
    NAM_RETURN_IF_ERROR(Append(std::move(project), pipeline.estimates.back().rows, pipeline));
    plan::ResultSink result;
    result.limit = star_.row_limit;
    // Without a limit the order is left to the session, which merges the servers' rows.
    if (site_ == plan::Stage::Site::kSession) result.limit = -1;
    for (size_t i = 0; i < star_.order.size() && result.limit >= 0; ++i) {
      const auto slot = static_cast<uint32_t>(star_.output.size() - star_.order.size() + i);
      result.order.push_back({slot, star_.order[i].descending, star_.order[i].nulls_first});
    }
    pipeline.sink = std::move(result);
    return absl::OkStatus();
  }

  absl::Status Aggregate(const Layout& layout, plan::Pipeline& pipeline) const {
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
    pipeline.sink = std::move(sink);
    return absl::OkStatus();
  }

  const Plan& star_;
  const TableRefs& tables_;
  const plan::Stage::Site site_;
  plan::PhysicalPlan out_;
  std::vector<std::set<ColumnRef>> needed_;
};

}  // namespace

absl::StatusOr<plan::PhysicalPlan> Lower(const Plan& star, const TableRefs& tables) {
  return Lowering(star, tables, plan::Stage::Site::kServers).Run();
}

absl::StatusOr<plan::PhysicalPlan> LowerRecords(const sql::BoundQuery& query, const Plan& star,
                                                std::span<const plan::Expr* const> filters, bool ordered) {
  Plan left = star;
  left.tables[0].filters.clear();
  for (const plan::Expr* filter : filters) left.tables[0].filters.push_back(*filter);
  NAM_ASSIGN_OR_RETURN(plan::PhysicalPlan plan,
                       Lowering(left, {query.tables[0].table}, plan::Stage::Site::kSession).Run());
  NAM_RETURN_IF_ERROR(LowerFinish(query, star, plan, ordered));
  return plan;
}

}  // namespace nam::optimizer
