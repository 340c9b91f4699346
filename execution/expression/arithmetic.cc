#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "execution/expression/operands.h"
#include "types/date.h"
#include "types/decimal.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::Bounds;
using plan::Op;

/// Bounds of + - * over numbers within bounds. Unknown beyond 128 bits.
Bounds Combine(Op op, const Bounds& a, const Bounds& b) {
  Bounds out;
  if (!a.known || !b.known) return out;
  __int128 x[4];
  switch (op) {
    case Op::kAdd:
      out.known = !__builtin_add_overflow(a.low, b.low, &out.low) &&
                  !__builtin_add_overflow(a.high, b.high, &out.high);
      return out;
    case Op::kSubtract:
      out.known = !__builtin_sub_overflow(a.low, b.high, &out.low) &&
                  !__builtin_sub_overflow(a.high, b.low, &out.high);
      return out;
    default:
      if (__builtin_mul_overflow(a.low, b.low, &x[0]) || __builtin_mul_overflow(a.low, b.high, &x[1]) ||
          __builtin_mul_overflow(a.high, b.low, &x[2]) || __builtin_mul_overflow(a.high, b.high, &x[3])) {
        return out;
      }
      return {*std::min_element(x, x + 4), *std::max_element(x, x + 4), true};
  }
}

__int128 Magnitude(__int128 n) {
  return n < 0 ? -n : n;
}
/// The largest magnitude within bounds that are known.
__int128 Farthest(const Bounds& bounds) {
  return std::max(Magnitude(bounds.low), Magnitude(bounds.high));
}

/// Calls `body` with a vector of 64 bits, or with its value if it is the same everywhere.
template <typename Body>
void WithNarrow(const Node& node, const Vector& vector, Body&& body) {
  const Value* constant = node.constant();
  if (constant != nullptr && !constant->null)
    return body(Same<int64_t>{static_cast<int64_t>(constant->number)});
  body(static_cast<const int64_t*>(vector.narrow));
}

/// + - * with operands and results of 64 bits. Values at NULLs wrap harmlessly.
class NarrowArithmetic final : public BinaryNode {
 public:
  NarrowArithmetic(Op op, const Bounds& bounds, NodePtr a, NodePtr b)
      : BinaryNode(Physical::kInt64, bounds, std::move(a), std::move(b)), op_(op) {}

 private:
  absl::Status Compute(const Vector& a, const Vector& b, Selection rows, Vector& out) const override {
    WithNarrow(child(0), a,
               [&](auto x) { WithNarrow(child(1), b, [&](auto y) { Loop(rows, x, y, out.narrow); }); });
    return absl::OkStatus();
  }

  template <typename A, typename B>
  void Loop(Selection rows, A a, B b, int64_t* __restrict out) const {
    const auto u = [](int64_t n) { return static_cast<uint64_t>(n); };
    switch (op_) {
      case Op::kAdd:
        return ForEach(rows, [=](uint32_t p) { out[p] = static_cast<int64_t>(u(a[p]) + u(b[p])); });
      case Op::kSubtract:
        return ForEach(rows, [=](uint32_t p) { out[p] = static_cast<int64_t>(u(a[p]) - u(b[p])); });
      default:
        return ForEach(rows, [=](uint32_t p) { out[p] = static_cast<int64_t>(u(a[p]) * u(b[p])); });
    }
  }
  const Op op_;
};

/// A node of two numbers that computes in 128 bits and may fail.
class WideNode : public BinaryNode {
 public:
  WideNode(const Bounds& bounds, int position, NodePtr a, NodePtr b)
      : BinaryNode(Physical::kInt128, bounds, std::move(a), std::move(b)), position_(position) {}

 protected:
  /// Calls `compute(x, y, null, out)` with the operands of 128 bits, a function that tells NULLs, and the
  /// results; `compute` returns whether it succeeded.
  template <typename Loop>
  absl::Status Run(const Vector& a, const Vector& b, Vector& out, Loop&& compute) const {
    const auto null = [nulls = out.nulls](uint32_t p) { return nulls != nullptr && nulls[p] != 0; };
    const bool well = WithWide(
        a, [&](auto x) { return WithWide(b, [&](auto y) { return compute(x, y, null, out.wide); }); });
    return well ? absl::OkStatus() : NumberOutOfRange(position_);
  }

 private:
  const int position_;
};

/// + - * of one scale, or of any for *.
class WideArithmetic final : public WideNode {
 public:
  /// Not `checked`: the results are known to fit 128 bits and to have at most 38 digits, or their overflow is
  /// harmless.
  WideArithmetic(Op op, bool checked, const Bounds& bounds, int position, NodePtr a, NodePtr b)
      : WideNode(bounds, position, std::move(a), std::move(b)), op_(op), checked_(checked) {}

