#include "execution/expression/code_condition.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "storage/dictionary.h"
#include "tests/base/seeds.h"
#include "tests/execution/expression/random_expression.h"

namespace nam::execution {
namespace {

using nam::testing::Below;
using nam::testing::Chance;
using nam::testing::CodeOf;
using nam::testing::MeaningFor;
using nam::testing::Random;
using nam::testing::RandomExpression;
using nam::testing::RandomSlot;
using plan::Expr;
using plan::Op;

/// A zone over some of the codes may pass if one of them passes.
void CheckZones(Random& random, const CodeCondition& condition, std::vector<uint64_t> codes) {
  std::sort(codes.begin(), codes.end());
  for (int i = 0; i < 20; ++i) {
    uint64_t min = codes[Below(random, codes.size())], max = codes[Below(random, codes.size())];
    if (min > max) std::swap(min, max);
    bool any = false;
    if (max - min < 5000) {
      for (uint64_t code = min; code <= max; ++code) any |= condition.Passes(code);
      ASSERT_EQ(condition.MayPass(min, max), any) << min << " … " << max;
    } else {
      for (const uint64_t code : codes) any |= code >= min && code <= max && condition.Passes(code);
      ASSERT_TRUE(condition.MayPass(min, max) || !any);
    }
  }
}

/// Random conditions on one column: a code passes where the reference finds the condition true of the code's
/// value. NAM_SEED=N runs one case again, NAM_SEEDS=N runs that many.
void CheckOne(uint64_t seed, int* found) {
  Random random(seed);
  const std::vector<RandomSlot> slots = nam::testing::RandomSlots(random);
  const auto slot = static_cast<uint32_t>(Below(random, slots.size()));
  const RandomSlot& of = slots[slot];
  for (const Value& value : of.values) {
    if (value.number < INT64_MIN / 2 || value.number > INT64_MAX / 2) return;
  }
  const Expr e = RandomExpression(random, slots).About(slot, static_cast<int>(1 + Below(random, 3)));
  if (plan::ColumnsOf(e).size() != 1) return;
  SCOPED_TRACE("NAM_SEED=" + std::to_string(seed) + ": " +
               plan::ToString(e, [](const Expr&) { return "x"; }));
  const auto meaning = MeaningFor(of, of.slot.nullable, 8);
  const std::optional<CodeCondition> condition = CodesOf(e, *meaning);
  bool fails = false;
  std::vector<Value> values = of.values;
  if (of.slot.nullable) values.push_back(Value::Null(of.slot.type));
  std::vector<uint64_t> codes;
  for (const Value& value : values) {
    const auto expected = plan::Evaluate(e, [&](const Expr&) { return value; });
    fails |= !expected.ok();
    codes.push_back(CodeOf(*meaning, value));
    if (!condition.has_value()) continue;
    ASSERT_TRUE(expected.ok()) << "the rows must decide: " << expected.status();
    ASSERT_EQ(condition->Passes(codes.back()), !expected->null && expected->number != 0) << value.ToString();
  }
  if (!condition.has_value()) {
    // Between the values there may be others that fail, but all entries of a dictionary occur.
    ASSERT_TRUE(fails || meaning->codes > kEagerNumbers || of.slot.type.kind != TypeKind::kString);
    return;
  }
  ++*found;
  if (condition->empty()) {
    ASSERT_EQ(condition->Passing(), 0u);
  } else {
    ASSERT_TRUE(condition->Passes(condition->low) && condition->Passes(condition->high));
    if (condition->high - condition->low < 10000) {
      uint64_t passing = 0;
      for (uint64_t code = condition->low; code <= condition->high; ++code)
        passing += condition->Passes(code);
      ASSERT_EQ(condition->Passing(), passing);
    }
  }
  CheckZones(random, *condition, codes);
}

TEST(CodeConditionProperty, CodesPassThatMeetTheCondition) {
  const uint64_t first = FromEnvironment("NAM_SEED", 1);
  const uint64_t count = FromEnvironment("NAM_SEEDS", std::getenv("NAM_SEED") != nullptr ? 1 : 5000);
  int found = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    CheckOne(seed, &found);
    if (HasFatalFailure()) return;
  }
  if (count > 1000) {
    EXPECT_GT(found, static_cast<int>(count) / 20);
  }
}

Expr FirstColumn(const Type& type) {
  Expr e;
  e.op = Op::kColumn;
  e.type = type;
  e.column = {0, 0};
  return e;
}

class ManyTexts : public ::testing::Test {
 protected:
  static constexpr int kEntries = 100000;  // more than are evaluated one by one
  ManyTexts() {
    std::vector<std::string> texts;
    for (int i = 0; i < kEntries; ++i) texts.push_back("n" + std::to_string(1000000 + i));
    meaning_.type = Type::String();
    meaning_.null_code = true;
    meaning_.base = -1;
    meaning_.codes = kEntries + 1;
    meaning_.max = kEntries - 1;
    meaning_.dictionary =
        *storage::Dictionary::Decode(storage::Dictionary::Encode({texts.begin(), texts.end()}));
    meaning_.dictionary_id = 1;
  }
  std::optional<CodeCondition> Like(std::string pattern) const {
    Expr e;
    e.op = Op::kLike;
    e.type = Type::Bool();
    e.literal = Value::String(std::move(pattern));
    e.children = {FirstColumn(meaning_.type)};
    return CodesOf(e, meaning_);
  }
  std::optional<CodeCondition> Compare(Op op, std::string text) const {
    Expr e, literal;
    literal.literal = Value::String(std::move(text));
    literal.type = literal.literal.type;
    e.op = op;
    e.type = Type::Bool();
    e.children = {FirstColumn(meaning_.type), literal};
    return CodesOf(e, meaning_);
  }
  CodeMeaning meaning_;
};

TEST_F(ManyTexts, AreFoundByBinarySearch) {
  EXPECT_EQ(Like("n10001%"), (CodeCondition{.low = 1 + 100, .high = 1 + 199}));
  EXPECT_EQ(Like("n1000001"), (CodeCondition{.low = 2, .high = 2}));
  EXPECT_EQ(Like("z%"), CodeCondition{});
  EXPECT_EQ(Like("%"), (CodeCondition{.low = 1, .high = kEntries})) << "NULL is like nothing";
  EXPECT_EQ(Compare(Op::kEqual, "n1000007"), (CodeCondition{.low = 8, .high = 8}));
  EXPECT_EQ(Compare(Op::kEqual, "m"), CodeCondition{});
  EXPECT_EQ(Compare(Op::kLess, "n1000002"), (CodeCondition{.low = 1, .high = 2}));
  EXPECT_EQ(Compare(Op::kLessEqual, "n1000002"), (CodeCondition{.low = 1, .high = 3}));
  EXPECT_EQ(Compare(Op::kGreater, "n10999979"), (CodeCondition{.low = kEntries - 1, .high = kEntries}));
  const auto others = Compare(Op::kNotEqual, "n1000002");
  ASSERT_TRUE(others.has_value());
  EXPECT_FALSE(others->range());
  EXPECT_EQ(others->Passing(), static_cast<uint64_t>(kEntries - 1));
  EXPECT_FALSE(others->Passes(0)) << "NULL differs from nothing";
  EXPECT_FALSE(others->Passes(3));
  EXPECT_EQ(Like("%1"), std::nullopt) << "too many to evaluate";
}

}  // namespace
}  // namespace nam::execution
