#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "plan/expression.h"
#include "proto/table.pb.h"

namespace nam::optimizer {

/// A table's column. Columns of derived tables that only pass it on are the same.
struct StoredColumn {
  const proto::Column* column = nullptr;
  uint64_t rows = 0;  // of the table
};
using StoredColumns = std::map<plan::ColumnRef, StoredColumn>;

/// The estimated share of rows, 0 … 1, for which all `conditions` are true, from the loader's statistics of
/// those columns that are stored (optimizer/column_share.h). Takes columns as independent of each other;
/// intersects ranges of one column.
double Selectivity(const StoredColumns& stored, std::span<const plan::Expr> conditions);

}  // namespace nam::optimizer
