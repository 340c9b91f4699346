#include "execution/expression/compile.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/cast.h"
#include "types/decimal.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::Expr;
using plan::Op;

constexpr int kDigitsOf64Bits = 18;

bool IsComparison(Op op) {
  return op >= Op::kEqual && op <= Op::kGreaterEqual;
}

bool IsNullLiteral(const Expr& e) {
  return e.op == Op::kLiteral && e.literal.null;
}

bool HasVectors(const Type& type) {
  return type.kind == TypeKind::kNull || type.HasValues();
}

/// Whether a cast has a vectorized form.
bool CastsVectors(const Type& from, const Type& to) {
  if (from.exact() && to.exact()) return true;
  if (from.kind == TypeKind::kNumeric && to.kind == TypeKind::kDouble) return true;
  // Text that becomes char(n) loses its blanks.
  if (from.kind == to.kind) return from.kind != TypeKind::kNull && (!plan::IsChar(to) || plan::IsChar(from));
  if (CastsReals(from, to)) return true;
  return (from.kind == TypeKind::kDate && to.kind == TypeKind::kTimestamp) ||
         (from.kind == TypeKind::kTimestamp && to.kind == TypeKind::kDate);
}

/// Operations that only the reference knows. They evaluate all of their operands.
bool NeedsReference(const Expr& e) {
  switch (e.op) {
    case Op::kCast:
      // The reference checks more digits than 64 bits have.
      if (e.type.kind == TypeKind::kDecimal && e.index > kDigitsOf64Bits) return true;
      return !CastsVectors(e.children[0].type, e.type);
    case Op::kFunction:
      return !HasVectorForm(e);
    case Op::kIn:
      if (e.children[0].type.packed()) return true;
      return !std::all_of(e.children.begin() + 1, e.children.end(),
                          [](const Expr& item) { return item.op == Op::kLiteral; });
    case Op::kColumn:
    case Op::kLiteral:
    case Op::kAnd:
    case Op::kOr:
    case Op::kCase:
    case Op::kIsNull:
    case Op::kNot:
      return false;
    default:
      // Equal packed values may have different bits.
      if (IsComparison(e.op) && e.children[0].type.packed()) return true;
      // A NULL literal has no type for vectors.
      return std::any_of(e.children.begin(), e.children.end(), IsNullLiteral);
  }
}

bool AnyNeedsReference(const Expr& e) {
  return NeedsReference(e) || std::any_of(e.children.begin(), e.children.end(), AnyNeedsReference);
}

constexpr int kNoSlot = -1, kManySlots = -2;

/// The slot of an expression over just one; else -1.
int SlotOf(const Expr& e) {
  if (e.op == Op::kColumn) return e.column.column;
  int slot = kNoSlot;
  for (const Expr& child : e.children) {
    const int of = SlotOf(child);
    if (of == kNoSlot) continue;
    if (of == kManySlots || (slot != kNoSlot && slot != of)) return kManySlots;
    slot = of;
  }
  return slot;
}

class Compiler {
 public:
  Compiler(const plan::Schema& input, MemoShare* memos, size_t* by_row)
      : input_(input), memos_(memos), by_row_(by_row) {}

  absl::Status Check(const Expr& e) const {
    if (e.op == Op::kColumn) {
      const auto slot = static_cast<size_t>(e.column.column);
      if (e.column.column < 0 || slot >= input_.size())
        return absl::InvalidArgumentError(absl::StrCat("there is no slot ", e.column.column));
      if (input_[slot].type.kind != e.type.kind || input_[slot].type.scale != e.type.scale)
        return absl::InvalidArgumentError(absl::StrCat("slot ", slot, " has another type"));
    }
    if (!HasVectors(e.type)) return Refusal("values of type " + TypeName(e.type), e.position);
    for (const Expr& child : e.children) NAM_RETURN_IF_ERROR(Check(child));
    return absl::OkStatus();
  }

  NodePtr Build(const Expr& e) {
    if (e.op == Op::kLiteral) return MakeLiteral(e.literal, e.type);
    if (e.op == Op::kColumn) {
      const auto slot = static_cast<uint32_t>(e.column.column);
      return MakeLoad(slot, input_[slot]);
    }
    const int about = SlotOf(e);
    if (about == kNoSlot) return Constant(e);
    if (about == kManySlots || in_map_) return Operation(e);
    const auto slot = static_cast<uint32_t>(about);
    // Over numbers a loop is faster than a look-up, but the reference is not.
    if (PhysicalOf(input_[slot].type) != Physical::kText && !AnyNeedsReference(e)) return Operation(e);
    in_map_ = true;
    NodePtr general = Operation(e);
    in_map_ = false;
    return MakeDictionaryMap(slot, std::move(general), memos_);
  }

 private:
  /// An expression without columns: its value, or its error where it is evaluated.
  NodePtr Constant(const Expr& e) {
    const absl::StatusOr<Value> value = plan::Evaluate(e, [](const Expr&) { return Value(); });
    if (value.ok() && (value->null || value->type.scale == e.type.scale)) return MakeLiteral(*value, e.type);
    ++*by_row_;
    return MakeByRow(e, {}, memos_);
  }

