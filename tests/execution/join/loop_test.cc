#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "execution/join/probe.h"
#include "plan/expression.h"
#include "plan/slot_of.h"
#include "tests/execution/join/random_join.h"
#include "tests/execution/step_driver.h"
#include "types/sql_error.h"

/// Joins without keys, and IN's comparisons beside keys, compared with nested loops over the same tuples.
namespace nam::execution {
namespace {

using plan::JoinKind;
using plan::Op;
using testing::kAllKinds;

plan::Expr Binary(Op op, Type type, plan::Expr a, plan::Expr b) {
  plan::Expr expr;
  expr.op = op;
  expr.type = type;
  expr.children = {std::move(a), std::move(b)};
  return expr;
}
plan::Expr Integer(int64_t n) {
  plan::Expr expr;
  expr.type = Type::Integer();
  expr.literal = Value::Integer(n);
  return expr;
}
std::unique_ptr<const Program> Compiled(const std::vector<plan::Expr>& exprs, const plan::Schema& schema) {
  auto program = Program::Compile(exprs, schema);
  NAM_CHECK(program.ok());
  return *std::move(program);
}

/// Both sides: a number a, a number b, a text. A band a ≤ a' ≤ a + width; IN compares (b, text).
struct Loop {
  JoinKind kind = JoinKind::kInner;
  std::optional<int64_t> band;  // its width
  bool compares = false;
  bool keyed = false;  // a = a' is a key, and there is no band
  plan::Schema schema = {{Type::Integer(), true, {0, 400, true}},
                         {Type::Integer(), true, {-5'000'000'000, 5'000'000'000, true}},
                         {Type::String(), true, {}}};
  std::vector<Tuple> probe, build;

  bool Matches(const Tuple& p, const Tuple& b) const {
    if (!band && !keyed) return true;
    if (p[0].null || b[0].null) return false;
    if (keyed) return p[0] == b[0];
    return p[0].number <= b[0].number && b[0].number <= p[0].number + *band;
  }
  /// nullopt: NULL.
  static std::optional<bool> Compared(const Tuple& p, const Tuple& b) {
    bool unsure = false;
    for (size_t i = 1; i < 3; ++i) {
      if (p[i].null || b[i].null) {
        unsure = true;
      } else if (p[i] != b[i]) {
        return false;
      }
    }
    return unsure ? std::nullopt : std::optional(true);
  }
  std::optional<std::vector<Tuple>> Expected() const;
};

std::optional<std::vector<Tuple>> Loop::Expected() const {
  std::vector<Tuple> out;
  std::vector<bool> build_matched(build.size());
  const auto both = [&](const Tuple* p, const Tuple* b) {
    Tuple tuple = p == nullptr ? Tuple(3) : *p;
    for (size_t i = 0; i < 3; ++i) tuple.push_back(b == nullptr ? Cell() : (*b)[i]);
    out.push_back(std::move(tuple));
  };
  for (const Tuple& p : probe) {
    size_t matches = 0;
    bool unsure = false;
    for (size_t i = 0; i < build.size(); ++i) {
      if (!Matches(p, build[i])) continue;
      const std::optional<bool> compared = compares ? Compared(p, build[i]) : true;
      unsure |= !compared.has_value();
      if (compared != true) continue;
      ++matches;
      build_matched[i] = true;
      if (kind <= JoinKind::kFull || kind == JoinKind::kSingle) both(&p, &build[i]);
    }
    if (kind == JoinKind::kSingle && matches > 1) return std::nullopt;
    const bool alone =
        matches == 0 && (kind == JoinKind::kLeft || kind == JoinKind::kFull || kind == JoinKind::kSingle);
    if (alone) both(&p, nullptr);
    const bool own = (kind == JoinKind::kSemi && matches > 0) || (kind == JoinKind::kAnti && matches == 0) ||
                     (kind == JoinKind::kNullAwareAnti && matches == 0 && !unsure) || kind == JoinKind::kMark;
    if (own) out.push_back(p);
    if (kind == JoinKind::kMark)
      out.back().push_back(matches > 0 ? Cell::Number(1) : unsure ? Cell() : Cell::Number(0));
  }
  if (kind != JoinKind::kRight && kind != JoinKind::kFull) return out;
  for (size_t i = 0; i < build.size(); ++i) {
    if (!build_matched[i]) both(nullptr, &build[i]);
  }
  return out;
}

/// Counts the calls of a step's tasks.
class CountedStep final : public StepOperator {
 public:
  CountedStep(StepOperator& step, size_t& calls) : step_(step), calls_(calls) {}
  std::unique_ptr<StepTask> NewTask(TaskContext& context) override {
    return std::make_unique<Task>(step_.NewTask(context), calls_);
  }

