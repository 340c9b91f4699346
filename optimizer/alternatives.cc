#include "optimizer/alternatives.h"

#include <algorithm>
#include <utility>

#include "plan/expression_tree.h"

namespace nam::optimizer {

using plan::Expr;
using plan::Op;

namespace {

std::vector<Expr> ConjunctsOf(const Expr& alternative) {
  return alternative.op == Op::kAnd ? alternative.children : std::vector<Expr>{alternative};
}

Expr Together(Op op, std::vector<Expr> parts, int position) {
  if (parts.size() == 1) return std::move(parts[0]);
  return plan::MakeNode(op, Type::Bool(), position, std::move(parts));
}

bool Has(const std::vector<Expr>& parts, const Expr& wanted) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const Expr& part) { return plan::SameExpr(part, wanted); });
}

/// Appends the common conditions of an OR's alternatives, then its rest, which may be empty.
void AppendFactored(Expr condition, std::vector<Expr>& out) {
  std::vector<std::vector<Expr>> alternatives;
  for (const Expr& alternative : condition.children) alternatives.push_back(ConjunctsOf(alternative));
  std::vector<Expr> common;
  for (const Expr& part : alternatives[0]) {
    // A condition that may fail stays after those that guard it.
    if (MayFail(part) || Has(common, part)) continue;
    if (std::all_of(alternatives.begin(), alternatives.end(),
                    [&](const std::vector<Expr>& parts) { return Has(parts, part); })) {
      common.push_back(part);
    }
  }
  if (common.empty()) {
    out.push_back(std::move(condition));
    return;
  }
  std::vector<Expr> rest;
  bool always = false;  // an alternative has nothing else
  for (std::vector<Expr>& parts : alternatives) {
    std::erase_if(parts, [&](const Expr& part) { return Has(common, part); });
    always |= parts.empty();
    if (!parts.empty()) rest.push_back(Together(Op::kAnd, std::move(parts), condition.position));
  }
  std::move(common.begin(), common.end(), std::back_inserter(out));
  if (!always) out.push_back(Together(Op::kOr, std::move(rest), condition.position));
}

}  // namespace

bool IsConditionOn(const std::vector<plan::logical::Column>& columns, const Expr& condition) {
  const std::vector<plan::ColumnRef> names = plan::ColumnsOf(condition);
  return !names.empty() && std::all_of(names.begin(), names.end(), [&](plan::ColumnRef name) {
    return plan::logical::FindColumn(columns, name) != nullptr;
  });
}

bool MayFail(const Expr& expr) {
  if (expr.op == Op::kDivide || expr.op == Op::kModulo || expr.op == Op::kCast || expr.op == Op::kFunction)
    return true;
  return std::any_of(expr.children.begin(), expr.children.end(), MayFail);
}

void FactorAlternatives(std::vector<Expr>& conditions) {
  std::vector<Expr> factored;
  for (Expr& condition : conditions) {
    if (condition.op == Op::kOr) {
      AppendFactored(std::move(condition), factored);
    } else {
      factored.push_back(std::move(condition));
    }
  }
  conditions = std::move(factored);
}

std::optional<Expr> ImpliedOn(const std::vector<plan::logical::Column>& columns, const Expr& condition) {
  if (condition.op != Op::kOr) return std::nullopt;
  std::vector<Expr> implied;
  for (const Expr& alternative : condition.children) {
    std::vector<Expr> parts = ConjunctsOf(alternative);
    std::erase_if(parts, [&](const Expr& part) { return MayFail(part) || !IsConditionOn(columns, part); });
    if (parts.empty()) return std::nullopt;
    Expr said = Together(Op::kAnd, std::move(parts), condition.position);
    if (!Has(implied, said)) implied.push_back(std::move(said));
  }
  return Together(Op::kOr, std::move(implied), condition.position);
}

}  // namespace nam::optimizer
