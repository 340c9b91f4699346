#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "partitioner/staging.h"
#include "proto/catalog.pb.h"
#include "storage/block.h"

namespace nam::partitioner {

/// How one column's staged values become codes; made once per load, read by all its threads.
struct ColumnCode {
  uint8_t width = 1;
  bool nullable = false;
  int64_t base = 0;                      // code = value - base, 0 is NULL if nullable
  std::vector<uint32_t> place_of;        // strings: from the collector's number to the dictionary's
  std::vector<std::string_view> sorted;  // strings: the dictionary
};

absl::StatusOr<ColumnCode> PlanColumn(const StagedTable& staged, size_t column);

/// The rows of one partition in their final order, column by column. One thread; reused.
class PartitionEncoder {
 public:
  PartitionEncoder(const StagedTable& staged, const std::vector<ColumnCode>& codes, int sort_column)
      : staged_(staged), codes_(codes), sort_column_(sort_column) {}

  /// Gathers the partition's rows from all chunks and orders them by the sort column.
  void Start(uint32_t partition);
  /// Writes the codes of rows [first, first + rows) of every column into the block's mini-pages.
  void Encode(uint64_t first, uint32_t rows, storage::BlockWriter& block);

 private:
  struct Run {  // consecutive rows of one chunk
    const StagedChunk* chunk;
    uint32_t first;
    uint32_t rows;
  };
  uint64_t CodeOf(const ColumnCode& code, const StagedChunk::Column& column, uint32_t row) const;
  void Gather(size_t column);

  const StagedTable& staged_;
  const std::vector<ColumnCode>& codes_;
  const int sort_column_;
  std::vector<Run> runs_;
  std::vector<uint32_t> order_;  // final order: positions in the concatenated runs; empty if unsorted
  std::vector<uint64_t> sort_keys_;
  std::vector<std::vector<uint64_t>> codes_of_;  // per column, in final order
  std::vector<uint64_t> concatenated_;
};

}  // namespace nam::partitioner
