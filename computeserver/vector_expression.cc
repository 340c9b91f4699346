#include "computeserver/vector_expression.h"

#include <algorithm>
#include <limits>

#include "computeserver/vector_nodes.h"

namespace nam::computeserver {

Value ColumnMeaning::Decode(uint64_t code) const {
  if (IsNull(code)) return Value::Null(type);
  Value value;
  value.type = type;
  value.null = false;
  if (type.kind == TypeKind::kString) {
    value.text = std::string(Text(code));
  } else {
    value.number = Number(code);
  }
  return value;
}

Value ValueAt(const Vector& vector, uint32_t i, const Type& type) {
  if (vector.null(i)) return Value::Null(type);
  Value value;
  value.type = type;
  value.null = false;
  if (vector.kind == Vector::Kind::kText) {
    value.text = std::string(vector.text[i]);
  } else {
    value.number = vector.number(i);
  }
  return value;
}

namespace {

using namespace vector_nodes;  // NOLINT(google-build-using-namespace): all of them

/// Multiplies by a power of ten: brings a number to a larger scale.
NodePtr ScaleUp(NodePtr a, int from, int to) {
  if (from == to) return a;
  Expr factor;
  factor.type = Type::Integer();
  factor.literal = Value::Integer(PowerOfTen(to - from));
  return std::make_unique<Arithmetic>(Op::kMultiply, std::move(a), std::make_unique<Literal>(factor));
}

/// A look-up by code pays off below this many codes (numbers: each costs an evaluation).
constexpr uint64_t kMostNumberCodes = 4096;
constexpr uint64_t kMostTextCodes = 1 << 22;

bool IsComparison(Op op) {
  return op == Op::kEqual || op == Op::kNotEqual || op == Op::kLess || op == Op::kLessEqual ||
         op == Op::kGreater || op == Op::kGreaterEqual;
}

/// Brings both sides to the larger scale. False if that may take more than 38 digits, which is no error of
/// the user's: what is then done with them need not have as many.
bool AlignScales(const Expr& e, NodePtr& a, NodePtr& b) {
  const uint8_t scale_a = e.children[0].type.scale, scale_b = e.children[1].type.scale;
  const uint8_t scale = std::max(scale_a, scale_b);
  a = ScaleUp(std::move(a), scale_a, scale);
  b = ScaleUp(std::move(b), scale_b, scale);
  const Bounds& scaled = scale_a < scale ? a->bounds() : b->bounds();
  return scale_a == scale_b || (scaled.known && FitsDigits(scaled.low) && FitsDigits(scaled.high));
}

class Compiler {
 public:
  explicit Compiler(const ColumnSpace& space) : space_(space) {}

  NodePtr Build(const Expr& e) {
    if (e.type.kind == TypeKind::kBool && e.op != Op::kLiteral && e.op != Op::kColumn) {
      if (NodePtr lookup = Lookup(e)) return lookup;
    }
    switch (e.op) {
      case Op::kColumn:
        return Column(e);
      case Op::kLiteral:
        return std::make_unique<Literal>(e);
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kMultiply:
        return Arith(e);
      case Op::kNegate:
        return Negate(e);
      case Op::kAnd:
      case Op::kOr:
        return Junct(e);
      case Op::kNot:
        return std::make_unique<Not>(Build(e.children[0]));
      case Op::kIsNull:
        return std::make_unique<IsNull>(Build(e.children[0]));
      case Op::kCast:
        return Cast(e);
      default:
        break;
    }
    if (IsComparison(e.op)) return Compare(e);
    return std::make_unique<RowByRow>(e, space_);
  }

 private:
  NodePtr Column(const Expr& e) {
    if (e.type.kind == TypeKind::kString) return std::make_unique<TextColumn>(space_, e.column);
    if (e.type.kind == TypeKind::kBool) return std::make_unique<RowByRow>(e, space_);
    return std::make_unique<NumberColumn>(space_, e.column);
  }

  NodePtr Arith(const Expr& e) {
    NodePtr a = Build(e.children[0]), b = Build(e.children[1]);
    if (e.op != Op::kMultiply && e.type.numeric() && !AlignScales(e, a, b))
      return std::make_unique<RowByRow>(e, space_);
    NodePtr result = std::make_unique<Arithmetic>(e.op, std::move(a), std::move(b));
    if (e.type.kind != TypeKind::kDate || !WithinRange::Needed(result->bounds(), kLeastDay, kGreatestDay))
      return result;
    return std::make_unique<WithinRange>(std::move(result), kLeastDay, kGreatestDay,
                                         DateOutOfRange(e.position));
  }

