#include "optimizer/cardinality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "optimizer/slots.h"
#include "plan/expression_tree.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::ColumnRef;
using plan::Expr;
using plan::JoinKind;
using plan::Op;

namespace {

constexpr double kUnknownValues = std::numeric_limits<double>::infinity();

}  // namespace

double RowsOfSeries(const lg::Series& series) {
  constexpr double kGuess = 1000;
  const bool known = plan::IsLiteral(series.first) && plan::IsLiteral(series.last) &&
                     plan::IsLiteral(series.step) && series.step.type.kind != TypeKind::kInterval;
  if (!known) return kGuess;
  if (series.first.literal.null || series.last.literal.null || series.step.literal.null ||
      series.step.literal.number == 0) {
    return 0;
  }
  const auto distance =
      static_cast<double>(series.last.literal.number) - static_cast<double>(series.first.literal.number);
  return std::max(0.0, distance / static_cast<double>(series.step.literal.number) + 1);
}

void Cardinalities::AddTree(const lg::Node& node) {
  if (const auto* with = node.As<lg::With>(); with != nullptr) ctes_[with->cte] = &node.input(0);
  for (const lg::NodePtr& input : node.inputs) AddTree(*input);
  NoteColumns(node);
  rows_[&node] = Estimate(node);
}

void Cardinalities::SetTable(const lg::Node& scan, std::shared_ptr<const proto::Table> table) {
  NoteTable(scan, *table);
  tables_.push_back(std::move(table));
}

void Cardinalities::NoteTable(const lg::Node& scan, const proto::Table& table) {
  for (const lg::Column& column : scan.columns) {
    const proto::Column& stored = table.columns(column.ref.column);
    stored_[column.ref] = {&stored, table.rows()};
    // One more where an outer join adds NULL.
    if (stored.distinct() > 0) values_[column.ref] = static_cast<double>(stored.distinct()) + 1;
  }
}

void Cardinalities::NoteSame(ColumnRef column, const Expr& expr) {
  if (const StoredColumn* stored = StoredOf(expr); stored != nullptr) stored_.emplace(column, *stored);
  if (const double values = ValuesOf({expr}); std::isfinite(values)) values_.emplace(column, values);
}

void Cardinalities::NoteColumns(const lg::Node& node) {
  if (const auto* scan = node.As<lg::Scan>(); scan != nullptr) {
    NoteTable(node, *scan->table);
  } else if (const auto* project = node.As<lg::Project>(); project != nullptr) {
    for (size_t i = 0; i < project->outputs.size(); ++i) NoteSame(node.columns[i].ref, project->outputs[i]);
  } else if (const auto* groups = node.As<lg::Aggregate>(); groups != nullptr) {
    // Common values are not common any more.
    for (size_t k = 0; k < groups->keys.size(); ++k) {
      if (const double values = ValuesOf({groups->keys[k]}); std::isfinite(values))
        values_.emplace(node.columns[k].ref, values);
    }
  } else if (const auto* cte = node.As<lg::CteScan>(); cte != nullptr) {
    const auto definition = ctes_.find(cte->cte);
    if (definition == ctes_.end()) return;
    for (size_t i = 0; i < cte->fields.size(); ++i)
      NoteSame(node.columns[i].ref, lg::MakeColumn(definition->second->columns[cte->fields[i]]));
  }
}

const StoredColumn* Cardinalities::StoredOf(const Expr& expr) const {
  if (expr.op != Op::kColumn) return nullptr;
  const auto found = stored_.find(expr.column);
  return found == stored_.end() ? nullptr : &found->second;
}

double Cardinalities::ValuesOf(const std::vector<Expr>& exprs) const {
  constexpr double kTruthValues = 3;
  double values = 1;
  ColumnSet columns;
  for (const Expr& expr : exprs) {
    if (expr.type.kind == TypeKind::kBool) {
      values *= kTruthValues;
    } else {
      AddColumns(expr, columns);
    }
  }
  for (const ColumnRef column : columns) {
    const auto known = values_.find(column);
    if (known == values_.end()) return kUnknownValues;
    values *= known->second;
  }
  return values;
}

double Cardinalities::ValuesOfKey(const Expr& build, double build_rows, const Expr& probe) const {
  const auto distinct = [&](const Expr& key) {
    const StoredColumn* const stored = StoredOf(key);
    if (stored != nullptr && stored->column->distinct() > 0)
      return static_cast<double>(stored->column->distinct());
    return ValuesOf({key});
  };
  const double of_build = distinct(build);
  if (StoredOf(build) != nullptr && std::isfinite(of_build)) return std::max(of_build, 1.0);
  const double values = std::max(std::min(of_build, build_rows), 1.0);
  const double of_probe = distinct(probe);
  return std::isfinite(of_probe) ? std::max(values, of_probe) : values;
}

