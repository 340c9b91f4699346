#include "bench/shuffle_plan.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "plan/aggregate.h"
#include "plan/expression.h"

namespace nam::bench {
namespace {

using computeserver::JoinTable;
using computeserver::QueryShape;
using optimizer::Plan;

constexpr uint64_t kBuildBytesMax = uint64_t{4} << 30;
constexpr uint64_t kResultBytesMax = uint64_t{256} << 20;

uint32_t AlignUp8(uint32_t n) {
  return (n + 7) & ~7u;
}

absl::Status CheckStar(const QueryShape& shape) {
  for (const Plan::Table& table : shape.plan.tables) {
    if (!table.filters.empty()) return absl::InvalidArgumentError("the shuffle-based plan has no filters");
  }
  for (size_t j = 0; j < shape.joins.size(); ++j) {
    if (!shape.joins[j].by_driving_key || shape.plan.joins[j].build_key.op != plan::Op::kColumn)
      return absl::InvalidArgumentError("the shuffle-based plan joins a star by its dense, unique keys");
  }
  if (shape.joins.empty()) return absl::InvalidArgumentError("there is nothing to join");
  return absl::OkStatus();
}

/// Lays the columns out for messages of at most `batch_bytes`.
absl::Status LayOut(const QueryShape& shape, uint32_t batch_bytes, ShuffleLeg& leg) {
  uint32_t row_bytes = 0;
  for (ShuffleLeg::Column& column : leg.columns) {
    column.width = shape.columns.at(column.ref).meaning.width;
    row_bytes += column.width;
  }
  leg.key_base = shape.columns.at(leg.columns[0].ref).meaning.base;
  leg.capacity = (batch_bytes - static_cast<uint32_t>(sizeof(ShuffleHeader))) / row_bytes;
  while (leg.capacity > 0 && leg.BytesOf(leg.capacity) > batch_bytes) --leg.capacity;
  if (leg.capacity == 0) return absl::InvalidArgumentError("a row does not fit a batch");
  leg.offsets.resize(leg.columns.size());
  leg.OffsetsOf(leg.capacity, leg.offsets.data());
  return absl::OkStatus();
}

uint32_t PlaceIn(const std::vector<uint32_t>& columns, int column) {
  const auto found = std::find(columns.begin(), columns.end(), static_cast<uint32_t>(column));
  NAM_CHECK(found != columns.end(), "a column that the plan does not read");
  return static_cast<uint32_t>(found - columns.begin());
}

/// The columns that are wanted once the first `joined` joins are done, but for the next join's key.
std::set<plan::ColumnRef> WantedAfter(const QueryShape& shape, size_t joined) {
  std::set<plan::ColumnRef> wanted;
  const auto add = [&](const plan::Expr& expr) {
    for (const plan::ColumnRef ref : plan::ColumnsOf(expr)) {
      bool there = ref.table == shape.plan.driving;
      for (size_t j = 0; j < joined; ++j) there = there || shape.plan.joins[j].table == ref.table;
      if (there) wanted.insert(ref);
    }
  };
  for (size_t j = joined + 1; j < shape.joins.size(); ++j) add(shape.plan.joins[j].probe_key);
  for (const plan::Expr& key : shape.plan.group_by) add(key);
  for (const plan::Aggregate& aggregate : shape.plan.aggregates) add(aggregate.argument);
  for (const plan::Expr& expr : shape.plan.output) add(expr);
  // Tuples that are read whole travel whole.
  const int driving = shape.plan.driving;
  const std::vector<uint32_t>& read = shape.plan.tables[static_cast<size_t>(driving)].columns;
  if (read.size() == static_cast<size_t>(shape.tables[static_cast<size_t>(driving)]->columns_size())) {
    for (const uint32_t column : read) wanted.insert({driving, static_cast<int>(column)});
  }
  return wanted;
}

ShuffleLeg BuildLeg(const QueryShape& shape, size_t j) {
  const Plan::Join& join = shape.plan.joins[j];
  const std::vector<uint32_t>& read = shape.plan.tables[static_cast<size_t>(join.table)].columns;
  ShuffleLeg leg;
  leg.columns.push_back({.ref = join.build_key.column, .from = PlaceIn(read, join.build_key.column.column)});
  for (const uint32_t column : shape.joins[j].payload) {
    leg.columns.push_back(
        {.ref = {join.table, static_cast<int>(column)}, .from = PlaceIn(read, static_cast<int>(column))});
  }
  return leg;
}

ShuffleLeg ProbeLeg(const QueryShape& shape, size_t j, const ShuffleLeg* before) {
  const auto from = [&](plan::ColumnRef ref) -> ShuffleLeg::Column {
    if (before == nullptr) {
      const auto driving = static_cast<size_t>(shape.plan.driving);
      return {.ref = ref, .from = PlaceIn(shape.plan.tables[driving].columns, ref.column)};
    }
    if (shape.plan.joins[j - 1].table == ref.table) {
      return {.ref = ref, .from_build = true, .from = PlaceIn(shape.joins[j - 1].payload, ref.column)};
    }
    const auto found = std::find_if(before->columns.begin(), before->columns.end(),
                                    [&](const ShuffleLeg::Column& column) { return column.ref == ref; });
    NAM_CHECK(found != before->columns.end(), "a column that was not sent on");
    return {.ref = ref, .from = static_cast<uint32_t>(found - before->columns.begin())};
  };
  ShuffleLeg leg;
  const plan::ColumnRef key = shape.plan.joins[j].probe_key.column;
  leg.columns.push_back(from(key));
  for (const plan::ColumnRef ref : WantedAfter(shape, j)) {
    if (ref != key) leg.columns.push_back(from(ref));
  }
  return leg;
}

}  // namespace

uint32_t ShuffleLeg::BytesOf(uint32_t rows) const {
  auto at = static_cast<uint32_t>(sizeof(ShuffleHeader));
  for (const Column& column : columns) at = AlignUp8(at + rows * column.width);
  return at;
}

void ShuffleLeg::OffsetsOf(uint32_t rows, uint32_t* at) const {
  auto next = static_cast<uint32_t>(sizeof(ShuffleHeader));
  for (const Column& column : columns) {
    *at++ = next;
    next = AlignUp8(next + rows * column.width);
  }
}

absl::StatusOr<ShufflePlan> ShufflePlan::Make(std::shared_ptr<const QueryShape> shape, uint32_t batch_bytes) {
  NAM_RETURN_IF_ERROR(CheckStar(*shape));
  ShufflePlan plan{.shape = std::move(shape)};
  for (size_t j = 0; j < plan.shape->joins.size(); ++j) {
    plan.build.push_back(BuildLeg(*plan.shape, j));
    plan.probe.push_back(ProbeLeg(*plan.shape, j, j == 0 ? nullptr : &plan.probe.back()));
    NAM_RETURN_IF_ERROR(LayOut(*plan.shape, batch_bytes, plan.build.back()));
    NAM_RETURN_IF_ERROR(LayOut(*plan.shape, batch_bytes, plan.probe.back()));
  }
  return plan;
}

absl::StatusOr<ShuffleQuery> ShuffleQuery::Bind(const std::string& sql, sql::TableSource& tables,
                                                const computeserver::DictionaryLoader& load_dictionary,
                                                uint32_t batch_bytes, bool whole_tuples) {
  NAM_ASSIGN_OR_RETURN(sql::Statement statement, sql::Bind(sql, tables));
  auto* select = std::get_if<sql::SelectStatement>(&statement);
  if (select == nullptr) return absl::InvalidArgumentError(absl::StrCat("not a SELECT: ", sql));
  ShuffleQuery bound{.query = std::move(select->query)};
  NAM_ASSIGN_OR_RETURN(Plan plan, optimizer::MakePlan(bound.query));
  optimizer::TableRefs refs;
  for (const sql::BoundTable& table : bound.query.tables) refs.push_back(table.table);
  if (whole_tuples) optimizer::ReadWholeTuples(refs, plan);
  proto::StreamSettings settings;
  settings.set_build_bytes_max(kBuildBytesMax);
  settings.set_result_bytes_max(kResultBytesMax);
  const proto::Table& driving = *refs[static_cast<size_t>(plan.driving)];
  std::vector<partitioner::Piece> pieces;
  for (int p = 0; p < driving.partitions_size(); ++p)
    pieces.push_back({static_cast<uint32_t>(p), 0, driving.partitions(p).blocks()});
  const size_t count = refs.size();
  NAM_ASSIGN_OR_RETURN(auto shape, QueryShape::Make(std::move(plan), std::move(refs),
                                                    std::vector<std::shared_ptr<storage::KnownBlocks>>(count),
                                                    settings, std::move(pieces), load_dictionary));
  NAM_ASSIGN_OR_RETURN(bound.plan, ShufflePlan::Make(std::move(shape), batch_bytes));
  return bound;
}

}  // namespace nam::bench