 private:
  absl::Status Compute(const Vector& a, const Vector& b, Selection rows, Vector& out) const override {
    return Run(a, b, out, [&](auto x, auto y, auto null, __int128* results) {
      bool wrong = false;
      const auto loop = [&](auto overflows) {
        ForEach(rows, [&](uint32_t p) {
          const bool overflow = overflows(x[p], y[p], &results[p]);
          wrong |= (overflow || !FitsDigits(results[p])) && !null(p);
        });
      };
      switch (op_) {
        case Op::kAdd:
          loop([](__int128 m, __int128 n, __int128* r) { return __builtin_add_overflow(m, n, r); });
          break;
        case Op::kSubtract:
          loop([](__int128 m, __int128 n, __int128* r) { return __builtin_sub_overflow(m, n, r); });
          break;
        default:
          loop([](__int128 m, __int128 n, __int128* r) { return __builtin_mul_overflow(m, n, r); });
      }
      return !wrong || !checked_;
    });
  }

  const Op op_;
  const bool checked_;
};

/// + and - of numbers of different scales that may have more than 38 digits at the larger one.
class ScaledAddition final : public WideNode {
 public:
  ScaledAddition(bool negate_b, int scale_a, int scale_b, int position, NodePtr a, NodePtr b)
      : WideNode({}, position, std::move(a), std::move(b)),
        negate_b_(negate_b),
        scale_a_(scale_a),
        scale_b_(scale_b) {}

 private:
  absl::Status Compute(const Vector& a, const Vector& b, Selection rows, Vector& out) const override {
    return Run(a, b, out, [&](auto x, auto y, auto null, __int128* results) {
      bool wrong = false;
      ForEach(rows, [&](uint32_t p) {
        if (null(p)) return;
        const __int128 right = y[p];
        const std::optional<__int128> sum = AddDecimals(x[p], scale_a_, negate_b_ ? -right : right, scale_b_);
        wrong |= !sum.has_value();
        results[p] = sum.value_or(0);
      });
      return !wrong;
    });
  }

  const bool negate_b_;
  const int scale_a_, scale_b_;
};

/// Integers' /, towards zero, and %.
template <typename T>
class Division final : public BinaryNode {
 public:
  Division(bool modulo, const Bounds& bounds, int position, NodePtr a, NodePtr b)
      : BinaryNode(std::is_same_v<T, int64_t> ? Physical::kInt64 : Physical::kInt128, bounds, std::move(a),
                   std::move(b)),
        modulo_(modulo),
        position_(position) {}

 private:
  absl::Status Compute(const Vector& a, const Vector& b, Selection rows, Vector& out) const override {
    bool by_zero = false;
    const auto loop = [&](auto x, auto y, T* results) {
      ForEach(rows, [&](uint32_t p) {
        if (out.nulls != nullptr && out.nulls[p] != 0) return;
        if (y[p] == 0) {
          by_zero = true;
        } else {
          results[p] = Divide(static_cast<T>(x[p]), static_cast<T>(y[p]));
        }
      });
    };
    if constexpr (std::is_same_v<T, int64_t>) {
      loop(static_cast<const int64_t*>(a.narrow), static_cast<const int64_t*>(b.narrow), out.narrow);
    } else {
      WithWide(a, [&](auto x) { WithWide(b, [&](auto y) { loop(x, y, out.wide); }); });
    }
    return by_zero ? DivisionByZero(position_) : absl::OkStatus();
  }

  T Divide(T x, T y) const {
    if (y == -1) return modulo_ ? 0 : -x;  // the remainder by the least number's negation would overflow
    return modulo_ ? x % y : x / y;
  }
  const bool modulo_;
  const int position_;
};

/// n / divisor, rounded half away from zero.
template <typename T>
NodePtr RoundedShift(T divisor, const Bounds& bounds, NodePtr a) {
  const auto round = [divisor](T n) -> T {
    const T remainder = n % divisor;
    const T rest = remainder < 0 ? -remainder : remainder;
    const T up = rest >= divisor - rest;
    return n / divisor + (n < 0 ? -up : up);
  };
  return MakeMapNumbers<T, T>(round, bounds, std::move(a));
}

/// A number that is known to lie within 64 bits, or an error.
class WithinRange final : public UnaryNode {
 public:
  WithinRange(const Bounds& bounds, int64_t low, int64_t high, absl::Status error, NodePtr a)
      : UnaryNode(Physical::kInt64, bounds, std::move(a)), low_(low), high_(high), error_(std::move(error)) {}

 private:
  absl::Status Compute(const Vector& a, Selection rows, Vector& out) const override {
    bool wrong = false;
    const auto loop = [&](auto x) {
      ForEach(rows, [&](uint32_t p) {
        wrong |= (x[p] < low_ || x[p] > high_) && (out.nulls == nullptr || out.nulls[p] == 0);
        out.narrow[p] = static_cast<int64_t>(x[p]);
      });
    };
    if (a.physical == Physical::kInt64) {
      loop(static_cast<const int64_t*>(a.narrow));
    } else {
      loop(static_cast<const __int128*>(a.wide));
    }
    return wrong ? error_ : absl::OkStatus();
  }

  const int64_t low_, high_;
  const absl::Status error_;
};

