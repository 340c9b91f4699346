#pragma once

#include <span>

#include "optimizer/plan.h"

namespace nam::optimizer {

const proto::Column& ColumnOf(const StarQuery& query, plan::ColumnRef ref);

/// The share of a table's rows, 0 … 1, of which all `conditions` are estimated to be true, from what the
/// loader has found of columns (optimizer/column_share.h). Columns are taken to be independent of each other;
/// ranges of one column are intersected.
double Selectivity(const StarQuery& query, std::span<const plan::Expr> conditions);

}  // namespace nam::optimizer
