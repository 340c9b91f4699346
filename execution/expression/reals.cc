#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "execution/expression/operands.h"
#include "plan/cast.h"
#include "plan/real_arithmetic.h"
#include "types/real.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::Op;
using plan::RealFault;

constexpr plan::Bounds kAll{INT64_MIN, INT64_MAX, true};

class RealArithmetic final : public BinaryNode {
 public:
  RealArithmetic(Op op, bool narrow, int position, NodePtr a, NodePtr b)
      : BinaryNode(Physical::kInt64, kAll, std::move(a), std::move(b)),
        op_(op),
        narrow_(narrow),
        position_(position) {}

 private:
  absl::Status Compute(const Vector& a, const Vector& b, Selection rows, Vector& out) const override {
    const RealFault fault = Fault(a, b, rows, out);
    return fault == RealFault::kNone ? absl::OkStatus() : plan::ErrorOf(fault, position_);
  }

  RealFault Fault(const Vector& a, const Vector& b, Selection rows, Vector& out) const {
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

template <typename Function>
NodePtr MapReals(Function function, NodePtr a) {
  return MakeMapNumbers<__int128, int64_t>(function, kAll, std::move(a));
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
  return MapReals([](__int128 n) -> int64_t { return OrderedBits(-Read(n)); }, std::move(a));
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
    return MakeMapNumbers<__int128, int64_t>(convert, {-high - 1, high, true}, std::move(a),
                                             FailsWith(IntegerOutOfRange(bytes, e.position)));
  }
  return MapReals([scale = from.scale](__int128 n) -> int64_t { return OrderedBits(plan::RealOf(n, scale)); },
                  std::move(a));
}

}  // namespace nam::execution
