#include "execution/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "execution/limit_step.h"
#include "execution/series_step.h"
#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "plan/slot_of.h"
#include "tests/execution/step_driver.h"
#include "types/interval.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

/// Columns whose tuples CellOf reads unchanged: fields of numbers of 64 bits have bounds.
plan::Schema ASchema(size_t columns, RandomStream& random) {
  plan::Schema schema = RandomSchema(columns, random);
  for (plan::Slot& slot : schema) {
    if (PhysicalOf(slot.type) == Physical::kInt64 && !slot.bounds.known) slot.bounds = {8000, 9000, true};
  }
  return schema;
}

TEST(ExpandTest, EachTupleLeavesOnceForEachSet) {
  for (const uint64_t seed : TestSeeds(20)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const plan::Schema schema = ASchema(1 + random.Below(5), random);
    plan::ExpandStep expand;
    for (uint32_t slot = 0; slot < schema.size(); ++slot) {
      if (random.OneIn(2)) expand.keys.push_back(slot);
    }
    for (uint64_t sets = 1 + random.Below(5); sets > 0; --sets) {
      std::vector<uint32_t>& set = expand.sets.emplace_back();
      for (uint32_t k = 0; k < expand.keys.size(); ++k) {
        if (random.OneIn(2)) set.push_back(k);
      }
    }
    const size_t sizes[] = {0, 1, 1025, 11'000};
    const std::vector<Tuple> input = RandomTuples(schema, sizes[random.Below(4)], 50, random);
    std::vector<Tuple> expected;
    for (const Tuple& tuple : input) {
      for (size_t s = 0; s < expand.sets.size(); ++s) {
        Tuple out = tuple;
        out.resize(schema.size() + expand.keys.size());
        for (const uint32_t place : expand.sets[s]) out[schema.size() + place] = tuple[expand.keys[place]];
        out.push_back(Cell::Number(static_cast<int64_t>(s)));
        expected.push_back(std::move(out));
      }
    }
    ExpandOperator step(expand, schema);
    StepOperator* const steps[] = {&step};
    const ChunkShape shapes[] = {{schema.size() + expand.keys.size() + 1, 0}};
    std::vector<Tuple> actual = driver.Run(schema, input, steps, shapes).value();
    std::sort(actual.begin(), actual.end());
    std::sort(expected.begin(), expected.end());
    ExpectTuples(actual, expected);
  }
}

std::vector<Tuple> RunSeries(StepDriver& driver, const plan::SeriesStep& series, const plan::Schema& schema,
                             const std::vector<Tuple>& input) {
  auto step = SeriesOperator::Make(series, schema, static_cast<uint32_t>(schema.size())).value();
  StepOperator* const steps[] = {step.get()};
  const std::unique_ptr<Chunk> shape = step->NewChunk();
  const ChunkShape shapes[] = {{schema.size() + 1, shape->row_sets()}};
  return driver.Run(schema, input, steps, shapes).value();
}

TEST(SeriesTest, EachTupleLeavesOnceForEachNumber) {
  for (const uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    plan::Schema schema = ASchema(1 + random.Below(4), random);
    // Few rows with long series, or many with short ones.
    const int64_t far = random.OneIn(2) ? 9000 : 4;
    const auto ends = static_cast<uint32_t>(schema.size());
    schema.push_back({Type::Integer(), true, {-far, far, true}});
    schema.push_back({Type::Integer(), true, {-far, far, true}});
    schema.push_back({Type::Integer(), true, {-3, 3, true}});
    std::vector<Tuple> input = RandomTuples(schema, random.Below(far > 4 ? 30 : 5000), 50, random);
    std::vector<Tuple> expected;
    for (Tuple& tuple : input) {
      for (uint32_t end = ends; end < ends + 2; ++end) {
        if (!tuple[end].null)
          tuple[end] =
              Cell::Number(static_cast<int64_t>(random.Below(2 * static_cast<uint64_t>(far) + 1)) - far);
      }
      const int64_t by[] = {-3, -1, 1, 2, 3};
      if (!tuple[ends + 2].null) tuple[ends + 2] = Cell::Number(by[random.Below(5)]);
      if (tuple[ends].null || tuple[ends + 1].null || tuple[ends + 2].null) continue;
      const __int128 last = tuple[ends + 1].number, step = tuple[ends + 2].number;
      for (__int128 n = tuple[ends].number; step > 0 ? n <= last : n >= last; n += step) {
        expected.push_back(tuple);
        expected.back().push_back(Cell::Number(n));
      }
    }
    const plan::SeriesStep series{plan::SlotExpr(schema, ends), plan::SlotExpr(schema, ends + 1),
                                  plan::SlotExpr(schema, ends + 2)};
    ExpectTuples(RunSeries(driver, series, schema, input), expected);
  }
}

TEST(SeriesTest, StepsOfZeroAndEndsOfTheCalendarAreErrors) {
  const plan::Schema schema = {{Type::Integer(), true, {-9, 9, true}}};
  StepDriver driver(1);
  const plan::Expr zero = plan::MakeLiteral(Value::Integer(0), -1);
  const auto error = [&](const plan::SeriesStep& series, const Tuple& tuple) {
    auto step = SeriesOperator::Make(series, schema, 1).value();
    StepOperator* const steps[] = {step.get()};
    const ChunkShape shapes[] = {{2, step->NewChunk()->row_sets()}};
    const std::vector<Tuple> input = {tuple};
    const auto run = driver.Run(schema, input, steps, shapes);
    return run.ok() ? std::string() : SqlErrorOf(run.status())->sqlstate;
  };
  EXPECT_EQ(error({plan::SlotExpr(schema, 0), plan::SlotExpr(schema, 0), zero}, {Cell::Number(3)}), "22023");
  EXPECT_EQ(error({plan::SlotExpr(schema, 0), plan::SlotExpr(schema, 0), zero}, {Cell{}}), "")
      << "a NULL comes first";
  const plan::Expr last = plan::MakeLiteral(Value::Timestamp(253402214400000000), -1);  // 9999-12-31
  EXPECT_EQ(error({last, last, plan::MakeLiteral(Value::Span({.days = 1}), -1)}, {Cell::Number(3)}), "22008");
}

TEST(LimitTest, TiesOfTheLastTupleFlowOn) {
  for (const uint64_t seed : TestSeeds(60)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    plan::Schema schema = ASchema(1 + random.Below(3), random);
    const auto key = static_cast<uint32_t>(schema.size());
    schema.push_back({Type::Integer(), true, {0, 5000, true}});
    schema.push_back({Type::String(), true, {}});
    // Keys in runs, as sorted rows have them: short runs, and runs longer than a chunk.
    std::vector<Tuple> input = RandomTuples(schema, random.Below(9000), 50, random);
    const uint64_t run = random.OneIn(2) ? 3 : 3000;
    int64_t number = 0;
    uint64_t left = 0;
    Cell text;
    for (Tuple& tuple : input) {
      if (left == 0) {
        left = 1 + random.Below(run);
        ++number;
        text = random.OneIn(4) ? Cell{} : Cell::Text("t" + std::to_string(number));
      }
      --left;
      tuple[key] = Cell::Number(number / 2);
      tuple[key + 1] = text;
    }
    plan::LimitStep limit;
    limit.rows = static_cast<int64_t>(random.Below(input.size() + 10));
    limit.offset = random.OneIn(2) ? 0 : static_cast<int64_t>(random.Below(input.size() + 10));
    if (!random.OneIn(5)) limit.ties = {key, key + 1};
    std::vector<Tuple> expected;
    const size_t end = static_cast<size_t>(limit.rows + limit.offset);
    for (size_t i = static_cast<size_t>(limit.offset); i < input.size(); ++i) {
      const bool tie = limit.rows > 0 && !limit.ties.empty() && i >= end &&
                       input[i][key] == input[end - 1][key] && input[i][key + 1] == input[end - 1][key + 1];
      if (i < end || tie) expected.push_back(input[i]);
    }
    auto step = LimitOperator::Make(limit, schema).value();
    StepOperator* const steps[] = {step.get()};
    const ChunkShape shapes[] = {{schema.size(), 0}};
    ExpectTuples(driver.Run(schema, input, steps, shapes).value(), expected);
  }
}

TEST(RepeatTest, EachTupleLeavesAsOftenAsItSays) {
  for (const uint64_t seed : TestSeeds(30)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    plan::Schema schema = ASchema(1 + random.Below(4), random);
    const auto times = static_cast<uint32_t>(random.Below(schema.size() + 1));
    // Few rows many times, or many rows a few times.
    const bool few = random.OneIn(2);
    schema.insert(schema.begin() + times, {Type::Integer(), true, {-3, few ? 6000 : 3, true}});
    std::vector<Tuple> input =
        RandomTuples(schema, few ? random.Below(20) : random.Below(12'000), 50, random);
    std::vector<Tuple> expected;
    for (Tuple& tuple : input) {
      const int64_t most = few ? 6000 : 3;
      if (!tuple[times].null)
        tuple[times] = Cell::Number(static_cast<int64_t>(random.Below(static_cast<uint64_t>(most) + 4)) - 3);
      for (__int128 n = tuple[times].null ? 0 : tuple[times].number; n > 0; --n) expected.push_back(tuple);
    }
    auto step = RepeatOperator::Make({times}, schema, static_cast<uint32_t>(schema.size())).value();
    StepOperator* const steps[] = {step.get()};
    const std::unique_ptr<Chunk> shape = step->NewChunk();
    const ChunkShape shapes[] = {{schema.size(), shape->row_sets()}};
    // In order, copies of one tuple together.
    ExpectTuples(driver.Run(schema, input, steps, shapes).value(), expected);
  }
}

}  // namespace
}  // namespace nam::execution
