#include "tests/execution/aggregate/aggregation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "base/check.h"
#include "base/status_macros.h"
#include "plan/aggregate_slots.h"
#include "types/real.h"
#include "types/value.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

/// Variances and related functions, of small numbers.
Cell Moment(const plan::Aggregate& aggregate, const std::vector<Cell>& xs, const std::vector<Cell>& ys) {
  const bool sample = aggregate.function == AggregateFunction::kVarSamp ||
                      aggregate.function == AggregateFunction::kStddevSamp ||
                      aggregate.function == AggregateFunction::kCovarSamp;
  const auto n = static_cast<__int128>(xs.size());
  if (n < (sample ? 2 : 1)) return {};
  __int128 x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    x += xs[i].number;
    y += ys[i].number;
    xx += xs[i].number * xs[i].number;
    yy += ys[i].number * ys[i].number;
    xy += xs[i].number * ys[i].number;
  }
  const bool root = aggregate.function == AggregateFunction::kStddevPop ||
                    aggregate.function == AggregateFunction::kStddevSamp;
  const int scale_x = aggregate.argument.type.scale, scale_y = aggregate.second.type.scale;
  const __int128 of_x = n * xx - x * x, of_y = n * yy - y * y, both = n * xy - x * y;
  const auto real = [](long double value, int power) {
    const long double ten = std::pow(10.0L, std::abs(power));
    return Cell::Number(OrderedBits(static_cast<double>(power < 0 ? value / ten : value * ten)));
  };
  const auto rows = static_cast<long double>(n);
  const auto ratio = static_cast<long double>(both * both) / static_cast<long double>(of_x * of_y);
  switch (aggregate.function) {
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp:
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp:
      return Cell::Number(
          PackNumeric(*DecimalVariance(x, xx, scale_x, static_cast<int64_t>(n), sample, root)));
    case AggregateFunction::kCovarPop:
    case AggregateFunction::kCovarSamp:
      return real(both / rows / (n - sample), -scale_x - scale_y);
    // The first argument is the y of the line.
    case AggregateFunction::kRegrAvgX:
      return real(y / rows, -scale_y);
    case AggregateFunction::kRegrAvgY:
      return real(x / rows, -scale_x);
    case AggregateFunction::kRegrSxx:
      return real(of_y / rows, -2 * scale_y);
    case AggregateFunction::kRegrSyy:
      return real(of_x / rows, -2 * scale_x);
    case AggregateFunction::kRegrSxy:
      return real(both / rows, -scale_x - scale_y);
    case AggregateFunction::kRegrSlope:
      return of_y == 0 ? Cell() : real(static_cast<long double>(both) / of_y, scale_y - scale_x);
    case AggregateFunction::kRegrIntercept:
      return of_y == 0 ? Cell() : real(static_cast<long double>(x * of_y - y * both) / of_y / rows, -scale_x);
    case AggregateFunction::kRegrR2:
      return of_y == 0 ? Cell() : of_x == 0 ? real(1, 0) : real(ratio, 0);
    default:
      if (of_x == 0 || of_y == 0) return {};
      return real(both < 0 ? -std::sqrt(ratio) : std::sqrt(ratio), 0);
  }
}

Cell Aggregated(const plan::Aggregate& aggregate, std::span<const Tuple> rows) {
  if (aggregate.function == AggregateFunction::kCountRows) return Cell::Number(std::ssize(rows));
  std::vector<Cell> cells, others;
  const bool two = plan::ArgumentsOf(aggregate.function) > 1;
  for (const Tuple& row : rows) {
    const Cell& cell = row[static_cast<size_t>(aggregate.argument.column.column)];
    const Cell& other = two ? row[static_cast<size_t>(aggregate.second.column.column)] : cell;
    if (cell.null || other.null) continue;
    cells.push_back(cell);
    others.push_back(other);
  }
  if (aggregate.distinct) {
    const std::set<Cell> once(cells.begin(), cells.end());
    cells.assign(once.begin(), once.end());
    others = cells;
  }
  if (plan::HasMoments(aggregate.function)) return Moment(aggregate, cells, others);
  __int128 sum = 0;
  int64_t all = -1, any = 0, odd = 0;
  for (const Cell& cell : cells) {
    sum += cell.number;
    all &= static_cast<int64_t>(cell.number);
    any |= static_cast<int64_t>(cell.number);
    odd ^= static_cast<int64_t>(cell.number);
  }
  switch (aggregate.function) {
    case AggregateFunction::kCount:
      return Cell::Number(std::ssize(cells));
    case AggregateFunction::kCountDistinct:
      return Cell::Number(std::ssize(std::set<Cell>(cells.begin(), cells.end())));
    case AggregateFunction::kSum:
      return cells.empty() ? Cell() : Cell::Number(sum);
    case AggregateFunction::kAverage:
      return cells.empty() ? Cell()
                           : Cell::Number(PackNumeric(
                                 *DecimalAverage(sum, aggregate.argument.type.scale, std::ssize(cells))));
    case AggregateFunction::kBitAnd:
      return cells.empty() ? Cell() : Cell::Number(all);
    case AggregateFunction::kBitOr:
      return cells.empty() ? Cell() : Cell::Number(any);
    case AggregateFunction::kBitXor:
      return cells.empty() ? Cell() : Cell::Number(odd);
    case AggregateFunction::kMin:
    case AggregateFunction::kBoolAnd:
      return cells.empty() ? Cell() : *std::min_element(cells.begin(), cells.end());
    default:
      return cells.empty() ? Cell() : *std::max_element(cells.begin(), cells.end());
  }
}

}  // namespace

