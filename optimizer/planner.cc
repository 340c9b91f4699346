#include <algorithm>
#include <cmath>
#include <set>

#include "absl/status/status.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "optimizer/plan.h"

namespace nam::optimizer {
namespace {

using sql::BoundQuery;
using sql::ColumnRef;
using sql::Expr;
using sql::Op;

const proto::Column& ColumnOf(const BoundQuery& query, ColumnRef ref) {
  return query.tables[static_cast<size_t>(ref.table)].table->columns(ref.column);
}

/// The share of a column's values that a literal cuts off below it, 0 … 1, from min and max.
double ShareBelow(const proto::Column& column, const Value& literal) {
  const double low = static_cast<double>(column.min()), high = static_cast<double>(column.max());
  if (high <= low) return 0.5;
  double value = static_cast<double>(literal.number);
  const double column_unit = std::pow(10.0, column.type().scale());
  value = value / std::pow(10.0, literal.type.scale) * column_unit;
  return std::clamp((value - low) / (high - low + 1), 0.0, 1.0);
}

/// Textbook selectivities; good enough to order joins by.
double Selectivity(const BoundQuery& query, const Expr& e) {
  switch (e.op) {
    case Op::kAnd: {
      double s = 1;
      for (const Expr& child : e.children) s *= Selectivity(query, child);
      return s;
    }
    case Op::kOr: {
      double s = 1;
      for (const Expr& child : e.children) s *= 1 - Selectivity(query, child);
      return 1 - s;
    }
    case Op::kNot:
      return 1 - Selectivity(query, e.children[0]);
    case Op::kLiteral:
      return !e.literal.null && e.literal.number != 0 ? 1 : 0;
    default:
      break;
  }
  const Expr* column = nullptr;
  for (const Expr& child : e.children) {
    if (child.op == Op::kColumn) column = column == nullptr ? &child : nullptr;
  }
  if (column == nullptr) return 1.0 / 3;
  const proto::Column& stats = ColumnOf(query, column->column);
  const double one = 1.0 / static_cast<double>(std::max<uint64_t>(stats.distinct(), 1));
  switch (e.op) {
    case Op::kEqual:
      return one;
    case Op::kNotEqual:
      return 1 - one;
    case Op::kIn:
      return std::min(1.0, one * static_cast<double>(e.children.size() - 1));
    case Op::kIsNull: {
      const auto rows =
          static_cast<double>(query.tables[static_cast<size_t>(column->column.table)].table->rows());
      return rows == 0 ? 0 : static_cast<double>(stats.nulls()) / rows;
    }
    case Op::kLike:
      return 0.1;
    case Op::kLess:
    case Op::kLessEqual:
    case Op::kGreater:
    case Op::kGreaterEqual: {
      const Expr& other = &e.children[0] == column ? e.children[1] : e.children[0];
      if (other.op != Op::kLiteral || other.type.kind == TypeKind::kString) return 1.0 / 3;
      const bool below = (e.op == Op::kLess || e.op == Op::kLessEqual) == (&e.children[0] == column);
      const double share = ShareBelow(stats, other.literal);
      return std::clamp(below ? share : 1 - share, 0.001, 1.0);
    }
    default:
      return 1.0 / 3;
  }
}

Expr ColumnExpr(const BoundQuery& query, ColumnRef ref) {
  const proto::Type& type = ColumnOf(query, ref).type();
  Expr e;
  e.op = Op::kColumn;
  e.column = ref;
  e.type = {static_cast<TypeKind>(type.kind()), static_cast<uint8_t>(type.scale()), type.length()};
  return e;
}

/// Numbers of different scales meet at the larger one.
Expr AtScale(Expr e, uint8_t scale) {
  if (!e.type.numeric() || e.type.scale == scale) return e;
  Expr cast;
  cast.op = Op::kCast;
  cast.type = Type::Decimal(scale);
  cast.children.push_back(std::move(e));
  return cast;
}

class Planner {
 public:
  explicit Planner(const BoundQuery& query) : query_(query) {}

  absl::StatusOr<Plan> Run() {
    PushDownFilters();
    ChooseDriving();
    NAM_RETURN_IF_ERROR(OrderJoins());
    plan_.aggregated = query_.aggregated;
    if (query_.aggregated) {
      plan_.group_by = query_.group_by;
      plan_.aggregates = query_.aggregates;
    } else if (query_.distinct) {
      // DISTINCT is grouping by the whole row.
      plan_.aggregated = true;
      for (const sql::OutputColumn& column : query_.select) plan_.group_by.push_back(column.expr);
    } else {
      for (const sql::OutputColumn& column : query_.select) plan_.output.push_back(column.expr);
      for (const sql::OrderKey& key : query_.order_by) plan_.output.push_back(key.expr);
      plan_.order = query_.order_by;
      if (query_.limit) plan_.row_limit = *query_.limit + query_.offset;
    }
    ChooseColumns();
    return std::move(plan_);
  }

