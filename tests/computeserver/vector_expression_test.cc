#include "computeserver/vector_expression.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plan/expression_tree.h"

namespace nam::computeserver {
namespace {

using plan::Expr;
using plan::Op;

constexpr uint32_t kRows = 8;

/// One column of 8 bytes, whose NULLs have the code 0.
class Column {
 public:
  Column(Type type, const std::vector<int64_t>& values, bool nullable) : codes_(kRows) {
    space_.table(0).resize(1);
    ColumnSpace::Column& column = space_.at({0, 0});
    column.meaning.type = type;
    column.meaning.nullable = nullable;
    column.meaning.min = *std::min_element(values.begin(), values.end());
    column.meaning.max = *std::max_element(values.begin(), values.end());
    column.meaning.base =
        static_cast<int64_t>(static_cast<uint64_t>(column.meaning.min) - (nullable ? 1 : 0));
    column.meaning.codes = 0;
    column.meaning.width = 8;
    for (uint32_t i = 0; i < kRows; ++i) {
      codes_[i] = static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(column.meaning.base);
      if (nullable && i % 3 == 0) codes_[i] = 0;
    }
    column.source = {reinterpret_cast<const std::byte*>(codes_.data()), 8};
    batch_.Include(0);
    for (uint32_t i = 0; i < kRows; ++i) batch_.rows[0][i] = i;
    batch_.size = kRows;
  }

  Expr expr() const {
    Expr e = plan::MakeNode(Op::kColumn, space_.at({0, 0}).meaning.type, -1, {});
    e.column = {0, 0};
    return e;
  }
  const ColumnSpace& space() const { return space_; }
  const Batch& batch() const { return batch_; }

 private:
  std::vector<uint64_t> codes_;
  ColumnSpace space_{1};
  Batch batch_{1};
};

/// Over vectors as row by row; of an error, that there is one.
void CheckSame(const Column& column, const Expr& e) {
  const auto expression = Compile(e, column.space());
  const auto vector = expression->Evaluate(column.batch());
  const ColumnSpace::Column& stored = column.space().at({0, 0});
  bool failed = false;
  for (uint32_t i = 0; i < kRows; ++i) {
    const auto expected =
        plan::Evaluate(e, [&](const Expr&) { return stored.meaning.Decode(stored.source.at(i)); });
    failed = failed || !expected.ok();
    if (!expected.ok() || !vector.ok()) continue;
    const Value got = ValueAt(**vector, i, e.type);
    RC_ASSERT(got.null == expected->null);
    if (!got.null) RC_ASSERT(got.number == expected->number);
  }
  RC_ASSERT(vector.ok() == !failed);
}

int ArbitraryScale() {
  return *rc::gen::oneOf(rc::gen::just(0), rc::gen::inRange(30, kMaxDecimalDigits + 1));
}

Type NumberType(int scale) {
  return scale == 0 ? Type::Integer() : Type::Decimal(static_cast<uint8_t>(scale));
}

RC_GTEST_PROP(VectorExpressionProperty, MeansWhatTheEvaluatorSays, ()) {
  const auto number = rc::gen::oneOf(rc::gen::inRange<int64_t>(-5, 6), rc::gen::arbitrary<int64_t>(),
                                     rc::gen::element<int64_t>(INT64_MAX, INT64_MIN + 1));
  const auto values = *rc::gen::container<std::vector<int64_t>>(kRows, number);
  const Column column(NumberType(ArbitraryScale()), values, *rc::gen::arbitrary<bool>());
  const __int128 digits = PowerOfTen(*rc::gen::inRange(0, kMaxDecimalDigits)) * *rc::gen::inRange(-9, 10);
  Value constant = Value::Integer(digits);
  constant.type = NumberType(ArbitraryScale());
  const Expr literal = plan::MakeLiteral(constant, -1);
  const uint8_t scale = std::max(column.expr().type.scale, constant.type.scale);
  const Expr sum = plan::MakeNode(*rc::gen::element(Op::kAdd, Op::kSubtract), NumberType(scale), -1,
                                  {column.expr(), literal});
  const Op compares = *rc::gen::element(Op::kEqual, Op::kNotEqual, Op::kLess, Op::kLessEqual, Op::kGreater,
                                        Op::kGreaterEqual);
  CheckSame(column, plan::MakeNode(compares, Type::Bool(), -1, {column.expr(), literal}));
  CheckSame(column, sum);
  CheckSame(column, plan::MakeNode(compares, Type::Bool(), -1, {sum, literal}));
}

TEST(VectorExpressionTest, WhatANullIsComputedWithIsWithinBounds) {
  const std::vector<int64_t> values(kRows, INT64_MAX);
  const Column column(Type::Integer(), values, /*nullable=*/true);
  const auto expression = Compile(column.expr(), column.space());
  const auto vector = expression->Evaluate(column.batch());
  ASSERT_TRUE(vector.ok()) << vector.status();
  for (uint32_t i = 0; i < kRows; ++i) {
    EXPECT_LE(expression->bounds().low, (*vector)->number(i));
    EXPECT_GE(expression->bounds().high, (*vector)->number(i));
  }
  // 0 - (2^63 - 1) - 2 would not fit 64 bits.
  const Expr less = plan::MakeNode(Op::kSubtract, Type::Integer(), -1,
                                   {column.expr(), plan::MakeLiteral(Value::Integer(INT64_MAX), -1)});
  const Expr twice =
      plan::MakeNode(Op::kSubtract, Type::Integer(), -1, {less, plan::MakeLiteral(Value::Integer(2), -1)});
  EXPECT_EQ(Compile(twice, column.space())->kind(), Vector::Kind::kWide);
}

}  // namespace
}  // namespace nam::computeserver
