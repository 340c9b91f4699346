#pragma once

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// Pushes the domain of one dependent join down its right input, until nothing there names columns of the
/// left.
class DomainPush {
 public:
  /// `outer`: the left's columns that the right names. `left`: the CTE that holds the left's rows, and the
  /// places of `outer` in it.
  DomainPush(plan::logical::Query& query, std::vector<plan::logical::Column> outer, int left,
             std::vector<uint32_t> fields);

  /// A tree that computes the right input for every row of the domain.
  struct Pushed {
    plan::logical::NodePtr node;
    std::vector<plan::logical::Column> domain;  // node's columns that are the outer ones, in their order
    std::vector<plan::OrderKey> order;          // for a LIMIT above
  };
  absl::StatusOr<Pushed> Push(plan::logical::NodePtr node, bool want_order = false);

  /// Puts the domain's definition around a tree that Push made.
  plan::logical::NodePtr Define(plan::logical::NodePtr root);

 private:
  using PushedOr = absl::StatusOr<Pushed>;
  using Columns = std::vector<plan::logical::Column>;

  bool Correlated(const plan::logical::Node& root) const;
  /// Scans the domain, under names of its own.
  Pushed Scan();
  PushedOr PushRowwise(plan::logical::NodePtr node, bool want_order);
  PushedOr PushProject(plan::logical::NodePtr node, bool want_order);
  PushedOr PushJoin(plan::logical::NodePtr node);
  PushedOr PushFullJoin(plan::logical::NodePtr node);
  PushedOr PushAggregate(plan::logical::NodePtr node);
  PushedOr WithEmptyGroups(Pushed grouped, const plan::logical::Node& original);
  PushedOr PushWindow(plan::logical::NodePtr node);
  PushedOr PushSort(plan::logical::NodePtr node, bool want_order);
  PushedOr PushLimit(plan::logical::NodePtr node, bool want_order);
  PushedOr PushDistinct(plan::logical::NodePtr node);
  PushedOr PushSetOperation(plan::logical::NodePtr node);
  PushedOr PushWith(plan::logical::NodePtr node, bool want_order);
  Pushed PushCteScan(plan::logical::NodePtr node);

  plan::Expr Replaced(plan::Expr expr, const Columns& domain) const;
  void ReplaceIn(plan::logical::Node& node, const Columns& domain) const;
  static std::vector<plan::Expr> Alike(const Columns& a, const Columns& b);
  static Pushed Trimmed(Pushed pushed, const std::vector<plan::logical::Column>& columns);
  std::vector<plan::logical::Column> Renamed(const std::vector<plan::logical::Column>& columns);

  plan::logical::Query& query_;
  const std::vector<plan::logical::Column> outer_;
  const int left_;
  const std::vector<uint32_t> fields_;
  int domain_ = -1;                                  // its CTE
  std::map<int, std::vector<uint32_t>> correlated_;  // CTEs that are computed for the domain, and its places
};

/// The column, or 0 where it is NULL: a count of no rows.
plan::Expr CountOrZero(const plan::logical::Column& count);

}  // namespace nam::optimizer
