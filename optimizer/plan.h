#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sql/bound_query.h"

namespace nam::optimizer {

/// A distributed pipelined plan (I-Store, section 2): every compute server builds a join table over each
/// small side that its partitions need, then streams its partitions of the driving table through all of
/// them into one sink. No intermediate is shuffled.
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
    int table = -1;        // build side
    plan::Expr probe_key;  // over tables joined before; same type kind and scale as build_key
    plan::Expr build_key;
    std::vector<plan::Expr> residuals;
    double rows_after = 0;  // estimate
  };
  std::vector<Table> tables;  // in the order of BoundQuery::tables
  int driving = 0;
  std::vector<Join> joins;  // in probe order
  bool aggregated = false;
  std::vector<plan::Expr> group_by;
  std::vector<plan::Aggregate> aggregates;
  std::vector<plan::Expr> output;
  std::vector<plan::OrderKey> order;
  int64_t row_limit = -1;
};

/// Chooses driving table, join order, filters and columns.
absl::StatusOr<Plan> MakePlan(const sql::BoundQuery& query);

}  // namespace nam::optimizer
