#include <optional>
#include <utility>

#include "execution/expression/node.h"
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

/// compute(word) or compute(number) for each selected row that is not NULL; it returns an optional. False if
/// one was empty.
template <typename X, typename Out, typename Compute>
bool ForNumbers(Selection rows, const uint8_t* nulls, X x, Out* out, Compute&& compute) {
  bool well = true;
  ForEach(rows, [&](uint32_t p) {
    if (nulls != nullptr && nulls[p] != 0) {
      out[p] = 0;
      return;
    }
    const auto result = compute(static_cast<__int128>(x[p]));
    well &= result.has_value();
    out[p] = result.value_or(Out{});
  });
  return well;
}

/// A number of a known scale becomes a numeric.
class Packed final : public Node {
 public:
  Packed(int scale, int position, NodePtr a)
      : Node(Physical::kInt128, {}, Children(std::move(a))), scale_(scale), position_(position) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    CopyNulls(*a, rows, at.nulls, out);
    const bool well = WithWide(*a, [&](auto x) {
      return ForNumbers(rows, out.nulls, x, out.wide, [this](__int128 n) -> std::optional<__int128> {
        const std::optional<Numeric> fit = FitNumeric(n, scale_);
        return fit ? std::optional(PackNumeric(*fit)) : std::nullopt;
      });
    });
    return well ? &out : FrameAccess::Fail(frame, NumericOutOfRange(position_));
  }

 private:
  const int scale_, position_;
};

enum class OfNumeric : uint8_t { kDecimal, kKey, kNegative, kLimb, kSquareLimb };

/// 128 bits of a numeric.
class WideOfNumeric final : public Node {
 public:
  /// `argument`: the scale of kDecimal, the number of a limb.
  WideOfNumeric(OfNumeric what, int argument, int position, NodePtr a)
      : Node(Physical::kInt128, {}, Children(std::move(a))),
        what_(what),
        argument_(argument),
        position_(position) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    CopyNulls(*a, rows, at.nulls, out);
    const bool well = WithWide(*a, [&](auto x) { return Compute(rows, out.nulls, x, out.wide); });
    return well ? &out : FrameAccess::Fail(frame, NumberOutOfRange(position_));
  }

 private:
  template <typename X>
  bool Compute(Selection rows, const uint8_t* nulls, X x, __int128* out) const {
    const auto loop = [&](auto&& of) {
      return ForNumbers(rows, nulls, x, out,
                        [&](__int128 word) { return std::optional<__int128>(of(UnpackNumeric(word))); });
    };
    switch (what_) {
      case OfNumeric::kDecimal:
        return loop([this](const Numeric& n) { return NumericToDecimal(n, argument_); });
      case OfNumeric::kKey:
        return loop([](const Numeric& n) { return NumericKey(n); });
      case OfNumeric::kNegative:
        return loop([](const Numeric& n) { return PackNumeric(NegateNumeric(n)); });
      case OfNumeric::kLimb:
        return loop([this](const Numeric& n) { return NumericLimb(n, argument_); });
      default:
        return loop([this](const Numeric& n) { return NumericSquareLimb(n, argument_); });
    }
  }
  const OfNumeric what_;
  const int argument_, position_;
};

/// The double nearest to a numeric, or its scale.
class NarrowOfNumeric final : public Node {
 public:
  NarrowOfNumeric(bool scale, NodePtr a)
      : Node(Physical::kInt64,
             scale ? plan::Bounds{0, kMaxNumericScale, true} : plan::Bounds{INT64_MIN, INT64_MAX, true},
             Children(std::move(a))),
        scale_(scale) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    CopyNulls(*a, rows, at.nulls, out);
    WithWide(*a, [&](auto x) {
      return ForNumbers(rows, out.nulls, x, out.narrow, [this](__int128 word) {
        const Numeric n = UnpackNumeric(word);
        return std::optional<int64_t>(scale_ ? n.scale : OrderedBits(NumericToDouble(n)));
      });
    });
    return &out;
  }

 private:
  const bool scale_;
};

/// One limb of a decimal.
class LimbOfDecimal final : public Node {
 public:
  LimbOfDecimal(int limb, const plan::Bounds& bounds, NodePtr a)
      : Node(NumberForm(bounds), bounds, Children(std::move(a))), limb_(limb) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    CopyNulls(*a, rows, at.nulls, out);
    WithWide(*a, [&](auto x) {
      if (limb_ == 0) {
        ForEach(rows, [&](uint32_t p) { out.wide[p] = DecimalLimb(x[p], 0); });
      } else {
        ForEach(rows, [&](uint32_t p) { out.narrow[p] = static_cast<int64_t>(DecimalLimb(x[p], 1)); });
      }
    });
    return &out;
  }

 private:
  const int limb_;
};

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
class NumericArithmetic final : public Node {
 public:
  NumericArithmetic(const plan::Expr& e, NodePtr a, NodePtr b)
      : Node(Physical::kInt128, {}, Children(std::move(a), std::move(b))),
        op_(e.op),
        left_(e.children[0].type),
        right_(e.children[1].type),
        position_(e.position) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    const Vector* b = child(1).Evaluate(frame, chunk, rows);
    if (b == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    UniteNulls(*a, *b, rows, at.nulls, out);
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
    WithOperand(*a, left_, [&](auto x) { WithOperand(*b, right_, [&](auto y) { loop(x, y); }); });
    if (by_zero) return FrameAccess::Fail(frame, DivisionByZero(position_));
    return too_long ? FrameAccess::Fail(frame, NumericOutOfRange(position_)) : &out;
  }

 private:
  const Op op_;
  const Type left_, right_;
  const int position_;
};

}  // namespace

NodePtr MakeNumericArithmetic(const plan::Expr& e, NodePtr a, NodePtr b) {
  return std::make_unique<NumericArithmetic>(e, std::move(a), std::move(b));
}

NodePtr MakeDecimalLimb(const plan::Expr& call, NodePtr a) {
  const auto limb = static_cast<int>(call.children[1].literal.number);
  return std::make_unique<LimbOfDecimal>(limb, plan::ResultBounds(call), std::move(a));
}

NodePtr MakeNumericNegate(NodePtr a) {
  return std::make_unique<WideOfNumeric>(OfNumeric::kNegative, 0, -1, std::move(a));
}

NodePtr MakeNumeric(NodePtr a, int scale, int position) {
  return std::make_unique<Packed>(scale, position, std::move(a));
}

NodePtr MakeDecimalOfNumeric(NodePtr a, int scale, int position) {
  return std::make_unique<WideOfNumeric>(OfNumeric::kDecimal, scale, position, std::move(a));
}

NodePtr MakeDoubleOfNumeric(NodePtr a) {
  return std::make_unique<NarrowOfNumeric>(/*scale=*/false, std::move(a));
}

NodePtr MakeNumericPart(const plan::Expr& call, NodePtr a) {
  const Function function = plan::FunctionOf(call);
  if (function == Function::kNumericScale)
    return std::make_unique<NarrowOfNumeric>(/*scale=*/true, std::move(a));
  const OfNumeric what = function == Function::kNumericKey    ? OfNumeric::kKey
                         : function == Function::kNumericLimb ? OfNumeric::kLimb
                                                              : OfNumeric::kSquareLimb;
  const int limb = what == OfNumeric::kKey ? 0 : static_cast<int>(call.children[1].literal.number);
  return std::make_unique<WideOfNumeric>(what, limb, call.position, std::move(a));
}

}  // namespace nam::execution
