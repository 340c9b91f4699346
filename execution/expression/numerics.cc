#include <optional>
#include <utility>

#include "execution/expression/operands.h"
#include "plan/function.h"
#include "plan/numeric_arithmetic.h"
#include "types/decimal.h"
#include "types/numeric.h"
#include "types/real.h"
#include "types/sql_error.h"

/// Loops over numbers that carry their own scale, as words of 128 bits (types/numeric.h).
namespace nam::execution {
namespace {

using plan::Function;
using plan::Op;

/// The operands of arithmetic: words of numerics, or digits of a known scale.
template <typename X>
struct Words {
  X x;
  Numeric operator[](uint32_t p) const { return UnpackNumeric(x[p]); }
};
template <typename X>
struct Digits {
  X x;
  uint8_t scale;
  Numeric operator[](uint32_t p) const { return {x[p], scale}; }
};

template <typename Body>
void WithOperand(const Vector& vector, const Type& type, Body&& body) {
  WithWide(vector, [&](auto x) {
    if (type.kind == TypeKind::kNumeric) {
      body(Words<decltype(x)>{x});
    } else {
      body(Digits<decltype(x)>{x, type.scale});
    }
  });
}

/// + - * / % as a numeric.
class NumericArithmetic final : public BinaryNode {
 public:
  NumericArithmetic(const plan::Expr& e, NodePtr a, NodePtr b)
      : BinaryNode(Physical::kInt128, {}, std::move(a), std::move(b)),
        op_(e.op),
        left_(e.children[0].type),
        right_(e.children[1].type),
        position_(e.position) {}

 private:
  absl::Status Compute(const Vector& a, const Vector& b, Selection rows, Vector& out) const override {
    bool by_zero = false, too_long = false;
    const bool divides = op_ == Op::kDivide || op_ == Op::kModulo;
    const auto loop = [&](auto x, auto y) {
      ForEach(rows, [&](uint32_t p) {
        out.wide[p] = 0;
        if (out.nulls != nullptr && out.nulls[p] != 0) return;
        const Numeric right = y[p];
        if (divides && right.digits == 0) {
          by_zero = true;
          return;
        }
        const std::optional<Numeric> result = plan::NumericResult(op_, x[p], right);
        too_long |= !result.has_value();
        if (result) out.wide[p] = PackNumeric(*result);
      });
    };
    WithOperand(a, left_, [&](auto x) { WithOperand(b, right_, [&](auto y) { loop(x, y); }); });
    if (by_zero) return DivisionByZero(position_);
    return too_long ? NumericOutOfRange(position_) : absl::OkStatus();
  }

  const Op op_;
  const Type left_, right_;
  const int position_;
};

/// Decimals as numerics. The error names one that is too long.
class NumericOfDecimal final : public UnaryNode {
 public:
  NumericOfDecimal(int scale, int position, NodePtr a)
      : UnaryNode(Physical::kInt128, {}, std::move(a)), scale_(scale), position_(position) {}

 private:
  absl::Status Compute(const Vector& a, Selection rows, Vector& out) const override {
    std::optional<__int128> too_long;
    WithWide(a, [&](auto from) {
      ForEach(rows, [&](uint32_t p) {
        out.wide[p] = 0;
        if (out.nulls != nullptr && out.nulls[p] != 0) return;
        const std::optional<Numeric> fit = FitNumeric(from[p], scale_);
        if (fit) {
          out.wide[p] = PackNumeric(*fit);
        } else {
          too_long = from[p];
        }
      });
    });
    if (!too_long.has_value()) return absl::OkStatus();
    const Value number{Type::Decimal(static_cast<uint8_t>(scale_)), false, *too_long, {}};
    return NumberTooLong(number.ToString(), kMaxNumericDigits, position_);
  }

  const int scale_, position_;
};

/// `function` of each number. Its results are of 128 bits.
template <typename Function>
NodePtr WideOfNumeric(Function function, NodePtr a) {
  return MakeMapNumbers<__int128, __int128>(
      [function](__int128 word) { return function(UnpackNumeric(word)); }, {}, std::move(a));
}

}  // namespace

NodePtr MakeNumericArithmetic(const plan::Expr& e, NodePtr a, NodePtr b) {
  return std::make_unique<NumericArithmetic>(e, std::move(a), std::move(b));
}

NodePtr MakeNumericNegate(NodePtr a) {
  return WideOfNumeric([](const Numeric& n) { return PackNumeric(NegateNumeric(n)); }, std::move(a));
}

NodePtr MakeNumeric(NodePtr a, int scale, int position) {
  return std::make_unique<NumericOfDecimal>(scale, position, std::move(a));
}

NodePtr MakeDecimalOfNumeric(NodePtr a, int scale, int position) {
  const auto decimal = [scale](__int128 word) { return NumericToDecimal(UnpackNumeric(word), scale); };
  return MakeMapNumbers<__int128, __int128>(decimal, {}, std::move(a), FailsWith(NumberOutOfRange(position)));
}

NodePtr MakeDoubleOfNumeric(NodePtr a) {
  const auto number = [](__int128 word) -> int64_t {
    return OrderedBits(NumericToDouble(UnpackNumeric(word)));
  };
  return MakeMapNumbers<__int128, int64_t>(number, {INT64_MIN, INT64_MAX, true}, std::move(a));
}

NodePtr MakeNumericPart(const plan::Expr& call, NodePtr a) {
  const auto limb = call.children.size() < 2 ? 0 : static_cast<int>(call.children[1].literal.number);
  switch (plan::FunctionOf(call)) {
    case Function::kNumericScale:
      return MakeMapNumbers<__int128, int64_t>(
          [](__int128 word) { return int64_t{UnpackNumeric(word).scale}; }, plan::ResultBounds(call),
          std::move(a));
    case Function::kNumericKey:
      return WideOfNumeric([](const Numeric& n) { return NumericKey(n); }, std::move(a));
    case Function::kNumericLimb:
      return WideOfNumeric([limb](const Numeric& n) { return NumericLimb(n, limb); }, std::move(a));
    default:
      return WideOfNumeric([limb](const Numeric& n) { return NumericSquareLimb(n, limb); }, std::move(a));
  }
}

NodePtr MakeDecimalLimb(const plan::Expr& call, NodePtr a) {
  const plan::Bounds bounds = plan::ResultBounds(call);
  if (call.children[1].literal.number == 0) {
    return MakeMapNumbers<__int128, __int128>([](__int128 n) { return DecimalLimb(n, 0); }, bounds,
                                              std::move(a));
  }
  return MakeMapNumbers<__int128, int64_t>([](__int128 n) { return static_cast<int64_t>(DecimalLimb(n, 1)); },
                                           bounds, std::move(a));
}

}  // namespace nam::execution
