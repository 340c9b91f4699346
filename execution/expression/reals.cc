#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "execution/expression/node.h"
#include "plan/cast.h"
#include "plan/real_arithmetic.h"
#include "types/real.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::Op;
using plan::RealFault;

constexpr plan::Bounds kAll{INT64_MIN, INT64_MAX, true};

class RealArithmetic final : public Node {
 public:
  RealArithmetic(Op op, bool narrow, int position, NodePtr a, NodePtr b)
      : Node(Physical::kInt64, kAll, Children(std::move(a), std::move(b))),
        op_(op),
        narrow_(narrow),
        position_(position) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    const Vector* b = child(1).Evaluate(frame, chunk, rows);
    if (b == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    UniteNulls(*a, *b, rows, at.nulls, out);
    const RealFault fault = Compute(*a, *b, rows, out);
    if (fault != RealFault::kNone) return FrameAccess::Fail(frame, plan::ErrorOf(fault, position_));
    return &out;
  }

 private:
  RealFault Compute(const Vector& a, const Vector& b, Selection rows, Vector& out) const {
    switch (op_) {
      case Op::kAdd:
        return Loop<Op::kAdd>(a, b, rows, out);
      case Op::kSubtract:
        return Loop<Op::kSubtract>(a, b, rows, out);
      case Op::kMultiply:
        return Loop<Op::kMultiply>(a, b, rows, out);
      default:
        return Loop<Op::kDivide>(a, b, rows, out);
    }
  }

  /// Only infinities, NaN and zeros can be wrong, and are checked again.
  template <Op op>
  RealFault Loop(const Vector& a, const Vector& b, Selection rows, Vector& out) const {
    bool suspect = false;
    ForEach(rows, [&, x = a.narrow, y = b.narrow, to = out.narrow](uint32_t p) {
      const double z = plan::RealResult(op, FromOrderedBits(x[p]), FromOrderedBits(y[p]), narrow_);
      suspect |= !std::isfinite(z) || z == 0;
      to[p] = OrderedBits(z);
    });
    if (!suspect) return RealFault::kNone;
    RealFault first = RealFault::kNone;
    ForEach(rows, [&](uint32_t p) {
      if (first != RealFault::kNone || out.null(p)) return;
      first = plan::FaultOf(op, FromOrderedBits(a.narrow[p]), FromOrderedBits(b.narrow[p]),
                            FromOrderedBits(out.narrow[p]));
    });
    return first;
  }

  const Op op_;
  const bool narrow_;
  const int position_;
};

/// Maps numbers; `function` returns nullopt for an error, and takes 64 or 128 bits.
template <typename Function>
class Converted final : public Node {
 public:
  Converted(Function function, const plan::Bounds& bounds, absl::Status error, NodePtr a)
      : Node(Physical::kInt64, bounds, Children(std::move(a))),
        function_(function),
        error_(std::move(error)) {}

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Vector* a = child(0).Evaluate(frame, chunk, rows);
    if (a == nullptr) return nullptr;
    Register& at = At(frame);
    Vector& out = Out(at);
    CopyNulls(*a, rows, at.nulls, out);
    bool wrong = false;
    WithWide(*a, [&](auto from) {
      ForEach(rows, [&, to = out.narrow](uint32_t p) {
        const std::optional<int64_t> result = out.null(p) ? std::optional<int64_t>(0) : function_(from[p]);
        wrong |= !result.has_value();
        to[p] = result.value_or(0);
      });
    });
    return wrong ? FrameAccess::Fail(frame, error_) : &out;
  }

 private:
  const Function function_;
  const absl::Status error_;
};

template <typename Function>
NodePtr Convert(Function function, const plan::Bounds& bounds, absl::Status error, NodePtr a) {
  return std::make_unique<Converted<Function>>(function, bounds, std::move(error), std::move(a));
}

double Read(__int128 bits) {
  return FromOrderedBits(static_cast<int64_t>(bits));
}

}  // namespace

NodePtr MakeRealArithmetic(const plan::Expr& e, NodePtr a, NodePtr b) {
  return std::make_unique<RealArithmetic>(e.op, e.type.kind == TypeKind::kReal, e.position, std::move(a),
                                          std::move(b));
}

NodePtr MakeRealNegate(NodePtr a) {
  return Convert([](__int128 n) -> std::optional<int64_t> { return OrderedBits(-Read(n)); }, kAll,
                 absl::OkStatus(), std::move(a));
}

bool CastsReals(const Type& from, const Type& to) {
  if (to.kind == TypeKind::kDouble) return from.numeric() || from.real();
  return from.real() && to.kind == TypeKind::kInteger;
}

NodePtr MakeRealCast(const plan::Expr& e, NodePtr a) {
  const Type& from = e.children[0].type;
  if (from.real() && e.type.real()) return a;
  if (from.real()) {
    const int bytes = plan::IntegerBytes(e);
    const int64_t high = std::numeric_limits<int64_t>::max() >> (64 - 8 * bytes);
    const auto convert = [high](__int128 n) -> std::optional<int64_t> {
      const std::optional<int64_t> whole = plan::IntegerOf(Read(n));
      return whole && *whole <= high && *whole >= -high - 1 ? whole : std::nullopt;
    };
    return Convert(convert, {-high - 1, high, true}, IntegerOutOfRange(bytes, e.position), std::move(a));
  }
  const auto convert = [scale = from.scale](__int128 n) -> std::optional<int64_t> {
    return OrderedBits(plan::RealOf(n, scale));
  };
  return Convert(convert, kAll, absl::OkStatus(), std::move(a));
}

}  // namespace nam::execution
