#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "optimizer/selectivity.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// Estimates rows and values of a query's operators: by statistics wherever a column is a table's, also
/// behind the select lists of derived tables.
class Cardinalities {
 public:
  Cardinalities() = default;
  /// Estimates all operators of the tree, which must outlive this.
  explicit Cardinalities(const plan::logical::Node& root) { AddTree(root); }

  /// Takes the statistics of this table for a scan, instead of its own.
  void SetTable(const plan::logical::Node& scan, std::shared_ptr<const proto::Table> table);

  /// Notes the rows of a common table.
  void SetRows(int cte, double rows) { rows_of_ctes_[cte] = rows; }

  /// The statistics of an expression that is a table's column; null: it is none.
  const StoredColumn* StoredOf(const plan::Expr& expr) const;
  /// The number of values of an expression over columns, NULL included, at most; for several expressions: of
  /// rows of values. Infinite: unknown.
  double ValuesOf(const std::vector<plan::Expr>& exprs) const;
  /// The values by which `build`, the key of so many rows, meets `probe`: those of the build side's column.
  /// Without statistics the keys of few rows are assumed to be distinct, and to be values of the probe side.
  double ValuesOfKey(const plan::Expr& build, double build_rows, const plan::Expr& probe) const;
  /// The share of rows with the most common values of these keys, at most; 0: unknown.
  double HeaviestOf(const std::vector<plan::Expr>& keys) const;
  /// The share of rows that meet the conditions.
  double ShareOf(const std::vector<plan::Expr>& conditions) const;

  double RowsOf(const plan::logical::Node& node) const;

 private:
  void AddTree(const plan::logical::Node& node);
  void NoteColumns(const plan::logical::Node& node);
  void NoteTable(const plan::logical::Node& scan, const proto::Table& table);
  /// Notes a column as the same as an expression.
  void NoteSame(plan::ColumnRef column, const plan::Expr& expr);
  double Estimate(const plan::logical::Node& node) const;
  double JoinRows(const plan::logical::Node& node) const;

  StoredColumns stored_;
  std::map<plan::ColumnRef, double> values_;
  std::map<const plan::logical::Node*, double> rows_;
  std::map<int, const plan::logical::Node*> ctes_;  // definitions
  std::map<int, double> rows_of_ctes_;
  std::vector<std::shared_ptr<const proto::Table>> tables_;
};

/// Groups by keys without statistics are assumed to have so many rows each.
inline constexpr double kRowsOfAGroup = 10;

/// The length of a series for each row; a guess if its ends are no constants.
double RowsOfSeries(const plan::logical::Series& series);

}  // namespace nam::optimizer
