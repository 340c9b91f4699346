#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "execution/aggregate/aggregate_sink.h"
#include "execution/rows/page_source.h"
#include "execution/rows/values_source.h"
#include "execution/sort/result_sink.h"
#include "execution/sort/sorter.h"
#include "execution/steps.h"
#include "execution/window/window_source.h"
#include "plan/flow.h"
#include "plan/slot_of.h"
#include "tests/execution/step_driver.h"

/// SQL constructs that the engine has no operator for, composed of other operators, as plans are to do it.
namespace nam::execution {
namespace {

using plan::AggregateFunction;
using plan::Expr;
using plan::Op;

const plan::Schema kRows = {{Type::Integer(), true, {0, 40, true}}, {Type::String(), true, {}}};

Expr Integer(int64_t n) {
  Expr expr;
  expr.type = Type::Integer();
  expr.literal = Value::Integer(n);
  return expr;
}
Expr Node(Op op, Type type, std::vector<Expr> children) {
  Expr expr;
  expr.op = op;
  expr.type = type;
  expr.children = std::move(children);
  return expr;
}
/// a if condition, else b.
Expr If(Expr condition, Expr a, Expr b) {
  const Type type = a.type;
  return Node(Op::kCase, type, {std::move(condition), std::move(a), std::move(b)});
}

/// Schemas and steps of a pipeline behind a source.
class Steps {
 public:
  explicit Steps(plan::Schema schema, size_t row_sets) : schema_(std::move(schema)), row_sets_(row_sets) {
    chunks_.push_back(std::make_unique<Chunk>(schema_.size(), row_sets));
  }
  const plan::Schema& schema() const { return schema_; }
  void Project(const std::vector<Expr>& outputs) {
    Add(std::make_unique<ProjectOperator>(Program::Compile(outputs, schema_).value()),
        plan::ProjectStep{outputs}, 0);
  }
  void Filter(const Expr& condition) {
    Add(std::make_unique<FilterOperator>(Program::Compile({&condition, 1}, schema_).value()),
        plan::FilterStep{}, 0);
  }
  void Repeat(uint32_t times) {
    auto step = RepeatOperator::Make({times}, schema_, static_cast<uint32_t>(schema_.size())).value();
    const size_t row_sets = step->NewChunk()->row_sets();
    Add(std::move(step), plan::RepeatStep{times}, row_sets);
  }
  void Expand(const plan::ExpandStep& expand) {
    Add(std::make_unique<ExpandOperator>(expand, schema_), expand, 0);
  }

  /// Runs one task into the sink.
  absl::Status Run(StepDriver& driver, Source& source, std::unique_ptr<SinkTask> sink) {
    TaskContext context = driver.NewContext();
    std::vector<std::unique_ptr<StepTask>> tasks;
    for (const auto& step : steps_) tasks.push_back(Checked(step->NewTask(context)));
    PipelineTask task(source.NewTask(context), std::move(tasks), std::move(sink), std::move(chunks_));
    return RunToEnd(task, context);
  }
  absl::StatusOr<std::vector<Tuple>> Read(StepDriver& driver, Source& source) {
    std::vector<Tuple> out;
    auto sink = std::make_unique<TupleSink>(schema_.size(), driver.random().Next(), out);
    if (absl::Status status = Run(driver, source, std::move(sink)); !status.ok()) return status;
    return out;
  }

