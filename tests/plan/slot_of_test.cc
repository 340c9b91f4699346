#include "plan/slot_of.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

#include "tests/plan/random_expression.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

using testing::Random;

TEST(SlotOf, HoldsWhatTheReferenceYields) {
  uint64_t values = 0, errors = 0, unknown = 0;
  EXPECT_TRUE(rc::check("values are within what SlotOf says", [&] {
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    RC_LOG() << "seed " << seed << "\n";
    Random random(seed);
    const Schema schema = random.ASchema(6);
    const Expr expr = random.AnExpr(schema, random.AType(), 4);
    const absl::StatusOr<Slot> slot = SlotOf(expr, schema);
    RC_LOG() << ToString(expr, [](const Expr& e) { return "#" + std::to_string(e.column.column); }) << "\n"
             << slot.status().ToString() << "\n";
    RC_ASSERT(slot.ok());
    RC_ASSERT(slot->type == expr.type);
    for (int i = 0; i < 30; ++i) {
      const std::vector<Value> row = random.ARow(schema);
      const absl::StatusOr<Value> value =
          Evaluate(expr, [&](const Expr& e) { return row[static_cast<size_t>(e.column.column)]; });
      if (!value.ok()) {
        ++errors;
        continue;
      }
      ++values;
      unknown += HasBounds(slot->type) && !slot->bounds.known;
      RC_ASSERT(!value->null || slot->nullable);
      if (value->null || !slot->bounds.known) continue;
      RC_LOG() << Int128ToString(value->number) << " in " << Int128ToString(slot->bounds.low) << " … "
               << Int128ToString(slot->bounds.high) << "\n";
      RC_ASSERT(value->number >= slot->bounds.low);
      RC_ASSERT(value->number <= slot->bounds.high);
    }
  }));
  // The tested expressions are neither mostly errors nor mostly without bounds.
  EXPECT_GT(values, errors);
  EXPECT_GT(values, 2 * unknown);
}

Expr Number(__int128 n) {
  Expr e;
  e.type = Type::Integer();
  e.literal = Value::Integer(n);
  return e;
}

TEST(SlotOf, BoundsAreTight) {
  const Schema schema = {{Type::Integer(), false, {2, 9, true}},
                         {Type::Decimal(2), true, {-150, 50, true}},
                         {Type::Date(), false, {100, 200, true}}};
  const auto bounds = [&](const Expr& e) {
    const absl::StatusOr<Slot> slot = SlotOf(e, schema);
    EXPECT_TRUE(slot.ok()) << slot.status();
    return slot.ok() ? slot->bounds : Bounds{};
  };
  const Expr a = Random::Column(schema, 0), b = Random::Column(schema, 1), d = Random::Column(schema, 2);
  EXPECT_EQ(bounds(Random::Node(Op::kAdd, Type::Decimal(2), {a, b})), (Bounds{50, 950, true}));
  EXPECT_EQ(bounds(Random::Node(Op::kSubtract, Type::Decimal(2), {a, b})), (Bounds{150, 1050, true}));
  EXPECT_EQ(bounds(Random::Node(Op::kMultiply, Type::Decimal(2), {a, b})), (Bounds{-1350, 450, true}));
  EXPECT_EQ(bounds(Random::Node(Op::kDivide, Type::Integer(), {a, a})), (Bounds{0, 9, true}));
  EXPECT_EQ(bounds(Random::Node(Op::kModulo, Type::Integer(), {a, Number(4)})), (Bounds{0, 3, true}));
  EXPECT_EQ(bounds(Random::Node(Op::kNegate, Type::Integer(), {a})), (Bounds{-9, -2, true}));
  EXPECT_EQ(bounds(Random::Node(Op::kCast, Type::Integer(), {b})), (Bounds{-2, 1, true}));
  EXPECT_EQ(bounds(Random::Node(Op::kSubtract, Type::Integer(), {d, d})), (Bounds{-100, 100, true}));
  EXPECT_EQ(bounds(Random::Node(Op::kExtractMonth, Type::Integer(), {d})), (Bounds{1, 12, true}));
  Expr null = Number(0);
  null.literal = Value::Null(Type::Integer());
  const Expr choice =
      Random::Node(Op::kCase, Type::Integer(), {Random::Node(Op::kIsNull, Type::Bool(), {b}), a, null});
  EXPECT_EQ(bounds(choice), (Bounds{2, 9, true})) << "NULL has no value, so no bounds";
  EXPECT_TRUE(SlotOf(choice, schema)->nullable);
}

