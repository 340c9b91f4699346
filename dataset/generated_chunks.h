#pragma once

#include <algorithm>
#include <cstdint>

#include "dataset/chunk_run.h"
#include "dataset/generator.h"
#include "partitioner/column_batch.h"

namespace nam::dataset {

/// A generated table as chunks of one batch each, independent of the number of threads.
class GeneratedChunks {
 public:
  /// `generator` must outlive this object.
  GeneratedChunks(const Generator& generator, size_t table, const WorkOptions& options)
      : generator_(generator), table_(table), rows_(generator.Rows(table)) {
    const uint64_t rows_per_unit = std::max<uint64_t>(
        1, (rows_ + generator.Units(table) / 2) / std::max<uint64_t>(1, generator.Units(table)));
    units_per_chunk_ = std::max<uint64_t>(1, options.batch_rows / rows_per_unit);
  }

  const Table& table() const { return generator_.tables()[table_]; }
  uint64_t rows() const { return rows_; }
  uint64_t count() const { return (generator_.Units(table_) + units_per_chunk_ - 1) / units_per_chunk_; }
  partitioner::ColumnBatch NewBatch() const {
    return partitioner::ColumnBatch(table().schema.columns.size());
  }
  void Fill(uint64_t chunk, partitioner::ColumnBatch& batch) const {
    const uint64_t first = chunk * units_per_chunk_;
    generator_.Fill(table_, first, std::min(units_per_chunk_, generator_.Units(table_) - first), batch);
  }

 private:
  const Generator& generator_;
  const size_t table_;
  const uint64_t rows_;
  uint64_t units_per_chunk_;
};

}  // namespace nam::dataset
