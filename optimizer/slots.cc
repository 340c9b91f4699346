#include "optimizer/slots.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "plan/post_order.h"

namespace nam::optimizer {

using plan::Expr;

std::vector<uint32_t> SlotsWhere(const Layout& layout, const ColumnSet& wanted) {
  std::vector<uint32_t> slots;
  for (uint32_t slot = 0; slot < layout.size(); ++slot) {
    if (wanted.contains(layout[slot])) slots.push_back(slot);
  }
  return slots;
}

std::vector<uint32_t> FirstNumbers(size_t n) {
  std::vector<uint32_t> numbers(n);
  for (uint32_t i = 0; i < n; ++i) numbers[i] = i;
  return numbers;
}

absl::StatusOr<Expr> OverSlots(const Expr& expr, const Layout& layout) {
  NAM_RETURN_IF_ERROR(plan::ForPostOrder(expr, [](const Expr&) { return absl::OkStatus(); }));
  Expr out = expr;
  std::vector<Expr*> open{&out};
  while (!open.empty()) {
    Expr& e = *open.back();
    open.pop_back();
    if (e.op == plan::Op::kColumn) {
      const auto found = std::find(layout.begin(), layout.end(), e.column);
      if (found == layout.end())
        return absl::InvalidArgumentError("not a plan: a column that is not joined yet, or that is not read");
      e.column = {0, static_cast<int>(found - layout.begin())};
    }
    for (Expr& child : e.children) open.push_back(&child);
  }
  return out;
}

absl::StatusOr<std::vector<Expr>> OverSlots(const std::vector<Expr>& exprs, const Layout& layout) {
  std::vector<Expr> out;
  for (const Expr& expr : exprs) {
    NAM_ASSIGN_OR_RETURN(Expr over, OverSlots(expr, layout));
    out.push_back(std::move(over));
  }
  return out;
}

void AddColumns(const Expr& expr, ColumnSet& columns) {
  std::vector<const Expr*> open{&expr};
  while (!open.empty()) {
    const Expr& e = *open.back();
    open.pop_back();
    if (e.op == plan::Op::kColumn) columns.insert(e.column);
    for (const Expr& child : e.children) open.push_back(&child);
  }
}

void AddColumns(const std::vector<Expr>& exprs, ColumnSet& columns) {
  for (const Expr& expr : exprs) AddColumns(expr, columns);
}

}  // namespace nam::optimizer