double Cardinalities::HeaviestOf(const std::vector<Expr>& keys) const {
  double heaviest = 1;
  for (const Expr& key : keys) {
    const StoredColumn* const stored = StoredOf(key);
    if (stored == nullptr || stored->column->common().empty() || stored->rows == 0) return 0;
    const auto common = static_cast<double>(stored->column->common(0).rows());
    heaviest = std::min(heaviest, common / static_cast<double>(stored->rows));
  }
  return keys.empty() ? 0 : heaviest;
}

double Cardinalities::ShareOf(const std::vector<Expr>& conditions) const {
  return Selectivity(stored_, conditions);
}

double Cardinalities::RowsOf(const lg::Node& node) const {
  const auto known = rows_.find(&node);
  return known != rows_.end() ? known->second : Estimate(node);
}

double Cardinalities::JoinRows(const lg::Node& node) const {
  const auto& join = *node.As<lg::Join>();
  const double left = RowsOf(node.input(0)), right = RowsOf(node.input(1));
  if (join.kind == JoinKind::kRight) return right;
  if (join.kind == JoinKind::kFull) return left + right;
  if (join.kind != JoinKind::kInner && join.kind != JoinKind::kSemi) return left;
  double values = 1;
  for (const Expr& condition : join.conditions) {
    if (condition.op != Op::kEqual) continue;
    const Expr &a = condition.children[0], &b = condition.children[1];
    values *= std::max(ValuesOfKey(a, left, b), ValuesOfKey(b, right, a));
  }
  const double rows = left * right / std::min(values, std::max({left, right, 1.0}));
  return join.kind == JoinKind::kSemi ? std::min(left, rows) : rows;
}

double Cardinalities::Estimate(const lg::Node& node) const {
  struct Visitor {
    const Cardinalities& all;
    const lg::Node& node;

    double Below() const { return all.RowsOf(node.input()); }
    double operator()(const lg::Scan& scan) const { return static_cast<double>(scan.table->rows()); }
    double operator()(const lg::Values& values) const { return static_cast<double>(values.rows.size()); }
    double operator()(const lg::FileScan& scan) const { return static_cast<double>(scan.table->rows()); }
    double operator()(const lg::Filter& filter) const { return Below() * all.ShareOf(filter.conditions); }
    double operator()(const lg::Project&) const { return Below(); }
    double operator()(const lg::Join&) const { return all.JoinRows(node); }
    double operator()(const lg::Aggregate& groups) const {
      if (groups.keys.empty()) return 1;
      const double values = all.ValuesOf(groups.keys), rows = Below();
      return std::max(1.0, std::isfinite(values) ? std::min(values, rows) : rows / kRowsOfAGroup);
    }
    double operator()(const lg::Window&) const { return Below(); }
    double operator()(const lg::Sort&) const { return Below(); }
    double operator()(const lg::Limit& limit) const {
      const double behind = std::max(0.0, Below() - static_cast<double>(limit.offset));
      return limit.rows.has_value() ? std::min(behind, static_cast<double>(*limit.rows)) : behind;
    }
    double operator()(const lg::Distinct&) const {
      std::vector<Expr> columns;
      for (const lg::Column& column : node.columns) columns.push_back(lg::MakeColumn(column));
      return std::min(Below(), all.ValuesOf(columns));
    }
    double operator()(const lg::SetOperation& set) const {
      double rows = 0;
      for (const lg::NodePtr& input : node.inputs) {
        rows += all.RowsOf(*input);
        if (set.kind != lg::SetOperation::Kind::kUnion) break;
      }
      return rows;
    }
    double operator()(const lg::With&) const { return all.RowsOf(node.input(1)); }
    double operator()(const lg::CteScan& scan) const {
      constexpr double kGuess = 1000;
      const auto known = all.rows_of_ctes_.find(scan.cte);
      if (known != all.rows_of_ctes_.end()) return known->second;
      const auto definition = all.ctes_.find(scan.cte);
      return definition == all.ctes_.end() ? kGuess : all.RowsOf(*definition->second);
    }
    double operator()(const lg::Series& series) const { return Below() * RowsOfSeries(series); }
  };
  return std::visit(Visitor{*this, node}, node.op);
}

}  // namespace nam::optimizer
