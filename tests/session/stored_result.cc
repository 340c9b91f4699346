#include "tests/session/stored_result.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "execution/aggregate/aggregate_sink.h"
#include "execution/sort/result_sink.h"
#include "execution/sort/sorter.h"
#include "execution/sort/top_rows.h"
#include "optimizer/plan_query.h"
#include "plan/expression.h"
#include "sql/logical_binder.h"
#include "tests/execution/step_driver.h"
#include "types/decimal.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::session {
namespace {

using execution::Cell;
using execution::Tuple;
using plan::AggregateFunction;
using plan::Expr;

struct ColumnSpec {
  const char* name;
  Type type;
  bool nullable;
  int64_t min, max;
};

constexpr int64_t kMost = 1'000'000'000'000;

const std::vector<ColumnSpec>& Columns() {
  static const std::vector<ColumnSpec> columns = {
      {"id", Type::Integer(), false, 0, kMost},       {"k", Type::Integer(), true, -3, 200'000},
      {"n", Type::Integer(), true, -kMost, kMost},    {"price", Type::Decimal(2), true, -kMost, kMost},
      {"name", Type::String(40), true, 0, 1'000'000}, {"c", plan::CharType(3), true, 0, 1000},
      {"day", Type::Date(), true, 8000, 20'000},      {"ok", Type::Bool(), true, 0, 1}};
  return columns;
}

class OneTable final : public sql::TableSource {
 public:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    if (name != "t") return absl::NotFoundError("there is one table");
    auto table = std::make_shared<proto::Table>();
    table->set_name("t");
    table->set_allocation(7);
    table->set_rows(1000);
    for (const ColumnSpec& spec : Columns()) {
      proto::Column* column = table->add_columns();
      column->set_name(spec.name);
      *column->mutable_type() = ToProto(spec.type);
      column->set_nullable(spec.nullable);
      column->set_min(spec.min);
      column->set_max(spec.max);
      column->set_distinct(100);
    }
    table->add_partitions();
    return table;
  }
  std::vector<std::string> Names() override { return {"t"}; }
};

Value RandomValue(const ColumnSpec& spec, uint64_t distinct, RandomStream& random) {
  Value value = Value::Null(spec.type);
  if (spec.nullable && random.OneIn(6)) return value;
  value.null = false;
  const uint64_t number = random.Below(distinct);
  if (spec.type.kind == TypeKind::kString) {
    // Texts have equal prefixes of eight bytes, and some are part of others.
    value.text = plan::IsChar(spec.type) ? std::string(1, static_cast<char>('a' + number % 26))
                 : number == 0           ? ""
                                         : "abcdefgh" + std::to_string(number / 2) + (number % 2 ? "x" : "");
  } else {
    const auto range = static_cast<uint64_t>(spec.max - spec.min) + 1;
    value.number = number == 0 ? spec.max : spec.min + static_cast<int64_t>(number % range);
  }
  return value;
}

plan::Resolver ColumnsOf(const Row& row) {
  return [&row](const Expr& e) { return row[static_cast<size_t>(e.column.column)]; };
}

absl::StatusOr<Row> Evaluated(const std::vector<Expr>& exprs, const plan::Resolver& resolve) {
  Row row;
  for (const Expr& expr : exprs) {
    NAM_ASSIGN_OR_RETURN(Value value, plan::Evaluate(expr, resolve));
    row.push_back(std::move(value));
  }
  return row;
}

Tuple TupleOf(const Row& row) {
  Tuple tuple;
  for (const Value& value : row) {
    tuple.push_back(value.null                             ? Cell()
                    : value.type.kind == TypeKind::kString ? Cell::Text(value.text)
                                                           : Cell::Number(value.number));
  }
  return tuple;
}

/// The partitioning of the driving table.
const plan::Pipeline& ServersPipeline(const Planned& planned) {
  return planned.physical.pipelines[planned.physical.stages[0].claimed];
}

/// The rows that reach the pipeline's sink.
absl::StatusOr<std::vector<Tuple>> SinkInput(const Planned& planned, const Rows& rows) {
  const auto& scan = std::get<plan::BlockScan>(ServersPipeline(planned).source);
  std::vector<Tuple> tuples;
  for (const Row& row : rows) {
    Row flows;
    for (const uint32_t slot : scan.output) flows.push_back(row[scan.columns[slot]]);
    for (const plan::StepNode& step : ServersPipeline(planned).steps) {
      NAM_ASSIGN_OR_RETURN(flows, Evaluated(std::get<plan::ProjectStep>(step).outputs, ColumnsOf(flows)));
    }
    tuples.push_back(TupleOf(flows));
  }
  return tuples;
}

std::vector<std::byte> Joined(const std::vector<std::span<const std::byte>>& pages) {
  std::vector<std::byte> stored;
  for (const std::span<const std::byte> page : pages) stored.insert(stored.end(), page.begin(), page.end());
  return stored;
}

absl::StatusOr<std::vector<std::byte>> StoreGroups(const plan::AggregateSink& node,
                                                   const plan::Schema& schema,
                                                   const std::vector<Tuple>& tuples, uint64_t attempt,
                                                   int tasks, execution::StepDriver& driver) {
  NAM_ASSIGN_OR_RETURN(
      const auto plan,
      execution::AggregatePlan::Make(
          {.group_by = node.group_by, .aggregates = node.aggregates, .schema = schema, .meanings = {}}));
  execution::AggregateSink sink(*plan, driver.budget());
  NAM_RETURN_IF_ERROR(driver.RunInto(schema, tuples, sink, tasks));
  execution::TaskContext context = driver.NewContext();
  std::vector<std::span<const std::byte>> pages;
  NAM_RETURN_IF_ERROR(sink.Store(context, attempt, pages));
  return Joined(pages);
}

absl::StatusOr<std::vector<std::byte>> StoreRows(const plan::ResultSink& node, const plan::Schema& schema,
                                                 const std::vector<Tuple>& tuples, uint64_t attempt,
                                                 const Storing& storing, execution::StepDriver& driver) {
  NAM_ASSIGN_OR_RETURN(const auto plan, execution::RowsPlan::Make(schema));
  std::vector<std::span<const std::byte>> pages;
  execution::TaskContext context = driver.NewContext();
  if (!storing.in_order || node.order.empty()) {
    std::optional<uint64_t> limit;
    if (node.limit >= 0 && node.order.empty()) limit = static_cast<uint64_t>(node.limit);
    NAM_ASSIGN_OR_RETURN(const auto sink, execution::ResultSink::Make(*plan, limit, driver.budget()));
    NAM_RETURN_IF_ERROR(driver.RunInto(schema, tuples, *sink, storing.tasks));
    NAM_RETURN_IF_ERROR(sink->Store(context, attempt, pages));
    return Joined(pages);
  }
  std::vector<execution::OrderSlot> order;
  for (const plan::Order& by : node.order) order.push_back({by.slot, by.descending, by.nulls_first});
  if (driver.random().OneIn(2)) {
    NAM_ASSIGN_OR_RETURN(const auto sink, execution::Sorter::Make(*plan, order, driver.budget()));
    NAM_RETURN_IF_ERROR(driver.RunInto(schema, tuples, *sink, storing.tasks));
    NAM_RETURN_IF_ERROR(sink->rows().Store(context, attempt, pages));
    return Joined(pages);
  }
  NAM_ASSIGN_OR_RETURN(
      const auto sink,
      execution::TopRows::Make(*plan, order, static_cast<uint64_t>(node.limit), driver.budget()));
  NAM_RETURN_IF_ERROR(driver.RunInto(schema, tuples, *sink, storing.tasks));
  NAM_RETURN_IF_ERROR(sink->rows().Store(context, attempt, pages));
  return Joined(pages);
}

// ─── The model

using Key = std::vector<std::tuple<bool, __int128, std::string>>;

Key KeyOf(const Row& row) {
  Key key;
  for (const Value& v : row) key.emplace_back(v.null, v.null ? 0 : v.number, v.null ? "" : v.text);
  return key;
}

Value AverageOf(__int128 sum, int64_t count, const plan::Aggregate& aggregate) {
  return Value::OfNumeric(*DecimalAverage(sum, aggregate.argument.type.scale, count));
}

absl::StatusOr<Value> Aggregated(const plan::Aggregate& aggregate, const std::vector<const Row*>& rows) {
  if (aggregate.function == AggregateFunction::kCountRows) return Value::Integer(std::ssize(rows));
  Rows values;
  for (const Row* row : rows) {
    NAM_ASSIGN_OR_RETURN(Row value, Evaluated({aggregate.argument}, ColumnsOf(*row)));
    if (!value[0].null) values.push_back(std::move(value));
  }
  std::set<Key> distinct;
  __int128 sum = 0;
  Value least = Value::Null(aggregate.type), greatest = least;
  for (const Row& value : values) {
    sum += value[0].number;
    distinct.insert(KeyOf(value));
    if (least.null || Compare(value[0], least) < 0) least = value[0];
    if (greatest.null || Compare(value[0], greatest) > 0) greatest = value[0];
  }
  switch (aggregate.function) {
    case AggregateFunction::kCount:
      return Value::Integer(std::ssize(values));
    case AggregateFunction::kCountDistinct:
      return Value::Integer(std::ssize(distinct));
    case AggregateFunction::kMin:
      return least;
    case AggregateFunction::kMax:
      return greatest;
    case AggregateFunction::kSum:
      return values.empty() ? least : Value{aggregate.type, false, sum, {}};
    default:
      return values.empty() ? least : AverageOf(sum, std::ssize(values), aggregate);
  }
}

/// A row of the result, and its order keys.
struct OutputRow {
  Row values, order;
};

absl::StatusOr<std::vector<OutputRow>> Outputs(const sql::FlatQuery& query, const Rows& table) {
  std::vector<OutputRow> out;
  const auto add = [&](const plan::Resolver& resolve) -> absl::Status {
    OutputRow& row = out.emplace_back();
    for (const sql::FlatQuery::Output& column : query.select) {
      NAM_ASSIGN_OR_RETURN(Value value, plan::Evaluate(column.expr, resolve));
      row.values.push_back(std::move(value));
    }
    for (const plan::OrderKey& key : query.order_by) {
      NAM_ASSIGN_OR_RETURN(Value value, plan::Evaluate(key.expr, resolve));
      row.order.push_back(std::move(value));
    }
    return absl::OkStatus();
  };
  if (!query.aggregated) {
    for (const Row& row : table) NAM_RETURN_IF_ERROR(add(ColumnsOf(row)));
    return out;
  }
  std::map<Key, size_t> group_of;
  std::vector<std::pair<Row, std::vector<const Row*>>> groups;
  if (query.group_by.empty()) groups.emplace_back();
  for (const Row& row : table) {
    NAM_ASSIGN_OR_RETURN(const Row keys, Evaluated(query.group_by, ColumnsOf(row)));
    const auto [at, is_new] = group_of.try_emplace(KeyOf(keys), groups.size());
    if (is_new && !keys.empty()) groups.emplace_back(keys, std::vector<const Row*>());
    groups[keys.empty() ? 0 : at->second].second.push_back(&row);
  }
  for (const auto& [keys, rows] : groups) {
    Row aggregates;
    for (const plan::Aggregate& aggregate : query.aggregates) {
      NAM_ASSIGN_OR_RETURN(Value value, Aggregated(aggregate, rows));
      aggregates.push_back(std::move(value));
    }
    const plan::Resolver resolve = [&keys, &aggregates](const Expr& e) {
      return (e.column.table == sql::FlatQuery::kGroups ? keys
                                                        : aggregates)[static_cast<size_t>(e.column.column)];
    };
    if (query.having.has_value()) {
      NAM_ASSIGN_OR_RETURN(const Value keep, plan::Evaluate(*query.having, resolve));
      if (keep.null || keep.number == 0) continue;
    }
    NAM_RETURN_IF_ERROR(add(resolve));
  }
  return out;
}

bool Before(const sql::FlatQuery& query, const OutputRow& a, const OutputRow& b) {
  for (size_t k = 0; k < query.order_by.size(); ++k) {
    const plan::OrderKey& by = query.order_by[k];
    const Value &x = a.order[k], &y = b.order[k];
    if (x.null && y.null) continue;
    if (x.null || y.null) return x.null == by.nulls_first;
    const int compared = Compare(x, y);
    if (compared != 0) return by.descending ? compared > 0 : compared < 0;
  }
  return false;
}

}  // namespace

plan::logical::Query TreeOf(const std::string& text) {
  OneTable tables;
  absl::StatusOr<plan::logical::Query> tree = sql::BindLogical(text, tables);
  EXPECT_TRUE(tree.ok()) << text << ": " << tree.status();
  return tree.ok() ? *std::move(tree) : plan::logical::Query();
}

Planned PlanOf(const std::string& text) {
  Planned out;
  plan::logical::Query tree = TreeOf(text);
  if (tree.root == nullptr) return out;
  std::optional<sql::FlatQuery> flat = sql::Flatten(tree);
  EXPECT_TRUE(flat.has_value()) << text;
  out.query = std::move(flat).value_or(sql::FlatQuery());
  for (const plan::logical::Column& column : tree.root->columns)
    out.columns.push_back({column.name, column.type});
  absl::StatusOr<optimizer::LoweredTree> lowered = optimizer::PlanQuery(std::move(tree));
  EXPECT_TRUE(lowered.ok()) << text << ": " << lowered.status();
  if (!lowered.ok()) return out;
  out.physical = std::move(lowered->lowered.plan);
  out.tables = std::move(lowered->lowered.tables);
  return out;
}

Rows RandomRows(int64_t first, size_t count, uint64_t distinct, RandomStream& random) {
  Rows rows(count);
  for (size_t i = 0; i < count; ++i) {
    for (const ColumnSpec& spec : Columns()) rows[i].push_back(RandomValue(spec, distinct, random));
    rows[i][0] = Value::Integer(first + static_cast<int64_t>(i));
  }
  return rows;
}

absl::StatusOr<std::vector<std::byte>> Store(const Planned& planned, const Rows& rows, uint64_t attempt,
                                             RandomStream& random, const Storing& storing) {
  execution::StepDriver driver(random.Next());
  const plan::Pipeline& pipeline = ServersPipeline(planned);
  const plan::Schema& schema = pipeline.schemas.back();
  NAM_ASSIGN_OR_RETURN(const std::vector<Tuple> tuples, SinkInput(planned, rows));
  if (const auto* node = std::get_if<plan::AggregateSink>(&pipeline.sink); node != nullptr)
    return StoreGroups(*node, schema, tuples, attempt, storing.tasks, driver);
  return StoreRows(std::get<plan::ResultSink>(pipeline.sink), schema, tuples, attempt, storing, driver);
}

absl::StatusOr<Rows> Model(const sql::FlatQuery& query, const Rows& table) {
  NAM_ASSIGN_OR_RETURN(std::vector<OutputRow> rows, Outputs(query, table));
  if (query.distinct) {
    std::set<Key> seen;
    std::erase_if(rows, [&](const OutputRow& row) { return !seen.insert(KeyOf(row.values)).second; });
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const OutputRow& a, const OutputRow& b) { return Before(query, a, b); });
  Rows result;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<int64_t>(i) < query.offset) continue;
    if (query.limit.has_value() && std::ssize(result) == *query.limit) break;
    result.push_back(std::move(rows[i].values));
  }
  return result;
}

}  // namespace nam::session
