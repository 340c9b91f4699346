#pragma once

#include <algorithm>
#include <cstdint>

#include "partitioner/column_batch.h"
#include "ssb/chunk_run.h"
#include "ssb/generator.h"

namespace nam::ssb {

/// A generated table as chunks of one batch each, the same for any number of threads.
class GeneratedChunks {
 public:
  /// `generator` outlives it.
  GeneratedChunks(const Generator& generator, Table table, const WorkOptions& options)
      : generator_(generator), table_(table), rows_(generator.Rows(table)) {
    constexpr uint32_t kLinesPerOrder = 4;  // on average
    const uint32_t rows_per_unit = table == Table::kLineorder ? kLinesPerOrder : 1;
    units_per_chunk_ = std::max<uint64_t>(1, options.batch_rows / rows_per_unit);
  }

  uint64_t rows() const { return rows_; }
  uint64_t count() const { return (generator_.Units(table_) + units_per_chunk_ - 1) / units_per_chunk_; }
  partitioner::ColumnBatch NewBatch() const {
    return partitioner::ColumnBatch(Tables()[static_cast<size_t>(table_)].columns.size());
  }
  void Fill(uint64_t chunk, partitioner::ColumnBatch& batch) const {
    const uint64_t first = chunk * units_per_chunk_;
    generator_.Fill(table_, first, std::min(units_per_chunk_, generator_.Units(table_) - first), batch);
  }

 private:
  const Generator& generator_;
  const Table table_;
  const uint64_t rows_;
  uint64_t units_per_chunk_;
};

}  // namespace nam::ssb