 private:
  void PushDownFilters() {
    for (const sql::BoundTable& bound : query_.tables) {
      Plan::Table& table = plan_.tables.emplace_back();
      table.name = bound.table->name();
      table.allocation = bound.table->allocation();
      table.rows = static_cast<double>(bound.table->rows());
    }
    for (const Expr& conjunct : query_.conjuncts) {
      std::set<int> tables;
      for (ColumnRef column : sql::ColumnsOf(conjunct)) tables.insert(column.table);
      if (tables.size() > 1) {
        later_.push_back({conjunct, tables});
        continue;
      }
      // A condition over no column at all holds for every table's rows or none.
      Plan::Table& table = plan_.tables[tables.empty() ? 0 : static_cast<size_t>(*tables.begin())];
      table.selectivity *= Selectivity(query_, conjunct);
      table.filters.push_back(conjunct);
    }
    for (const sql::JoinEdge& edge : query_.joins) edges_.push_back(edge);
  }

  /// The largest table is streamed, all others are built: the pipelined model has one fact side.
  void ChooseDriving() {
    for (size_t t = 1; t < plan_.tables.size(); ++t) {
      if (plan_.tables[t].rows > plan_.tables[static_cast<size_t>(plan_.driving)].rows)
        plan_.driving = static_cast<int>(t);
    }
  }

  /// What a probe into table `t` over `key` leaves of the rows that come in.
  double Fanout(int t, ColumnRef key) const {
    const Plan::Table& table = plan_.tables[static_cast<size_t>(t)];
    const auto distinct = static_cast<double>(std::max<uint64_t>(ColumnOf(query_, key).distinct(), 1));
    return table.rows * table.selectivity / distinct;
  }

  /// The edge that joins table `t` to those joined already; the build side's column in `build`.
  const sql::JoinEdge* EdgeTo(int t, const std::set<int>& joined, ColumnRef& build, ColumnRef& probe) const {
    const sql::JoinEdge* best = nullptr;
    for (const sql::JoinEdge& edge : edges_) {
      ColumnRef b = edge.left, p = edge.right;
      if (b.table != t) std::swap(b, p);
      if (b.table != t || !joined.contains(p.table)) continue;
      if (best == nullptr || Fanout(t, b) < Fanout(t, build)) {
        best = &edge;
        build = b;
        probe = p;
      }
    }
    return best;
  }

  absl::Status OrderJoins() {
    std::set<int> joined{plan_.driving};
    double rows = plan_.tables[static_cast<size_t>(plan_.driving)].rows *
                  plan_.tables[static_cast<size_t>(plan_.driving)].selectivity;
    while (joined.size() < plan_.tables.size()) {
      int best = -1;
      ColumnRef best_build, best_probe;
      const sql::JoinEdge* best_edge = nullptr;
      for (int t = 0; t < static_cast<int>(plan_.tables.size()); ++t) {
        ColumnRef build, probe;
        if (joined.contains(t)) continue;
        const sql::JoinEdge* edge = EdgeTo(t, joined, build, probe);
        if (edge == nullptr) continue;
        if (best < 0 || Fanout(t, build) < Fanout(best, best_build)) {
          best = t;
          best_build = build;
          best_probe = probe;
          best_edge = edge;
        }
      }
      if (best < 0) return absl::InternalError("the binder let a cartesian product pass");
      joined.insert(best);
      rows *= Fanout(best, best_build);
      Join(best, best_build, best_probe, best_edge, joined, rows);
    }
    return absl::OkStatus();
  }

  void Join(int table, ColumnRef build, ColumnRef probe, const sql::JoinEdge* used,
            const std::set<int>& joined, double rows) {
    Plan::Join& join = plan_.joins.emplace_back();
    join.table = table;
    join.rows_after = rows;
    join.build_key = ColumnExpr(query_, build);
    join.probe_key = ColumnExpr(query_, probe);
    const uint8_t scale = std::max(join.build_key.type.scale, join.probe_key.type.scale);
    join.build_key = AtScale(std::move(join.build_key), scale);
    join.probe_key = AtScale(std::move(join.probe_key), scale);
    std::erase_if(edges_, [&](const sql::JoinEdge& e) { return &e == used; });
    // Other equalities that are decided now are checked after the probe.
    std::erase_if(edges_, [&](const sql::JoinEdge& e) {
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
    for (ColumnRef column : sql::ColumnsOf(expr)) needed_.insert(column);
  }

  void ChooseColumns() {
    for (const Plan::Table& table : plan_.tables) {
      for (const Expr& filter : table.filters) Need(filter);
    }
    for (const Plan::Join& join : plan_.joins) {
      Need(join.probe_key);
      Need(join.build_key);
      for (const Expr& residual : join.residuals) Need(residual);
    }
    for (const Expr& key : plan_.group_by) Need(key);
    for (const sql::Aggregate& aggregate : plan_.aggregates) Need(aggregate.argument);
    for (const Expr& expr : plan_.output) Need(expr);
    for (ColumnRef column : needed_) {
      plan_.tables[static_cast<size_t>(column.table)].columns.push_back(static_cast<uint32_t>(column.column));
    }
  }

  struct Later {
    Expr conjunct;
    std::set<int> tables;
  };
  const BoundQuery& query_;
  Plan plan_;
  std::vector<Later> later_;  // conditions over several tables
  std::vector<sql::JoinEdge> edges_;
  std::set<ColumnRef> needed_;  // by table, then column
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const BoundQuery& query) {
  return Planner(query).Run();
}

}  // namespace nam::optimizer
