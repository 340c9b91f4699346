#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "partitioner/staging.h"
#include "proto/table.pb.h"
#include "storage/block.h"

namespace nam::partitioner {

/// The storage format of one column's staged values. Made once per load and read by all its threads.
struct ColumnCode {
  uint8_t width = 1;
  bool nullable = false;
  bool plain = false;                      // not encoded: numbers of 128 bits, or texts
  bool text = false;                       // texts, as are the next two members
  int64_t base = 0;                        // code = value - base; 0 is NULL if nullable
  std::vector<uint32_t> place_of;          // the collector's number to the dictionary's
  std::vector<std::string_view> sorted;    // the dictionary
  std::vector<std::string_view> numbered;  // plain: by the collector's number, for the first rows

  bool plain_text() const { return plain && text; }
  /// A non-NULL value of a plain text column.
  std::string_view TextOf(const StagedChunk::Column& column, uint32_t row) const {
    return column.numbered() ? numbered[static_cast<size_t>(column.at(row))] : column.text_at(row);
  }
};

ColumnCode PlanColumn(const StagedTable& staged, size_t column);

/// Encodes the rows of one partition in their final order, from the staged chunks, one block at a time. One
/// thread; reusable.
class PartitionEncoder {
 public:
  PartitionEncoder(const StagedTable& staged, const std::vector<ColumnCode>& codes, int sort_column)
      : staged_(staged), codes_(codes), sort_column_(sort_column) {}

  /// Finds the partition's rows in all chunks, and orders them by the sort column.
  void Start(uint32_t partition);
  /// Text bytes per row of a plain column.
  std::vector<uint32_t> TextBytes(size_t column) const;
  /// Writes rows [first, first + rows) of every column into the block's mini-pages.
  void Encode(uint64_t first, uint32_t rows, storage::BlockWriter& block);

 private:
  struct Run {  // consecutive rows of one chunk
    const StagedChunk* chunk;
    uint32_t first;
    uint32_t rows;
    uint64_t before;  // rows of earlier runs
  };
  /// Calls `take` for each of the rows [first, first + rows), in order, with the chunk's column, the row in
  /// it and the row's position relative to `first`.
  template <typename Take>
  void ForRows(size_t column, uint64_t first, uint64_t rows, Take take) const;
  uint64_t CodeOf(const ColumnCode& code, const StagedChunk::Column& column, uint32_t row) const;
  void Codes(size_t column, uint64_t first, uint32_t rows, uint64_t* out) const;
  template <typename Less>
  void OrderBy(Less less);
  void Order();

  const StagedTable& staged_;
  const std::vector<ColumnCode>& codes_;
  const int sort_column_;
  std::vector<Run> runs_;
  uint64_t rows_ = 0;  // in all runs
  /// The rows in final order, as run and row in the chunk. Empty: the order of the runs.
  struct Place {
    uint32_t run;
    uint32_t row;
  };
  std::vector<Place> places_;
  std::vector<uint64_t> codes_of_block_;
};

}  // namespace nam::partitioner