  NodePtr Operation(const Expr& e) {
    if (NeedsReference(e)) return ByRow(e);
    switch (e.op) {
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kMultiply:
      case Op::kDivide:
      case Op::kModulo: {
        NodePtr a = Build(e.children[0]);
        if (e.type.real()) return MakeRealArithmetic(e, std::move(a), Build(e.children[1]));
        if (e.type.kind == TypeKind::kNumeric)
          return MakeNumericArithmetic(e, std::move(a), Build(e.children[1]));
        return MakeArithmetic(e, std::move(a), Build(e.children[1]));
      }
      case Op::kNegate:
        if (e.type.kind == TypeKind::kNumeric) return MakeNumericNegate(Build(e.children[0]));
        return e.type.real() ? MakeRealNegate(Build(e.children[0])) : MakeNegate(Build(e.children[0]));
      case Op::kFunction:
        return MakeFunction(e, BuildAll(e));
      case Op::kAnd:
      case Op::kOr:
        return MakeJunction(e.op == Op::kAnd, BuildAll(e));
      case Op::kNot:
        return MakeNot(Build(e.children[0]));
      case Op::kIsNull:
        return MakeIsNull(Build(e.children[0]));
      case Op::kIn:
        return MakeIn(Build(e.children[0]), e.children[0].type, std::span(e.children).subspan(1));
      case Op::kLike:
        return MakeLike(Build(e.children[0]), e.children[0].type, e.literal.text);
      case Op::kCase:
        return Case(e);
      case Op::kCast:
        return Cast(e);
      case Op::kExtractYear:
      case Op::kExtractMonth:
      case Op::kExtractDay:
        return MakeExtract(e.op, Build(e.children[0]));
      default:
        break;
    }
    if (!IsComparison(e.op)) return ByRow(e);
    NodePtr a = Build(e.children[0]);
    return MakeComparison(e, std::move(a), Build(e.children[1]));
  }

  std::vector<NodePtr> BuildAll(const Expr& e) {
    std::vector<NodePtr> children;
    for (const Expr& child : e.children) children.push_back(Build(child));
    return children;
  }

  NodePtr ByRow(const Expr& e) {
    ++*by_row_;
    return MakeByRow(e, BuildAll(e), memos_);
  }

  NodePtr Case(const Expr& e) {
    std::vector<std::pair<NodePtr, NodePtr>> branches;
    const auto branch = [this](const Expr& then) { return IsNullLiteral(then) ? nullptr : Build(then); };
    for (size_t i = 0; i + 1 < e.children.size(); i += 2) {
      NodePtr when = Build(e.children[i]);
      branches.emplace_back(std::move(when), branch(e.children[i + 1]));
    }
    branches.emplace_back(nullptr, branch(e.children.back()));
    return MakeCase(std::move(branches), PhysicalOf(e.type));
  }

  NodePtr Cast(const Expr& e) {
    NodePtr a = Build(e.children[0]);
    const Type& from = e.children[0].type;
    if (from.kind == TypeKind::kDate && e.type.kind == TypeKind::kTimestamp)
      return MakeTimestampOfDate(std::move(a));
    if (from.kind == TypeKind::kTimestamp && e.type.kind == TypeKind::kDate)
      return MakeDateOfTimestamp(std::move(a));
    if (from.kind == TypeKind::kNumeric && e.type.kind == TypeKind::kDouble)
      return MakeDoubleOfNumeric(std::move(a));
    if (CastsReals(from, e.type)) return MakeRealCast(e, std::move(a));
    if (!from.exact() || (from.kind == TypeKind::kNumeric && from == e.type)) return a;
    if (e.type.kind == TypeKind::kNumeric) return MakeNumeric(std::move(a), from.scale, e.position);
    a = from.kind == TypeKind::kNumeric ? MakeDecimalOfNumeric(std::move(a), e.type.scale, e.position)
                                        : MakeRescale(std::move(a), from.scale, e.type.scale, e.position);
    if (e.type.kind == TypeKind::kDecimal) {
      if (e.index <= 0) return a;
      const auto most = static_cast<int64_t>(PowerOfTen(e.index) - 1);
      return MakeWithinRange(std::move(a), -most, most, plan::NumericFieldOverflow(e));
    }
    const int bytes = plan::IntegerBytes(e);
    const int64_t high = std::numeric_limits<int64_t>::max() >> (64 - 8 * bytes);
    return MakeWithinRange(std::move(a), -high - 1, high, IntegerOutOfRange(bytes, e.position));
  }

  const plan::Schema& input_;
  MemoShare* const memos_;
  size_t* const by_row_;
  bool in_map_ = false;  // below a DictionaryMap, which looks up everything
};

}  // namespace

absl::StatusOr<NodePtr> CompileExpression(const Expr& e, const plan::Schema& input, MemoShare* memos,
                                          size_t* by_row) {
  Compiler compiler(input, memos, by_row);
  NAM_RETURN_IF_ERROR(compiler.Check(e));
  return compiler.Build(e);
}

}  // namespace nam::execution
