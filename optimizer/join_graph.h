#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "optimizer/cardinality.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// Inner joins as a graph: inputs of any kind, and the conditions between them.
///
///     lineitem, (select …) x, part, (values …) v      lineitem ── part     equalities of tables
///                                                     │      └─── v        constants, which are built with
///                                                     them x                    anything else
///
/// Outer, semi and anti joins are inputs as a whole.
struct JoinGraph {
  enum class Kind : uint8_t {
    kTable,      // a scan by servers
    kConstants,  // few rows that every server can compute by itself
    kOther,
  };
  struct Input {
    Kind kind = Kind::kOther;
    const plan::logical::Node* node = nullptr;  // the scan, without its filters; or the operator
    std::vector<plan::Expr> filters;            // of a scan
    std::shared_ptr<const proto::Table> table;  // of a scan
    uint32_t number = 0;                        // of a kTable: in the plan

    const plan::logical::Scan* scan() const { return node->As<plan::logical::Scan>(); }
  };
  struct Condition {
    plan::Expr expr;
    std::set<size_t> inputs;  // whose columns it names
    bool last = false;        // it may fail for rows that the others drop
  };
  std::vector<Input> inputs;  // in FROM's order
  std::vector<Condition> conditions;
};

/// Whether it is a scan, or inner joins, below filters.
bool IsJoinBlock(const plan::logical::Node& node);

/// Collects the inputs and conditions of a block. Conditions on one table become its filters. Inputs are
/// tables if servers may scan them: columnar ones; record tables if `servers_read_records`, and an equality
/// joins them with another table. A sole input of a block is a table if it is columnar.
JoinGraph JoinGraphOf(const plan::logical::Node& block, bool servers_read_records);

/// How the inputs are joined.
struct JoinTree {
  std::set<size_t> inputs;
  std::unique_ptr<JoinTree> left, right;  // probed and built; null: an input
  std::vector<plan::Expr> conditions;     // that hold of the join's rows, and not of a side's alone
  bool unique = false;                    // JoinStep::unique
  double values = 1;                      // JoinStep::values
  // Estimates, as of JoinInput.
  double read = 0, rows = 0, partitions = 1;
};

/// Chooses the order. Tables that equalities connect are joined first, with the constants that these connect
/// with them: servers do so in one stage. Then these and the other inputs are joined. Either order is that of
/// ChooseJoinOrder. `workers`: the threads of all compute servers.
JoinTree OrderJoins(const JoinGraph& graph, const Cardinalities& cardinalities, double workers);

/// More rows of constants are an input like any other.
inline constexpr double kMostConstants = 10'000;

}  // namespace nam::optimizer