NodePtr SameScale(Op op, bool checked, int position, NodePtr a, NodePtr b) {
  Bounds bounds = Combine(op, a->bounds(), b->bounds());
  // Few numbers may come from many: 0 * x.
  if (bounds.narrow() && a->physical() == Physical::kInt64 && b->physical() == Physical::kInt64)
    return std::make_unique<NarrowArithmetic>(op, bounds, std::move(a), std::move(b));
  checked = checked && !FitDigits(bounds);
  if (checked && bounds.known) {
    bounds.low = std::clamp(bounds.low, -kMostDigits, kMostDigits);
    bounds.high = std::clamp(bounds.high, -kMostDigits, kMostDigits);
  }
  return std::make_unique<WideArithmetic>(op, checked, bounds, position, std::move(a), std::move(b));
}

NodePtr Number(__int128 n) {
  return MakeLiteral(Value::Integer(n), Type::Integer());
}

NodePtr Add(const plan::Expr& e, NodePtr a, NodePtr b) {
  const int scale_a = e.children[0].type.scale, scale_b = e.children[1].type.scale;
  if (scale_a == scale_b) return SameScale(e.op, true, e.position, std::move(a), std::move(b));
  NodePtr& shorter = scale_a < scale_b ? a : b;
  const __int128 factor = PowerOfTen(scale_a < scale_b ? scale_b - scale_a : scale_a - scale_b);
  // More than 38 digits at the larger scale are no user error: the sum may have fewer.
  if (!FitDigits(Combine(Op::kMultiply, shorter->bounds(), {factor, factor, true}))) {
    return std::make_unique<ScaledAddition>(e.op == Op::kSubtract, scale_a, scale_b, e.position, std::move(a),
                                            std::move(b));
  }
  shorter =
      MakeRescale(std::move(shorter), std::min(scale_a, scale_b), std::max(scale_a, scale_b), e.position);
  return SameScale(e.op, true, e.position, std::move(a), std::move(b));
}

/// Of integers, in 64 bits if everything fits, else in 128.
NodePtr Divide(const plan::Expr& e, NodePtr a, NodePtr b) {
  const bool modulo = e.op == Op::kModulo;
  const Bounds of = a->bounds();
  Bounds bounds;
  if (of.known && modulo) bounds = {std::min<__int128>(of.low, 0), std::max<__int128>(of.high, 0), true};
  if (of.known && !modulo) bounds = {-Farthest(of), Farthest(of), true};
  const bool narrow = of.narrow() && bounds.narrow() && a->physical() == Physical::kInt64 &&
                      b->physical() == Physical::kInt64;
  if (narrow)
    return std::make_unique<Division<int64_t>>(modulo, bounds, e.position, std::move(a), std::move(b));
  return std::make_unique<Division<__int128>>(modulo, bounds, e.position, std::move(a), std::move(b));
}

}  // namespace

NodePtr MakeArithmetic(const plan::Expr& e, NodePtr a, NodePtr b) {
  if (e.children[0].type.kind == TypeKind::kDate) {
    // 38 digits plus a day fit 128 bits.
    NodePtr days = SameScale(e.op, false, e.position, std::move(a), std::move(b));
    if (e.type.kind != TypeKind::kDate) return days;
    return MakeWithinRange(std::move(days), kLeastDay, kGreatestDay, DateOutOfRange(e.position));
  }
  switch (e.op) {
    case Op::kAdd:
    case Op::kSubtract:
      return Add(e, std::move(a), std::move(b));
    case Op::kMultiply:
      return SameScale(e.op, true, e.position, std::move(a), std::move(b));
    default:
      return Divide(e, std::move(a), std::move(b));
  }
}

NodePtr MakeNegate(NodePtr a) {
  return SameScale(Op::kSubtract, false, -1, Number(0), std::move(a));
}

NodePtr MakeRescale(NodePtr a, int from, int to, int position) {
  if (from == to) return a;
  if (const Value* constant = a->constant(); constant != nullptr && !constant->null) {
    if (const std::optional<__int128> n = Rescale(constant->number, from, to)) return Number(*n);
  }
  if (to > from) return SameScale(Op::kMultiply, true, position, std::move(a), Number(PowerOfTen(to - from)));
  const __int128 divisor = PowerOfTen(from - to);
  Bounds bounds = a->bounds();
  if (bounds.known) {
    const std::optional<__int128> low = Rescale(bounds.low, from, to), high = Rescale(bounds.high, from, to);
    bounds = low && high ? Bounds{*low, *high, true} : Bounds{};
  }
  if (a->physical() == Physical::kInt64 && divisor <= INT64_MAX)
    return RoundedShift<int64_t>(static_cast<int64_t>(divisor), bounds, std::move(a));
  return RoundedShift<__int128>(divisor, bounds, std::move(a));
}

NodePtr MakeWithinRange(NodePtr a, int64_t low, int64_t high, absl::Status error) {
  const Bounds& of = a->bounds();
  // A number that is known to be inside is already in 64 bits.
  if (of.known && of.low >= low && of.high <= high && a->physical() == Physical::kInt64) return a;
  Bounds bounds{low, high, true};
  if (of.known)
    bounds = {std::clamp<__int128>(of.low, low, high), std::clamp<__int128>(of.high, low, high), true};
  return std::make_unique<WithinRange>(bounds, low, high, std::move(error), std::move(a));
}

}  // namespace nam::execution