std::unique_ptr<const AggregatePlan> Aggregation::Plan(AggregateInput input) const {
  auto plan = AggregatePlan::Make({.group_by = keys,
                                   .aggregates = aggregates,
                                   .schema = schema,
                                   .meanings = meanings,
                                   .input = input,
                                   .page_bytes = RowLayout::kSmallPageBytes});
  EXPECT_TRUE(plan.ok()) << plan.status();
  NAM_CHECK(plan.ok(), "a plan of a test is right");
  return std::move(*plan);
}

plan::Aggregate MakeAggregate(AggregateFunction function, const plan::Schema& schema, uint32_t slot) {
  plan::Aggregate aggregate{
      .function = function, .argument = SlotExpr(schema, slot), .type = schema[slot].type};
  if (plan::ArgumentsOf(function) == 0) aggregate.argument = plan::Expr();
  if (plan::HasMoments(function)) aggregate.type = Type::Numeric();
  if (plan::ArgumentsOf(function) > 1) {
    aggregate.type = Type::Double();
    aggregate.second = aggregate.argument;
  }
  if (function == AggregateFunction::kAverage) {
    aggregate.type = Type::Numeric();
  } else if (function == AggregateFunction::kCountRows || function == AggregateFunction::kCount ||
             function == AggregateFunction::kCountDistinct) {
    aggregate.type = Type::Integer();
  }
  return aggregate;
}

namespace {

/// A slot of any type that groups and aggregates have. Sums of its values stay small.
plan::Slot RandomSlot(RandomStream& random) {
  plan::Slot slots[] = {
      {.type = Type::Bool(), .nullable = true, .bounds = {}},
      Bounded(Type::Integer(), -3, 4),
      Bounded(Type::Integer(), -1'000'000, 5'000'000),
      Bounded(Type::Integer(), INT64_MIN + 1, INT64_MAX),  // codes have room for NULL
      Bounded(Type::Decimal(2), -PowerOfTen(22), PowerOfTen(22)),
      Bounded(Type::Decimal(2), -12, 30),
      Bounded(Type::Date(), 8000, 9000),
      {.type = Type::String(), .nullable = true, .bounds = {}},
  };
  plan::Slot slot = slots[random.Below(std::size(slots))];
  slot.nullable = random.OneIn(2);
  return slot;
}

/// Whether products of its numbers stay small.
bool IsSmall(const plan::Slot& slot) {
  return slot.type.numeric() && slot.bounds.known && slot.bounds.high < 1000 && slot.bounds.low > -1000;
}

plan::Aggregate RandomAggregate(const plan::Schema& schema, uint32_t slot, RandomStream& random) {
  using Function = AggregateFunction;
  const Type& type = schema[slot].type;
  std::vector<Function> functions = {Function::kCountRows, Function::kCount, Function::kCountDistinct};
  const auto add = [&](std::initializer_list<Function> more) { functions.insert(functions.end(), more); };
  if (type == Type::Bool()) {
    add({Function::kBoolAnd, Function::kBoolOr});
  } else {
    add({Function::kMin, Function::kMax});
  }
  if (type.numeric()) add({Function::kSum, Function::kAverage});
  if (type == Type::Integer()) add({Function::kBitAnd, Function::kBitOr, Function::kBitXor});
  if (IsSmall(schema[slot])) {
    add({Function::kVarPop, Function::kVarSamp, Function::kStddevPop, Function::kStddevSamp,
         Function::kCovarPop, Function::kCovarSamp, Function::kCorr, Function::kRegrAvgX, Function::kRegrAvgY,
         Function::kRegrSxx, Function::kRegrSyy, Function::kRegrSxy, Function::kRegrSlope,
         Function::kRegrIntercept, Function::kRegrR2});
  }
  plan::Aggregate made = MakeAggregate(functions[random.Below(functions.size())], schema, slot);
  if (plan::ArgumentsOf(made.function) > 1) {
    for (uint32_t other = 0; other < schema.size(); ++other) {
      if (IsSmall(schema[other]) && random.OneIn(2)) made.second = SlotExpr(schema, other);
    }
  }
  const bool knows_distinct = plan::HasMoments(made.function)
                                  ? plan::ArgumentsOf(made.function) == 1
                                  : made.function == Function::kSum || made.function == Function::kAverage ||
                                        made.function == Function::kBitXor;
  made.distinct = knows_distinct && random.OneIn(2);
  return made;
}

}  // namespace