TEST(SlotOf, RefusesWhatIsIllTyped) {
  const Schema schema = {{Type::Integer(), false, {}}, {Type::String(), false, {}}, {Type::Bool(), true, {}}};
  const Expr n = Random::Column(schema, 0), s = Random::Column(schema, 1), b = Random::Column(schema, 2);
  const auto refused = [&](const Expr& e) { return absl::IsInvalidArgument(SlotOf(e, schema).status()); };
  const auto node = [](Op op, Type type, std::vector<Expr> children) {
    return Random::Node(op, type, std::move(children));
  };
  ASSERT_FALSE(refused(node(Op::kAdd, Type::Integer(), {n, n})));
  const Schema decimals = {{Type::Decimal(9), false, {1, 9, true}}, {Type::Integer(), false, {1, 9, true}}};
  const Expr nine = Random::Column(decimals, 0), whole = Random::Column(decimals, 1);
  ASSERT_TRUE(SlotOf(node(Op::kAdd, Type::Decimal(9), {nine, whole}), decimals).ok());
  EXPECT_FALSE(SlotOf(node(Op::kDivide, Type::Decimal(9), {nine, whole}), decimals).ok());
  for (const int scale : {0, 8, 10, 38}) {
    const Type other = Type::Decimal(static_cast<uint8_t>(scale));
    for (const Op op : {Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kDivide, Op::kModulo}) {
      EXPECT_TRUE(absl::IsInvalidArgument(SlotOf(node(op, other, {nine, whole}), decimals).status()))
          << "operator " << static_cast<int>(op) << " of scale " << scale;
    }
  }
  EXPECT_TRUE(refused(node(Op::kAdd, Type::Integer(), {n, s})));
  EXPECT_TRUE(refused(node(Op::kAdd, Type::Decimal(0), {n, n})));
  EXPECT_TRUE(refused(node(Op::kAdd, Type::Integer(), {n})));
  EXPECT_TRUE(refused(node(Op::kAnd, Type::Bool(), {b, n})));
  EXPECT_TRUE(refused(node(Op::kEqual, Type::Bool(), {n, s})));
  EXPECT_TRUE(refused(node(Op::kEqual, Type::Integer(), {n, n})));
  EXPECT_TRUE(refused(node(Op::kLike, Type::Bool(), {s}))) << "without a pattern";
  EXPECT_TRUE(refused(node(Op::kIn, Type::Bool(), {n, n})));
  EXPECT_TRUE(refused(node(Op::kIn, Type::Bool(), {s, Number(1)})));
  EXPECT_TRUE(refused(node(Op::kCase, Type::Integer(), {b, n, s})));
  EXPECT_TRUE(refused(node(Op::kCase, Type::Integer(), {n, n, n})));
  EXPECT_TRUE(refused(node(Op::kCase, Type::Integer(), {b, n})));
  EXPECT_TRUE(refused(node(Op::kCast, Type::Date(), {n})));
  EXPECT_TRUE(refused(node(Op::kExtractYear, Type::Integer(), {n})));
  Expr column = n;
  column.column = {0, 3};
  EXPECT_TRUE(refused(column));
  column.column = {0, -1};
  EXPECT_TRUE(refused(column));
  column.column = {1, 0};
  EXPECT_TRUE(refused(column)) << "of another relation";
  column = n;
  column.type = Type::String();
  EXPECT_TRUE(refused(column)) << "of another type than its slot";
  Expr literal = Number(1);
  literal.literal = Value::String("1");
  EXPECT_TRUE(refused(literal));
  EXPECT_TRUE(refused(Number(PowerOfTen(38)))) << "39 digits";
  literal.type = Type::Numeric();
  for (const __int128 word : {PackNumeric({PowerOfTen(36), 0}), __int128{1} << 6 | 39}) {
    literal.literal = {Type::Numeric(), false, word, {}};
    EXPECT_TRUE(refused(literal)) << "a numeric of too many digits or decimals";
  }
  literal.literal = Value::OfNumeric({PowerOfTen(36) - 1, 38});
  EXPECT_FALSE(refused(literal));
  EXPECT_TRUE(refused(node(Op::kDivide, Type::Numeric(), {literal, n}))) << "a number that is not packed";
  Expr text = Number(0);
  text.type = Type::String();
  text.literal = Value::String("1");
  EXPECT_TRUE(refused(node(Op::kAdd, Type::Numeric(), {literal, text}))) << "no number";
  EXPECT_FALSE(refused(node(Op::kAdd, Type::Numeric(), {literal, n})));
  EXPECT_FALSE(refused(node(Op::kDivide, Type::Numeric(), {literal, literal})));
  literal = Number(0);
  literal.type = Type::Date();
  literal.literal = Value::Date(kGreatestDay + 1);
  EXPECT_TRUE(refused(literal));
}

}  // namespace
}  // namespace nam::plan
