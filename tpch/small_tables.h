#pragma once

#include <cstdint>

#include "partitioner/column_batch.h"

/// The tables with the same rows at every scale factor.
namespace nam::tpch {

void FillRegion(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch);
void FillNation(uint64_t first, uint64_t count, partitioner::ColumnBatch& batch);

}  // namespace nam::tpch
