#include "optimizer/filtered_scan.h"

#include <vector>

#include "optimizer/cardinality.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::Expr;

void RenameRelation(Expr& expr, int from, int to) {
  if (expr.op == plan::Op::kColumn && expr.column.table == from) expr.column.table = to;
  for (Expr& child : expr.children) RenameRelation(child, from, to);
}

std::optional<FilteredScan> AsFilteredScan(const lg::Node& node) {
  const auto* filter = node.As<lg::Filter>();
  const auto* scan = filter != nullptr ? node.input().As<lg::Scan>() : node.As<lg::Scan>();
  if (scan == nullptr) return std::nullopt;
  FilteredScan out{.node = &node, .scan = scan};
  if (filter != nullptr && !scan->table->has_record()) {
    out.share = Cardinalities(node.input()).ShareOf(filter->conditions);
  }
  out.rows = out.share * static_cast<double>(scan->table->rows());
  return out;
}

}  // namespace nam::optimizer
