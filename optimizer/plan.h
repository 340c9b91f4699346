#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/expression.h"
#include "proto/table.pb.h"

namespace nam::optimizer {

using TableRefs = std::vector<std::shared_ptr<const proto::Table>>;

/// left = right between columns of two of a star's tables, both of comparable kinds.
struct JoinEdge {
  plan::ColumnRef left;
  plan::ColumnRef right;
};

/// Inner joins of tables. Columns are named by a table's place in `tables`.
struct StarQuery {
  TableRefs tables;
  std::vector<JoinEdge> joins;        // connect every two tables; all distinct
  std::vector<plan::Expr> conjuncts;  // all must be true; include other conditions between tables
  std::vector<plan::ColumnRef> output;
};

/// A distributed pipelined plan (I-Store, section 2): every compute server builds a join table over each
/// small side that its partitions need, then streams its partitions of the driving table through all of
/// them. No intermediate is shuffled.
struct Plan {
  struct Table {
    std::string name;
    uint64_t allocation = 0;
    std::vector<uint32_t> columns;    // read from its blocks, ascending
    std::vector<plan::Expr> filters;  // over this table alone
    // Estimates, for EXPLAIN and costs.
    double rows = 0;
    double selectivity = 1;
  };
  struct Join {
    int table = -1;  // build side
    // A key of each side for each equality; pairs have one type kind and scale. At least one.
    std::vector<plan::Expr> probe_keys;  // over tables joined before
    std::vector<plan::Expr> build_keys;
    std::vector<plan::Expr> residuals;
    double rows_after = 0;  // estimate
  };
  std::vector<Table> tables;  // in the order of StarQuery::tables
  int driving = 0;
  std::vector<Join> joins;              // in probe order
  std::vector<plan::ColumnRef> output;  // columns that later operators read
};

/// Chooses driving table, join order, filters and columns, for so many threads of compute servers.
absl::StatusOr<Plan> MakePlan(const StarQuery& query, double workers);

/// Reads all columns of the driving table, like rows that are stored one after the other.
void ReadWholeTuples(const TableRefs& tables, Plan& plan);

}  // namespace nam::optimizer
