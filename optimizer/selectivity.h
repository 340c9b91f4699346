#pragma once

#include <span>

#include "optimizer/plan.h"

namespace nam::optimizer {

const proto::Column& ColumnOf(const StarQuery& query, plan::ColumnRef ref);

/// The estimated share of a table's rows, 0 … 1, for which all `conditions` are true, from the loader's
/// statistics (optimizer/column_share.h). Takes columns as independent of each other; intersects ranges of
/// one column.
double Selectivity(const StarQuery& query, std::span<const plan::Expr> conditions);

}  // namespace nam::optimizer
