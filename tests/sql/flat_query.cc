#include "tests/sql/flat_query.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/aggregate_slots.h"
#include "plan/expression_tree.h"
#include "sql/bound_query.h"
#include "tests/sql/fake_tables.h"

namespace nam::sql {
namespace {

namespace lg = plan::logical;
using plan::Aggregate;
using plan::AggregateFunction;
using plan::ColumnRef;
using plan::Expr;
using plan::Op;
using plan::OrderKey;

/// The flat query's form of a column of the tree.
using Meanings = std::map<ColumnRef, Expr>;

Expr Replaced(const Expr& expr, const Meanings& meanings) {
  if (expr.op == Op::kColumn) {
    const auto found = meanings.find(expr.column);
    if (found == meanings.end()) return expr;
    Expr out = found->second;
    out.position = expr.position;
    return out;
  }
  Expr out = expr;
  for (Expr& child : out.children) child = Replaced(child, meanings);
  return out;
}

class Flattening {
 public:
  std::optional<FlatQuery> Run(const lg::Query& query) {
    const lg::Node* node = query.root.get();
    const size_t visible = node->columns.size();
    const auto* shown = node->As<lg::Project>();
    const bool hides = shown != nullptr && !node->inputs.empty() &&
                       (node->input().As<lg::Limit>() != nullptr || node->input().As<lg::Sort>() != nullptr ||
                        node->input().As<lg::Distinct>() != nullptr);
    if (hides) node = &node->input();
    if (const auto* limit = node->As<lg::Limit>(); limit != nullptr) {
      flat_.limit = limit->rows;
      flat_.offset = limit->offset;
      node = &node->input();
    }
    const lg::Sort* const sort = node->As<lg::Sort>();
    if (sort != nullptr) node = &node->input();
    if (const auto* distinct = node->As<lg::Distinct>(); distinct != nullptr) {
      if (!distinct->on.empty()) return std::nullopt;
      flat_.distinct = true;
      node = &node->input();
    }
    const auto* project = node->As<lg::Project>();
    if (project == nullptr || !Rows(node->input())) return std::nullopt;
    Meanings outputs;
    for (size_t i = 0; i < project->outputs.size(); ++i) {
      Expr output = Replaced(project->outputs[i], meanings_);
      if (i < visible) flat_.select.push_back({node->columns[i].name, output});
      outputs[node->columns[i].ref] = std::move(output);
    }
    for (size_t k = 0; sort != nullptr && k < sort->keys.size(); ++k) {
      OrderKey key = sort->keys[k];
      key.expr = Replaced(key.expr, outputs);
      flat_.order_by.push_back(std::move(key));
    }
    return std::move(flat_);
  }

 private:
  /// The input of the select list.
  bool Rows(const lg::Node& root) {
    const lg::Node* node = &root;
    const auto* filter = node->As<lg::Filter>();
    if (filter != nullptr && node->input().As<lg::Aggregate>() != nullptr) node = &node->input();
    const auto* aggregate = node->As<lg::Aggregate>();
    if (aggregate == nullptr) return From(root) && Name();
    if (!aggregate->sets.empty() || !aggregate->groupings.empty() || !From(node->input()) || !Name())
      return false;
    flat_.aggregated = true;
    for (const Expr& key : aggregate->keys) flat_.group_by.push_back(Replaced(key, meanings_));
    for (const lg::AggregateCall& call : aggregate->aggregates) {
      if (call.filter.has_value() || (call.distinct && call.function != AggregateFunction::kCount))
        return false;
      flat_.aggregates.push_back(
          {.function = call.distinct ? AggregateFunction::kCountDistinct : call.function,
           .argument = Replaced(call.argument, meanings_),
           .type = call.type});
    }
    Meanings groups;
    for (size_t i = 0; i < node->columns.size(); ++i) {
      const bool key = i < flat_.group_by.size();
      const int place = static_cast<int>(key ? i : i - flat_.group_by.size());
      groups[node->columns[i].ref] = lg::MakeColumn(
          {{key ? FlatQuery::kGroups : FlatQuery::kAggregates, place}, "", node->columns[i].type});
    }
    meanings_ = std::move(groups);
    if (node == &root) return true;
    std::vector<Expr> conditions;
    for (const Expr& condition : filter->conditions) conditions.push_back(Replaced(condition, meanings_));
    flat_.having = lg::Conjunction(std::move(conditions));
    return true;
  }

  /// Tables and conditions, those of JOIN … ON first.
  bool From(const lg::Node& node) {
    if (const auto* scan = node.As<lg::Scan>(); scan != nullptr) {
      const auto table = static_cast<int>(flat_.tables.size());
      for (const lg::Column& column : node.columns) {
        Expr expr = lg::MakeColumn(column);
        expr.column.table = table;
        meanings_[column.ref] = std::move(expr);
      }
      flat_.tables.push_back({scan->table->name(), scan->table});
      return true;
    }
    const auto* filter = node.As<lg::Filter>();
    const auto* join = node.As<lg::Join>();
    if (filter == nullptr && (join == nullptr || join->kind != plan::JoinKind::kInner || join->dependent))
      return false;
    for (const lg::NodePtr& input : node.inputs) {
      if (!From(*input)) return false;
    }
    for (const Expr& condition : filter != nullptr ? filter->conditions : join->conditions)
      Add(Replaced(condition, meanings_));
    return true;
  }

