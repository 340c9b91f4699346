#include "optimizer/join_keys.h"

#include <algorithm>
#include <utility>

#include "plan/expression_tree.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::ColumnRef;
using plan::Expr;
using plan::Op;

namespace {

/// Whether all numbers of the key fit the larger scale, too.
bool FitsAtScale(const Expr& key, int scale, const Cardinalities& cardinalities) {
  constexpr int kIntegerDigits = 19;
  if (!key.type.numeric() || key.type.scale == scale) return true;
  int digits = key.type.kind == TypeKind::kInteger ? kIntegerDigits : kMaxDecimalDigits;
  const StoredColumn* const stored = cardinalities.StoredOf(key);
  if (stored != nullptr && key.type.kind != TypeKind::kInteger && stored->column->type().precision() > 0)
    digits = static_cast<int>(stored->column->type().precision());
  return digits + scale - key.type.scale <= kMaxDecimalDigits;
}

Expr AtScale(Expr e, uint8_t scale) {
  if (!e.type.numeric() || e.type.scale == scale) return e;
  return plan::MakeNode(Op::kCast, Type::Decimal(scale), e.position, {std::move(e)});
}

bool NamesOnly(const Expr& expr, const ColumnSet& columns) {
  ColumnSet names;
  AddColumns(expr, names);
  return !names.empty() &&
         std::all_of(names.begin(), names.end(), [&](ColumnRef column) { return columns.contains(column); });
}

/// An equality as a key of each side. Not exact: it must be checked beside the keys, too.
struct KeyPair {
  Expr left, right;
  bool exact = true;
  bool unique = false;  // in the right input's table
};

std::optional<KeyPair> KeyPairOf(const Expr& condition, const ColumnSet& left, const ColumnSet& right,
                                 const Cardinalities& cardinalities) {
  if (condition.op != Op::kEqual) return std::nullopt;
  Expr a = condition.children[0], b = condition.children[1];
  if (NamesOnly(a, right) && NamesOnly(b, left)) std::swap(a, b);
  if (!NamesOnly(a, left) || !NamesOnly(b, right) || !CanBeKey(a.type, b.type)) return std::nullopt;
  const uint8_t smaller = std::min(a.type.scale, b.type.scale);
  const uint8_t larger = std::max(a.type.scale, b.type.scale);
  const bool exact = FitsAtScale(a, larger, cardinalities) && FitsAtScale(b, larger, cardinalities);
  const uint8_t scale = exact ? larger : smaller;
  const StoredColumn* const stored = cardinalities.StoredOf(b);
  const bool unique = exact && stored != nullptr && stored->column->unique();
  return KeyPair{AtScale(std::move(a), scale), AtScale(std::move(b), scale), exact, unique};
}

}  // namespace

bool CanBeKey(const Type& a, const Type& b) {
  if (a.numeric() && b.numeric()) return true;
  if (a.packed()) return false;
  return a.kind == b.kind && a.scale == b.scale;
}

std::vector<Expr> EqualitiesOf(const Expr& condition) {
  const auto sides = lg::NotDistinctSides(condition);
  if (!sides.has_value() || !CanBeKey(sides->first->type, sides->second->type)) return {condition};
  std::vector<Expr> values, tests;
  for (const Expr* side : {sides->first, sides->second}) {
    const Expr instead = plan::MakeLiteral(Value{side->type, false, 0, {}}, side->position);
    Expr test = plan::MakeNode(Op::kIsNull, Type::Bool(), side->position, {*side});
    values.push_back(plan::MakeNode(Op::kCase, side->type, side->position, {test, instead, *side}));
    tests.push_back(std::move(test));
  }
  return {plan::MakeNode(Op::kEqual, Type::Bool(), condition.position, std::move(values)),
          plan::MakeNode(Op::kEqual, Type::Bool(), condition.position, std::move(tests))};
}

JoinKeys JoinKeysOf(const std::vector<Expr>& conditions, const ColumnSet& left, const ColumnSet& right,
                    const Cardinalities& cardinalities, bool unique) {
  struct Equality {
    Expr condition;
    KeyPair key;
  };
  std::vector<Equality> equalities;
  std::vector<Expr> residuals;
  for (const Expr& condition : conditions) {
    for (Expr& part : EqualitiesOf(condition)) {
      std::optional<KeyPair> key = KeyPairOf(part, left, right, cardinalities);
      if (key.has_value()) {
        equalities.push_back({std::move(part), *std::move(key)});
      } else {
        residuals.push_back(std::move(part));
      }
    }
  }
  auto only = equalities.end();
  if (unique)
    only = std::find_if(equalities.begin(), equalities.end(), [](const Equality& e) { return e.key.unique; });
  JoinKeys keys;
  for (auto e = equalities.begin(); e != equalities.end(); ++e) {
    const bool is_key = only == equalities.end() || e == only;
    if (!is_key || !e->key.exact) keys.residuals.push_back(std::move(e->condition));
    if (!is_key) continue;
    keys.left.push_back(std::move(e->key.left));
    keys.right.push_back(std::move(e->key.right));
  }
  // Equalities beside the keys are checked before other conditions.
  std::move(residuals.begin(), residuals.end(), std::back_inserter(keys.residuals));
  return keys;
}

}  // namespace nam::optimizer