  NodePtr Negate(const Expr& e) {
    Expr zero;
    zero.type = e.type;
    zero.literal = Value::Integer(0);
    return std::make_unique<Arithmetic>(Op::kSubtract, std::make_unique<Literal>(zero), Build(e.children[0]));
  }

  NodePtr Junct(const Expr& e) {
    std::vector<NodePtr> children;
    for (const Expr& child : e.children) children.push_back(Build(child));
    return std::make_unique<Junction>(e.op == Op::kAnd, std::move(children));
  }

  NodePtr Cast(const Expr& e) {
    const Type& from = e.children[0].type;
    if (from.kind == TypeKind::kInteger && e.type.kind == TypeKind::kInteger) {
      NodePtr a = Build(e.children[0]);
      const int bytes = plan::IntegerBytes(e);
      const int64_t high = std::numeric_limits<int64_t>::max() >> (64 - 8 * bytes), low = -high - 1;
      if (!WithinRange::Needed(a->bounds(), low, high)) return a;
      return std::make_unique<WithinRange>(std::move(a), low, high, IntegerOutOfRange(bytes, e.position));
    }
    if (from.numeric() && e.type.kind == TypeKind::kDecimal && e.type.scale >= from.scale) {
      return ScaleUp(Build(e.children[0]), from.scale, e.type.scale);
    }
    if (from.kind == TypeKind::kString && e.type.kind == TypeKind::kString) return Build(e.children[0]);
    return std::make_unique<RowByRow>(e, space_);
  }

  NodePtr Compare(const Expr& e) {
    const Type &x = e.children[0].type, &y = e.children[1].type;
    if (x.kind == TypeKind::kBool) return std::make_unique<RowByRow>(e, space_);
    NodePtr a = Build(e.children[0]), b = Build(e.children[1]);
    if (x.numeric() && y.numeric() && !AlignScales(e, a, b)) return std::make_unique<RowByRow>(e, space_);
    return std::make_unique<Comparison>(e.op, std::move(a), std::move(b), plan::IgnoresBlanks(x, y));
  }

  NodePtr Lookup(const Expr& e) {
    auto truth = TruthByCode(e, space_);
    if (!truth) return nullptr;
    return std::make_unique<CodeLookup>(space_, plan::ColumnsOf(e)[0], *std::move(truth));
  }

  const ColumnSpace& space_;
};

}  // namespace

std::optional<std::vector<uint8_t>> TruthByCode(const plan::Expr& expr, const ColumnSpace& space) {
  const std::vector<plan::ColumnRef> columns = plan::ColumnsOf(expr);
  if (columns.size() != 1) return std::nullopt;
  const ColumnMeaning& meaning = space.at(columns[0]).meaning;
  const bool text = meaning.type.kind == TypeKind::kString;
  if (meaning.codes == 0 || meaning.codes > (text ? kMostTextCodes : kMostNumberCodes)) return std::nullopt;
  const bool plain_like = text && expr.op == Op::kLike && expr.children[0].op == Op::kColumn &&
                          !plan::IsChar(expr.children[0].type);
  std::vector<uint8_t> truth(meaning.codes);
  for (uint64_t code = 0; code < meaning.codes; ++code) {
    // No row has the one code of a table without rows.
    if (text && !meaning.IsNull(code) && meaning.dictionary->size() <= code - meaning.nullable) continue;
    if (plain_like && !meaning.IsNull(code)) {
      truth[code] = plan::MatchesLike(meaning.Text(code), expr.literal.text);
      continue;
    }
    const auto value = plan::Evaluate(expr, [&](const Expr&) { return meaning.Decode(code); });
    if (!value.ok()) return std::nullopt;
    truth[code] = value->null ? Vector::kUnknown : value->number != 0;
  }
  return truth;
}

std::unique_ptr<VectorExpression> Compile(const plan::Expr& expr, const ColumnSpace& space) {
  return Compiler(space).Build(expr);
}

}  // namespace nam::computeserver