  void Add(Expr condition) {
    if (plan::EquatesTables(condition)) {
      const std::pair edge(condition.children[0].column, condition.children[1].column);
      const std::pair turned(edge.second, edge.first);
      const auto& joins = flat_.joins;
      if (std::none_of(joins.begin(), joins.end(),
                       [&](const auto& other) { return other == edge || other == turned; }))
        flat_.joins.push_back(edge);
    } else if (std::none_of(flat_.conjuncts.begin(), flat_.conjuncts.end(),
                            [&](const Expr& other) { return plan::SameExpr(other, condition); })) {
      flat_.conjuncts.push_back(std::move(condition));
    }
  }

  /// Tables that occur several times get numbers.
  bool Name() {
    for (FlatQuery::Table& table : flat_.tables) {
      int all = 0, number = 0;
      for (const FlatQuery::Table& other : flat_.tables) {
        if (other.table->name() != table.table->name()) continue;
        ++all;
        if (&other <= &table) ++number;
      }
      if (all > 1) table.name = absl::StrCat(table.table->name(), number);
    }
    return true;
  }

  FlatQuery flat_;
  Meanings meanings_;
};

}  // namespace

std::optional<FlatQuery> Flatten(const lg::Query& query) {
  return Flattening().Run(query);
}

FlatQuery BindQuery(const std::string& text) {
  FakeTables tables;
  absl::StatusOr<Statement> statement = Bind(text, tables);
  EXPECT_TRUE(statement.ok()) << text << "\n" << statement.status();
  if (!statement.ok()) return {};
  const auto* select = std::get_if<TreeStatement>(&*statement);
  EXPECT_NE(select, nullptr) << text;
  if (select == nullptr) return {};
  std::optional<FlatQuery> flat = Flatten(*select->tree);
  EXPECT_TRUE(flat.has_value()) << text << "\n" << ToString(*select->tree->root);
  return flat.has_value() ? *std::move(flat) : FlatQuery();
}

std::string Show(const FlatQuery& query, const Expr& expr) {
  return ToString(expr, [&](const Expr& e) -> std::string {
    if (e.column.table == FlatQuery::kGroups) return absl::StrCat("group", e.column.column);
    if (e.column.table == FlatQuery::kAggregates) return absl::StrCat("agg", e.column.column);
    const FlatQuery::Table& table = query.tables.at(static_cast<size_t>(e.column.table));
    return absl::StrCat(table.name, ".", table.table->columns(e.column.column).name());
  });
}

std::string Show(const BoundTable& table, const std::vector<Expr>& row) {
  FlatQuery query;
  query.tables = {{table.alias, table.table}};
  std::string shown;
  for (const Expr& e : row) absl::StrAppend(&shown, shown.empty() ? "" : ", ", Show(query, e));
  return shown;
}

std::string Show(const FlatQuery& query, const Aggregate& aggregate) {
  const bool distinct = aggregate.function == AggregateFunction::kCountDistinct;
  const std::string name = distinct ? "count" : plan::NameOf(aggregate.function);
  if (plan::ArgumentsOf(aggregate.function) == 0) return name;
  return absl::StrCat(name, "(", distinct ? "distinct " : "", Show(query, aggregate.argument), ")");
}

std::string Show(const FlatQuery& query) {
  std::vector<std::string> lines;
  const auto line = [&](const char* clause, const std::vector<std::string>& items) {
    if (!items.empty()) lines.push_back(absl::StrCat(clause, " ", absl::StrJoin(items, ", ")));
  };
  const auto column = [&](ColumnRef ref) {
    Expr e;
    e.op = Op::kColumn;
    e.column = ref;
    return Show(query, e);
  };
  std::vector<std::string> items;
  for (const FlatQuery::Output& o : query.select)
    items.push_back(absl::StrCat(Show(query, o.expr), " as ", o.name));
  line(query.distinct ? "select distinct" : "select", items);
  items.clear();
  for (const FlatQuery::Table& t : query.tables) items.push_back(absl::StrCat(t.table->name(), " ", t.name));
  line("from", items);
  items.clear();
  for (const auto& [left, right] : query.joins)
    items.push_back(absl::StrCat(column(left), " = ", column(right)));
  line("join", items);
  items.clear();
  for (const Expr& e : query.conjuncts) items.push_back(Show(query, e));
  line("where", items);
  items.clear();
  for (const Expr& e : query.group_by) items.push_back(Show(query, e));
  line("group by", items);
  items.clear();
  for (const Aggregate& a : query.aggregates) items.push_back(Show(query, a));
  line("aggregate", items);
  items.clear();
  if (query.having.has_value()) line("having", {Show(query, *query.having)});
  for (const OrderKey& k : query.order_by) {
    items.push_back(absl::StrCat(Show(query, k.expr), k.descending ? " desc" : " asc",
                                 k.nulls_first ? " nulls first" : " nulls last"));
  }
  line("order by", items);
  if (query.limit.has_value()) line("limit", {absl::StrCat(*query.limit)});
  if (query.offset != 0) line("offset", {absl::StrCat(query.offset)});
  return absl::StrJoin(lines, "\n");
}

}  // namespace nam::sql
