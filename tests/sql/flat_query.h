#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/aggregate.h"
#include "plan/expression.h"
#include "plan/logical.h"
#include "proto/table.pb.h"
#include "sql/bound_query.h"

namespace nam::sql {

/// A query of the form
///   scan tables → conjuncts and joins → [group by, aggregates → having] → select → distinct → order → limit
/// clause by clause. `aggregated`: select, having and order_by are over columns {kGroups, i} and
/// {kAggregates, i}; otherwise over columns {table, column}.
struct FlatQuery {
  static constexpr int kGroups = -1, kAggregates = -2;

  struct Table {
    std::string name;  // with a number appended if the table occurs several times
    std::shared_ptr<const proto::Table> table;
  };
  struct Output {
    std::string name;
    plan::Expr expr;
  };
  std::vector<Table> tables;                                       // in the order of FROM
  std::vector<std::pair<plan::ColumnRef, plan::ColumnRef>> joins;  // equalities of columns of two tables
  std::vector<plan::Expr> conjuncts;                               // all different
  bool aggregated = false;
  std::vector<plan::Expr> group_by;
  std::vector<plan::Aggregate> aggregates;
  std::optional<plan::Expr> having;
  std::vector<Output> select;
  bool distinct = false;
  std::vector<plan::OrderKey> order_by;
  std::optional<int64_t> limit;
  int64_t offset = 0;
};

/// nullopt if the tree has another form.
std::optional<FlatQuery> Flatten(const plan::logical::Query& query);

/// Binds a SELECT that must bind and be flat; a test failure and an empty query otherwise.
FlatQuery BindQuery(const std::string& text);

/// Expressions in SQL, with columns as table.name, groups as group<i>, aggregates as agg<i>.
std::string Show(const FlatQuery& query, const plan::Expr& expr);
/// Those of a change, with a comma between them.
std::string Show(const BoundTable& table, const std::vector<plan::Expr>& row);
/// `sum(…)`, …
std::string Show(const FlatQuery& query, const plan::Aggregate& aggregate);
/// All clauses of a query, one per line.
std::string Show(const FlatQuery& query);

}  // namespace nam::sql
