#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "plan/logical.h"
#include "plan/physical.h"
#include "plan/table_schema.h"
#include "session/session.h"
#include "tests/sql/flat_query.h"

/// Queries over one table without servers: the output that each attempt would leave, made by the engine's own
/// sinks, and the right result.
namespace nam::session {

using Row = std::vector<Value>;
using Rows = std::vector<Row>;

/// A query over
///   t(id integer, k integer null, n bigint null, price decimal(2) null, name varchar null, c char(3) null,
///     day date null, ok boolean null)
struct Planned {
  sql::FlatQuery query;
  std::vector<ResultSet::Column> columns;
  plan::PhysicalPlan physical;
  plan::TableMetadata tables;
};
/// The query's tree.
plan::logical::Query TreeOf(const std::string& text);
/// The query must bind; otherwise it is a test failure.
Planned PlanOf(const std::string& text);

/// Rows of t; their ids ascend from `first` on. Each other column has at most `distinct` values.
Rows RandomRows(int64_t first, size_t count, uint64_t distinct, RandomStream& random);

struct Storing {
  int tasks = 1;
  /// ResultSink::order and limit apply; otherwise rows are stored as they come.
  bool in_order = true;
};
/// The pages that an attempt over these rows stores, one after the other.
absl::StatusOr<std::vector<std::byte>> Store(const Planned& planned, const Rows& rows, uint64_t attempt,
                                             RandomStream& random, const Storing& storing = {});

/// The query's rows, computed by a walk over all rows of t in their order. Rows with equal order keys stay in
/// it.
absl::StatusOr<Rows> Model(const sql::FlatQuery& query, const Rows& table);

}  // namespace nam::session
