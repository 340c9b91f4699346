#include <algorithm>
#include <numeric>
#include <set>

#include "absl/status/status.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "optimizer/join_order.h"
#include "optimizer/plan.h"
#include "optimizer/selectivity.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::optimizer {
namespace {

using plan::ColumnRef;
using plan::Expr;
using plan::Op;

Expr ColumnExpr(const StarQuery& query, ColumnRef ref) {
  Expr e;
  e.op = Op::kColumn;
  e.column = ref;
  e.type = ColumnTypeOf(ColumnOf(query, ref).type());
  return e;
}

/// Numbers of different scales meet at the larger one.
Expr CastToScale(Expr e, uint8_t scale) {
  if (!e.type.numeric() || e.type.scale == scale) return e;
  Expr cast;
  cast.op = Op::kCast;
  cast.type = Type::Decimal(scale);
  cast.children.push_back(std::move(e));
  return cast;
}

class Planner {
 public:
  Planner(const StarQuery& query, double workers) : query_(query), workers_(workers) {}

  absl::StatusOr<Plan> Run() {
    PushDownFilters();
    NAM_RETURN_IF_ERROR(OrderJoins());
    plan_.output = query_.output;
    ChooseColumns();
    return std::move(plan_);
  }

 private:
  void PushDownFilters() {
    for (const auto& metadata : query_.tables) {
      Plan::Table& table = plan_.tables.emplace_back();
      table.name = metadata->name();
      table.allocation = metadata->allocation();
      table.rows = static_cast<double>(metadata->rows());
    }
    for (const Expr& conjunct : query_.conjuncts) {
      std::set<int> tables;
      for (ColumnRef column : plan::ColumnsOf(conjunct)) tables.insert(column.table);
      if (tables.size() > 1) {
        later_.push_back({conjunct, tables});
        continue;
      }
      // A condition without columns holds for every table's rows or none.
      Plan::Table& table = plan_.tables[tables.empty() ? 0 : static_cast<size_t>(*tables.begin())];
      table.filters.push_back(conjunct);
    }
    for (Plan::Table& table : plan_.tables) table.selectivity = Selectivity(query_, table.filters);
  }

  absl::Status OrderJoins() {
    NAM_ASSIGN_OR_RETURN(const JoinOrder order, ChooseJoinOrder(query_, plan_.tables, workers_));
    plan_.driving = order.driving;
    for (size_t edge = 0; edge < query_.joins.size(); ++edge) edges_.push_back(edge);
    std::set<int> joined{plan_.driving};
    for (const JoinStep& step : order.steps) {
      joined.insert(step.table);
      Join(step, joined);
    }
    return absl::OkStatus();
  }

  void Join(const JoinStep& step, const std::set<int>& joined) {
    Plan::Join& join = plan_.joins.emplace_back();
    join.table = step.table;
    join.rows_after = step.rows_after;
    for (const JoinKey& key : step.keys) {
      Expr build = ColumnExpr(query_, key.build), probe = ColumnExpr(query_, key.probe);
      const uint8_t scale = std::max(build.type.scale, probe.type.scale);
      join.build_keys.push_back(CastToScale(std::move(build), scale));
      join.probe_keys.push_back(CastToScale(std::move(probe), scale));
      std::erase(edges_, key.edge);
    }
    // Equalities beside a unique key are checked after the probe.
    std::erase_if(edges_, [&](size_t edge) {
      const JoinEdge& e = query_.joins[edge];
      if (!joined.contains(e.left.table) || !joined.contains(e.right.table)) return false;
      Expr equal;
      equal.op = Op::kEqual;
      equal.type = Type::Bool();
      equal.children = {ColumnExpr(query_, e.left), ColumnExpr(query_, e.right)};
      join.residuals.push_back(std::move(equal));
      return true;
    });
    std::erase_if(later_, [&](const Later& l) {
      if (!std::includes(joined.begin(), joined.end(), l.tables.begin(), l.tables.end())) return false;
      join.residuals.push_back(l.conjunct);
      return true;
    });
  }

  void Need(const Expr& expr) {
    for (ColumnRef column : plan::ColumnsOf(expr)) needed_.insert(column);
  }

  void ChooseColumns() {
    for (const Plan::Table& table : plan_.tables) {
      for (const Expr& filter : table.filters) Need(filter);
    }
    for (const Plan::Join& join : plan_.joins) {
      for (const auto* exprs : {&join.probe_keys, &join.build_keys, &join.residuals})
        for (const Expr& expr : *exprs) Need(expr);
    }
    needed_.insert(plan_.output.begin(), plan_.output.end());
    for (ColumnRef column : needed_) {
      plan_.tables[static_cast<size_t>(column.table)].columns.push_back(static_cast<uint32_t>(column.column));
    }
  }

  struct Later {
    Expr conjunct;
    std::set<int> tables;
  };
  const StarQuery& query_;
  const double workers_;
  Plan plan_;
  std::vector<Later> later_;    // conditions over several tables
  std::vector<size_t> edges_;   // in the query's joins, undecided yet
  std::set<ColumnRef> needed_;  // by table, then column
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const StarQuery& query, double workers) {
  return Planner(query, workers).Run();
}

void ReadWholeTuples(const TableRefs& tables, Plan& plan) {
  std::vector<uint32_t>& columns = plan.tables[static_cast<size_t>(plan.driving)].columns;
  columns.resize(static_cast<size_t>(tables[static_cast<size_t>(plan.driving)]->columns_size()));
  std::iota(columns.begin(), columns.end(), 0u);
}

}  // namespace nam::optimizer