Aggregation RandomAggregation(RandomStream& random, size_t keys) {
  Aggregation made;
  for (size_t i = 0; i < 7; ++i) made.schema.push_back(RandomSlot(random));
  for (size_t i = 0; i < keys; ++i) made.keys.push_back(SlotExpr(made.schema, static_cast<uint32_t>(i)));
  for (uint64_t left = random.Below(5); left > 0; --left) {
    const auto slot = static_cast<uint32_t>(random.Below(made.schema.size()));
    made.aggregates.push_back(RandomAggregate(made.schema, slot, random));
  }
  return made;
}

std::vector<Tuple> Model(const Aggregation& aggregation, std::span<const Tuple> input) {
  std::map<Tuple, std::vector<Tuple>> groups;
  if (aggregation.keys.empty()) groups[{}] = {};
  for (const Tuple& row : input) {
    Tuple key;
    for (const plan::Expr& expr : aggregation.keys)
      key.push_back(row[static_cast<size_t>(expr.column.column)]);
    groups[key].push_back(row);
  }
  std::vector<Tuple> result;
  for (const auto& [key, rows] : groups) {
    Tuple& row = result.emplace_back(key);
    for (const plan::Aggregate& aggregate : aggregation.aggregates)
      row.push_back(Aggregated(aggregate, rows));
  }
  std::sort(result.begin(), result.end());
  return result;
}

absl::StatusOr<std::vector<Tuple>> ReadFinal(StepDriver& driver, AggregateSink& sink) {
  TaskContext context = driver.NewContext();
  AggregateSource source(sink);
  const std::unique_ptr<SourceTask> task = source.NewTask(context);
  const size_t columns = sink.plan().final_schema().size();
  Chunk chunk(columns, 0);
  std::vector<Tuple> result;
  while (true) {
    const Step step = task->Next(context, chunk);
    if (step == Step::kFailed) return context.error();
    if (step == Step::kDone) break;
    for (Tuple& row : TuplesOf(chunk, columns)) result.push_back(std::move(row));
  }
  std::sort(result.begin(), result.end());
  return result;
}

absl::StatusOr<std::vector<std::byte>> PagesOf(StepDriver& driver, AggregateSink& sink, uint64_t attempt) {
  TaskContext context = driver.NewContext();
  std::vector<std::span<const std::byte>> pages;
  NAM_RETURN_IF_ERROR(sink.Store(context, attempt, pages));
  std::vector<std::byte> stored;
  for (const std::span<const std::byte> page : pages) stored.insert(stored.end(), page.begin(), page.end());
  return stored;
}

absl::StatusOr<std::vector<Tuple>> Distributed(const Aggregation& aggregation, StepDriver& driver,
                                               std::span<const std::vector<Tuple>> servers, int tasks) {
  const std::unique_ptr<const AggregatePlan> merging = aggregation.Plan(AggregateInput::kGroups);
  AggregateSink merged(*merging, driver.budget());
  StoredGroups first(merged, driver.budget()), second(merged, driver.budget());
  TaskContext context = driver.NewContext();
  for (size_t server = 0; server < servers.size(); ++server) {
    const std::unique_ptr<const AggregatePlan> plan = aggregation.Plan();
    AggregateSink sink(*plan, driver.budget());
    NAM_RETURN_IF_ERROR(driver.RunInto(aggregation.schema, servers[server], sink, tasks));
    NAM_ASSIGN_OR_RETURN(const std::vector<std::byte> stored, PagesOf(driver, sink, 100 + server));
    NAM_RETURN_IF_ERROR((server % 2 == 0 ? first : second).Add(context, stored, 100 + server));
  }
  const uint32_t parts = merged.CombineParts();
  for (uint32_t part = 0; part < parts; ++part) NAM_RETURN_IF_ERROR(merged.Combine(context, part));
  return ReadFinal(driver, merged);
}

}  // namespace nam::execution