 private:
  void Add(std::unique_ptr<StepOperator> step, const plan::StepNode& node, size_t row_sets) {
    schema_ = plan::StepOutput({}, node, schema_).value();
    steps_.push_back(std::move(step));
    chunks_.push_back(std::make_unique<Chunk>(schema_.size(), row_sets));
  }
  plan::Schema schema_;
  size_t row_sets_;
  std::vector<std::unique_ptr<StepOperator>> steps_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

std::vector<Tuple> Sorted(std::vector<Tuple> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// A source of some tuples, for one task.
class Tuples final : public Source {
 public:
  Tuples(const plan::Schema& schema, std::vector<Tuple> tuples, uint64_t seed)
      : schema_(schema), tuples_(std::move(tuples)), seed_(seed) {}
  std::unique_ptr<SourceTask> NewTask(TaskContext&) override {
    return std::make_unique<TupleSource>(schema_, tuples_, seed_);
  }

 private:
  const plan::Schema schema_;
  const std::vector<Tuple> tuples_;
  const uint64_t seed_;
};

TEST(CompositionTest, ValuesAreRows) {
  StepDriver driver(1);
  plan::Schema schema = kRows;
  schema.push_back({Type::Bool(), true, {}});
  const std::vector<Tuple> expected = RandomTuples(schema, 2'500, 300, driver.random());
  std::vector<std::vector<Value>> rows;
  for (const Tuple& tuple : expected) {
    std::vector<Value>& row = rows.emplace_back();
    for (size_t i = 0; i < schema.size(); ++i)
      row.push_back({schema[i].type, tuple[i].null, tuple[i].number, tuple[i].text});
  }
  ValuesSource source(rows, schema);
  EXPECT_EQ(Steps(schema, 0).Read(driver, source).value(), expected);
  ValuesSource again(rows, schema);
  Steps steps(schema, 0);
  steps.Filter(Node(Op::kEqual, Type::Bool(), {plan::SlotExpr(schema, 0), Integer(7)}));
  const auto sevens =
      std::count_if(expected.begin(), expected.end(), [](const Tuple& t) { return t[0] == Cell::Number(7); });
  EXPECT_EQ(std::ssize(steps.Read(driver, again).value()), sevens);
}

/// UNION ALL: the tasks of several pipelines, one after the other, into one sink, which is combined at the
/// end.
TEST(CompositionTest, SeveralPipelinesFeedOneSink) {
  StepDriver driver(1);
  const std::vector<Tuple> a = RandomTuples(kRows, 11'000, 300, driver.random());
  const std::vector<Tuple> b = RandomTuples(kRows, 3'000, 300, driver.random());
  const auto plan = RowsPlan::Make(kRows).value();
  auto result = ResultSink::Make(*plan, std::nullopt, driver.budget()).value();
  auto sorter =
      Sorter::Make(*plan, std::vector<OrderSlot>{{0, false, false}, {1, false, false}}, driver.budget())
          .value();
  for (const std::vector<Tuple>* rows : {&a, &b}) {
    for (Sink* sink : {static_cast<Sink*>(result.get()), static_cast<Sink*>(sorter.get())}) {
      Tuples source(kRows, *rows, driver.random().Next());
      TaskContext context = driver.NewContext();
      ASSERT_TRUE(Steps(kRows, kRows.size()).Run(driver, source, sink->NewTask(context)).ok());
    }
  }
  // The pipeline that owns the sinks has no rows of its own.
  TaskContext context = driver.NewContext();
  ValuesSource none({}, kRows);
  ASSERT_TRUE(Steps(kRows, 0).Run(driver, none, sorter->NewTask(context)).ok());
  const uint32_t parts = sorter->CombineParts();
  for (uint32_t part = 0; part < parts; ++part) ASSERT_TRUE(sorter->Combine(context, part).ok());
  std::vector<Tuple> expected = a;
  expected.insert(expected.end(), b.begin(), b.end());
  const std::unique_ptr<Source> pages = result->RowsAtRest(false);
  EXPECT_EQ(Sorted(Steps(kRows, 0).Read(driver, *pages).value()), Sorted(expected));
  OrderedSource in_order(sorter->rows());
  EXPECT_EQ(Sorted(Steps(kRows, 0).Read(driver, in_order).value()), Sorted(expected));
}

/// INTERSECT and EXCEPT, with and without ALL: both inputs get counts, 1, 0 and 0, 1; these are summed by
/// row, and the sums decide how often the row is repeated.
TEST(CompositionTest, RowsOfTwoInputsAreCounted) {
  for (const bool intersect : {false, true}) {
    for (const bool all : {false, true}) {
      StepDriver driver(1 + intersect + 2 * all);
      const std::vector<Tuple> inputs[] = {RandomTuples(kRows, 9'000, 40, driver.random()),
                                           RandomTuples(kRows, 8'000, 40, driver.random())};
      plan::Schema tagged = kRows;
      for (int i = 0; i < 2; ++i) tagged.push_back({Type::Integer(), false, {0, 1, true}});
      std::vector<Expr> keys = {plan::SlotExpr(tagged, 0), plan::SlotExpr(tagged, 1)};
      std::vector<plan::Aggregate> counts = {
          {AggregateFunction::kSum, plan::SlotExpr(tagged, 2), Type::Integer()},
          {AggregateFunction::kSum, plan::SlotExpr(tagged, 3), Type::Integer()}};
      const auto plan =
          AggregatePlan::Make({.group_by = keys, .aggregates = counts, .schema = tagged, .meanings = {}})
              .value();
      AggregateSink sink(*plan, driver.budget());
      for (int i = 0; i < 2; ++i) {
        Tuples source(kRows, inputs[i], driver.random().Next());
        Steps steps(kRows, kRows.size());
        steps.Project({plan::SlotExpr(kRows, 0), plan::SlotExpr(kRows, 1), Integer(i == 0), Integer(i == 1)});
        TaskContext context = driver.NewContext();
        ASSERT_TRUE(steps.Run(driver, source, sink.NewTask(context)).ok());
      }
      TaskContext context = driver.NewContext();
      const uint32_t parts = sink.CombineParts();
      for (uint32_t part = 0; part < parts; ++part) ASSERT_TRUE(sink.Combine(context, part).ok());

      AggregateSource groups(sink);
      Steps steps(plan->final_schema(), 0);
      const Expr left = plan::SlotExpr(steps.schema(), 2), right = plan::SlotExpr(steps.schema(), 3);
      const Expr less = Node(Op::kLess, Type::Bool(), {left, right});
      Expr times;
      if (all) {
        times = intersect ? If(less, left, right) : Node(Op::kSubtract, Type::Integer(), {left, right});
      } else {
        const Expr in_left = Node(Op::kGreater, Type::Bool(), {left, Integer(0)});
        const Expr in_right = Node(intersect ? Op::kGreater : Op::kEqual, Type::Bool(), {right, Integer(0)});
        times = If(Node(Op::kAnd, Type::Bool(), {in_left, in_right}), Integer(1), Integer(0));
      }
      steps.Project({plan::SlotExpr(steps.schema(), 0), plan::SlotExpr(steps.schema(), 1), times});
      steps.Repeat(2);
      steps.Project({plan::SlotExpr(steps.schema(), 0), plan::SlotExpr(steps.schema(), 1)});

      std::map<Tuple, std::pair<int, int>> model;
      for (const Tuple& row : inputs[0]) ++model[row].first;
      for (const Tuple& row : inputs[1]) ++model[row].second;
      std::vector<Tuple> expected;
      for (const auto& [row, n] : model) {
        const int of_all = intersect ? std::min(n.first, n.second) : n.first - n.second;
        const int once = n.first > 0 && (n.second > 0) == intersect;
        for (int i = 0; i < (all ? of_all : once); ++i) expected.push_back(row);
      }
      EXPECT_GT(expected.size(), 20u);
      EXPECT_EQ(Sorted(steps.Read(driver, groups).value()), Sorted(expected));
    }
  }
}

/// DISTINCT ON: the row that has number 1 among those of its key.
TEST(CompositionTest, TheFirstRowOfEachKeyIsNumberedOne) {
  StepDriver driver(1);
  plan::Schema schema = kRows;
  schema.push_back({Type::Integer(), false, {0, 1'000'000, true}});
  std::vector<Tuple> input = RandomTuples(schema, 12'000, 60, driver.random());
  for (size_t i = 0; i < input.size(); ++i)
    input[i][2] = Cell::Number(static_cast<int64_t>(driver.random().Below(900'000)));
  const auto plan = RowsPlan::Make(schema).value();
  const std::vector<OrderSlot> on = {{0, false, false}, {1, false, false}}, by = {{2, true, false}};
  auto sorter = Sorter::Make(*plan, std::vector<OrderSlot>{on[0], on[1], by[0]}, driver.budget()).value();
  ASSERT_TRUE(driver.RunInto(schema, input, *sorter, 3).ok());
  auto window =
      WindowSource::Make(sorter->rows(),
                         {.partition = on,
                          .order = by,
                          .calls = {{plan::WindowFunction::kRowNumber, {}, {}, {}, Type::Integer()}}})
          .value();
  Steps steps(window->schema(), 0);
  steps.Filter(Node(Op::kEqual, Type::Bool(), {plan::SlotExpr(steps.schema(), 3), Integer(1)}));
  steps.Project({plan::SlotExpr(steps.schema(), 0), plan::SlotExpr(steps.schema(), 1),
                 plan::SlotExpr(steps.schema(), 2)});
  std::map<Tuple, Tuple> model;
  for (const Tuple& row : input) {
    const auto [at, added] = model.try_emplace({row[0], row[1]}, row);
    if (!added && at->second[2] < row[2]) at->second = row;
  }
  std::vector<Tuple> expected;
  for (const auto& [key, row] : model) expected.push_back(row);
  EXPECT_EQ(Sorted(steps.Read(driver, *window).value()), Sorted(expected));
}

/// GROUPING SETS: rows once for each set, grouped by the set and the keys that it has. FILTER: a value that
/// is NULL where the condition does not hold.
TEST(CompositionTest, SetsGroupByTheKeysThatTheyHave) {
  for (const size_t rows : {size_t{0}, size_t{11'000}}) {
    StepDriver driver(rows + 1);
    plan::Schema schema = kRows;
    schema.push_back({Type::Integer(), true, {-9, 9, true}});
    const std::vector<Tuple> input = RandomTuples(schema, rows, 30, driver.random());
    const plan::ExpandStep expand{{0, 1}, {{0, 1}, {1}, {}, {1}}};
    Tuples source(schema, input, driver.random().Next());
    Steps steps(schema, schema.size());
    steps.Expand(expand);
    const plan::Schema expanded = steps.schema();
    std::vector<Expr> keys = {plan::SlotExpr(expanded, 5), plan::SlotExpr(expanded, 3),
                              plan::SlotExpr(expanded, 4)};
    Expr null = Integer(0);
    null.literal = Value::Null(Type::Integer());
    const Expr positive = If(Node(Op::kGreater, Type::Bool(), {plan::SlotExpr(expanded, 2), Integer(0)}),
                             plan::SlotExpr(expanded, 2), null);
    std::vector<plan::Aggregate> aggregates = {{AggregateFunction::kCountRows, {}, Type::Integer()},
                                               {AggregateFunction::kCount, positive, Type::Integer()}};
    const auto plan =
        AggregatePlan::Make({.group_by = keys, .aggregates = aggregates, .schema = expanded, .meanings = {}})
            .value();
    AggregateSink sink(*plan, driver.budget());
    TaskContext context = driver.NewContext();
    ASSERT_TRUE(steps.Run(driver, source, sink.NewTask(context)).ok());
    ASSERT_EQ(sink.CombineParts(), 0u);
    const uint32_t totals[] = {2};
    AggregateSource groups(sink, totals);

    std::map<Tuple, Tuple> model;
    const Cell zero = Cell::Number(0);
    if (rows == 0) model[{Cell::Number(2), Cell(), Cell()}] = {zero, zero};
    for (const Tuple& row : input) {
      for (size_t s = 0; s < expand.sets.size(); ++s) {
        Tuple key = {Cell::Number(static_cast<int64_t>(s)), Cell(), Cell()};
        for (const uint32_t place : expand.sets[s]) key[1 + place] = row[place];
        Tuple& counts = model.try_emplace(key, Tuple{zero, zero}).first->second;
        counts[0].number += 1;
        counts[1].number += !row[2].null && row[2].number > 0;
      }
    }
    std::vector<Tuple> expected;
    for (const auto& [key, counts] : model) {
      expected.push_back(key);
      expected.back().insert(expected.back().end(), counts.begin(), counts.end());
    }
    EXPECT_EQ(Sorted(Steps(plan->final_schema(), 0).Read(driver, groups).value()), Sorted(expected));
  }
}

/// string_agg with an order: a window over whole groups, whose first row is kept.
TEST(CompositionTest, TextsOfAGroupAreJoinedInTheirOrder) {
  StepDriver driver(1);
  plan::Schema schema = kRows;
  schema.push_back({Type::String(), false, {}});
  std::vector<Tuple> input = RandomTuples(schema, 12'000, 3000, driver.random());
  for (Tuple& row : input) row[2] = Cell::Text(", ");
  const auto plan = RowsPlan::Make(schema).value();
  const std::vector<OrderSlot> by = {{0, false, false}}, order = {{1, true, true}};
  auto sorter = Sorter::Make(*plan, std::vector<OrderSlot>{by[0], order[0]}, driver.budget()).value();
  ASSERT_TRUE(driver.RunInto(schema, input, *sorter, 2).ok());
  plan::WindowCall texts{
      plan::WindowFunction::kAggregate, AggregateFunction::kStringAggregate, {1, 2}, {}, Type::String()};
  texts.frame.end.kind = plan::FrameBound::Kind::kUnboundedFollowing;
  plan::WindowCall count{
      plan::WindowFunction::kAggregate, AggregateFunction::kCountRows, {}, texts.frame, Type::Integer()};
  auto window =
      WindowSource::Make(
          sorter->rows(),
          {.partition = by,
           .order = order,
           .calls = {{plan::WindowFunction::kRowNumber, {}, {}, {}, Type::Integer()}, texts, count}})
          .value();
  Steps steps(window->schema(), 0);
  steps.Filter(Node(Op::kEqual, Type::Bool(), {plan::SlotExpr(steps.schema(), 3), Integer(1)}));
  steps.Project({plan::SlotExpr(steps.schema(), 0), plan::SlotExpr(steps.schema(), 4),
                 plan::SlotExpr(steps.schema(), 5)});
  std::map<Cell, std::vector<Cell>> groups;
  for (const Tuple& row : input) groups[row[0]].push_back(row[1]);
  std::vector<Tuple> expected;
  for (auto& [key, cells] : groups) {
    std::sort(cells.rbegin(), cells.rend());  // NULLs are greatest here, and skipped
    Cell text;
    for (const Cell& cell : cells) {
      if (cell.null) continue;
      text = Cell::Text(text.null ? cell.text : text.text + ", " + cell.text);
    }
    expected.push_back({key, text, Cell::Number(std::ssize(cells))});
  }
  EXPECT_EQ(Sorted(steps.Read(driver, *window).value()), Sorted(expected));
}

}  // namespace
}  // namespace nam::execution
