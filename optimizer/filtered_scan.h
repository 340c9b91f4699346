#pragma once

#include <optional>

#include "plan/logical.h"

namespace nam::optimizer {

/// A scan, or a filter over a scan, as what joins have below them once filters are pushed down.
struct FilteredScan {
  const plan::logical::Node* node = nullptr;  // the filter, if there is one
  const plan::logical::Scan* scan = nullptr;
  double share = 1;  // of the table's rows that its conditions leave; record tables have no statistics
  double rows = 0;   // … and how many that are
};

/// Nothing if the node is something else.
std::optional<FilteredScan> AsFilteredScan(const plan::logical::Node& node);

/// Conditions over the columns of one relation become conditions over those of another one.
void RenameRelation(plan::Expr& expr, int from, int to);

}  // namespace nam::optimizer
