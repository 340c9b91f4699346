#include "execution/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/flow.h"
#include "tests/execution/step_driver.h"

namespace nam::execution {
namespace {

/// Columns whose tuples CellOf reads as they were: fields of numbers of 64 bits have bounds.
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