 private:
  class Task final : public StepTask {
   public:
    Task(std::unique_ptr<StepTask> step, size_t& calls) : step_(std::move(step)), calls_(calls) {}
    Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
      ++calls_;
      return step_->Push(context, in, out);
    }
    Step Drain(TaskContext& context, Chunk& out) override { return step_->Drain(context, out); }

   private:
    std::unique_ptr<StepTask> step_;
    size_t& calls_;
  };
  StepOperator& step_;
  size_t& calls_;
};

/// The engine's result for the loop.
absl::StatusOr<std::vector<Tuple>> Joined(const Loop& loop, StepDriver& driver, size_t* calls = nullptr) {
  plan::Schema pairs = loop.schema;
  pairs.insert(pairs.end(), loop.schema.begin(), loop.schema.end());
  std::vector<plan::Expr> conditions, compared, build_outputs;
  if (loop.band) {
    conditions.push_back(
        Binary(Op::kLessEqual, Type::Bool(), plan::SlotExpr(pairs, 0), plan::SlotExpr(pairs, 3)));
    conditions.push_back(
        Binary(Op::kLessEqual, Type::Bool(), plan::SlotExpr(pairs, 3),
               Binary(Op::kAdd, Type::Integer(), plan::SlotExpr(pairs, 0), Integer(*loop.band))));
  }
  for (uint32_t i = 1; i < 3; ++i)
    compared.push_back(
        Binary(Op::kEqual, Type::Bool(), plan::SlotExpr(pairs, i), plan::SlotExpr(pairs, 3 + i)));
  plan::Schema at_rest;
  if (loop.keyed) at_rest.push_back(loop.schema[0]), build_outputs.push_back(plan::SlotExpr(loop.schema, 0));
  for (uint32_t i = 0; i < 3; ++i)
    at_rest.push_back(loop.schema[i]), build_outputs.push_back(plan::SlotExpr(loop.schema, i));
  const auto program = Compiled(build_outputs, loop.schema),
             keys = Compiled({plan::SlotExpr(loop.schema, 0)}, loop.schema);
  const auto residuals = Compiled(conditions, pairs), compare = Compiled(compared, pairs);
  auto build = RowBuild::Make({.program = program.get(),
                               .keys = loop.keyed ? 1u : 0u,
                               .layout = RowLayout::Of(at_rest, RowLayout::kSmallPageBytes).value(),
                               .pages_max = UINT64_MAX,
                               .match_bits = loop.kind == JoinKind::kRight || loop.kind == JoinKind::kFull},
                              driver.budget())
                   .value();
  if (absl::Status built = driver.RunInto(loop.schema, loop.build, *build, 2); !built.ok()) return built;
  ProbeOptions options{.kind = loop.kind,
                       .keys = loop.keyed ? keys.get() : nullptr,
                       .keep = {0, 1, 2},
                       .fetch = {0, 1, 2},
                       .residuals = conditions.empty() ? nullptr : residuals.get(),
                       .compared = loop.compares ? compare.get() : nullptr,
                       .input_row_sets = 3,
                       .input = loop.schema};
  const std::unique_ptr<Chunk> shape = NewProbeChunk(options);
  const ChunkShape shapes[] = {{shape->columns().size(), shape->row_sets()}};
  auto step = build->NewProbe(std::move(options));
  if (!step.ok()) return step.status();
  size_t ignored = 0;
  CountedStep counted(**step, calls != nullptr ? *calls : ignored);
  StepOperator* const steps[] = {&counted};
  return driver.Run(loop.schema, loop.probe, steps, shapes);
}

void CheckLoop(const Loop& loop, StepDriver& driver) {
  std::optional<std::vector<Tuple>> expected = loop.Expected();
  absl::StatusOr<std::vector<Tuple>> actual = Joined(loop, driver);
  if (!expected) {
    ASSERT_FALSE(actual.ok());
    EXPECT_EQ(SqlErrorOf(actual.status())->sqlstate, sqlstate::kCardinalityViolation);
    return;
  }
  ASSERT_TRUE(actual.ok()) << actual.status();
  std::sort(actual->begin(), actual->end());
  std::sort(expected->begin(), expected->end());
  ExpectTuples(*actual, *expected);
}

bool MayCompare(JoinKind kind) {
  return kind == JoinKind::kMark || kind == JoinKind::kNullAwareAnti;
}

TEST(LoopTest, AnyConditionJoinsAsNestedLoops) {
  for (const uint64_t seed : TestSeeds(60)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    Loop loop;
    loop.kind = kAllKinds[seed % std::size(kAllKinds)];
    if (random.OneIn(4)) loop.schema[0].nullable = false;
    if (!random.OneIn(4))
      loop.band = static_cast<int64_t>(random.Below(3) == 0 ? random.Below(100) : random.Below(2));
    loop.compares = MayCompare(loop.kind) && (loop.kind == JoinKind::kNullAwareAnti || random.OneIn(2));
    const size_t probes[] = {0, 1, 700, 1500}, builds[] = {0, 1, 30, 60, 1100};
    const uint64_t distinct = loop.compares ? 4 : 400;
    loop.probe = RandomTuples(loop.schema, probes[random.Below(4)], distinct, random);
    loop.build = RandomTuples(loop.schema, builds[random.Below(5)], distinct, random);
    CheckLoop(loop, driver);
  }
}

/// More than 10,000 rows on either side in turn.
TEST(LoopTest, ManyRowsMeetFew) {
  for (const JoinKind kind : kAllKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    StepDriver driver(static_cast<uint64_t>(kind) + 1);
    Loop loop;
    loop.kind = kind;
    loop.band = 1;
    loop.compares = MayCompare(kind);
    loop.probe = RandomTuples(loop.schema, 11'000, 300, driver.random());
    loop.build = RandomTuples(loop.schema, kind == JoinKind::kSingle ? 1 : 12, 300, driver.random());
    CheckLoop(loop, driver);
    std::swap(loop.probe, loop.build);
    CheckLoop(loop, driver);
  }
}

TEST(LoopTest, WhatIsComparedBesideAKeyKnowsNulls) {
  for (const uint64_t seed : TestSeeds(30)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    Loop loop;
    loop.kind = random.OneIn(2) ? JoinKind::kMark : JoinKind::kNullAwareAnti;
    loop.compares = loop.keyed = true;
    loop.probe = RandomTuples(loop.schema, 1 + random.Below(3000), 6, random);
    loop.build = RandomTuples(loop.schema, random.Below(400), 6, random);
    CheckLoop(loop, driver);
  }
}

/// A task can be suspended then, and stops when its query is cancelled.
TEST(LoopTest, ACallLooksAtNoMorePairsThanAChunkHas) {
  StepDriver driver(1);
  Loop loop;
  loop.kind = JoinKind::kAnti;
  loop.band = 0;
  loop.probe = RandomTuples(loop.schema, 1500, 400, driver.random());
  loop.build = RandomTuples(loop.schema, 1500, 400, driver.random());
  for (Tuple& b : loop.build) b[0] = Cell::Number(400);  // few match
  std::erase_if(loop.probe, [](const Tuple& p) { return p[0] == Cell::Number(400); });
  size_t calls = 0;
  ASSERT_TRUE(Joined(loop, driver, &calls).ok());
  EXPECT_GE(calls, loop.probe.size() * loop.build.size() / kChunkRows);
}

TEST(LoopTest, WhatIsNoPlanIsRefused) {
  StepDriver driver(1);
  Loop loop;
  loop.kind = JoinKind::kNullAwareAnti;
  EXPECT_TRUE(absl::IsInvalidArgument(Joined(loop, driver).status()))
      << "NOT IN without something to compare";
  loop.kind = JoinKind::kSemi;
  loop.compares = true;
  EXPECT_TRUE(absl::IsInvalidArgument(Joined(loop, driver).status())) << "it has no mark";
}

}  // namespace
}  // namespace nam::execution
