#pragma once

#include <optional>

#include "plan/logical.h"

namespace nam::optimizer {

/// A scan, or a filter over a scan: the input of joins after filters are pushed down.
struct FilteredScan {
  const plan::logical::Node* node = nullptr;  // the filter, if any
  const plan::logical::Scan* scan = nullptr;
  double share = 1;  // of the table's rows that meet its conditions; record tables have no statistics
  double rows = 0;   // … as a number
};

/// nullopt if the node is something else.
std::optional<FilteredScan> AsFilteredScan(const plan::logical::Node& node);

/// Renames the columns of one relation to those of another.
void RenameRelation(plan::Expr& expr, int from, int to);

}  // namespace nam::optimizer
