#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "partitioner/staging.h"
#include "proto/catalog.pb.h"
#include "storage/block.h"

namespace nam::partitioner {

/// How one column's staged values are stored; made once per load, read by all its threads.
struct ColumnCode {
  uint8_t width = 1;
  bool nullable = false;
  bool plain = false;                      // no codes: numbers of 128 bits, or texts
  bool text = false;                       // and the next two are of texts
  int64_t base = 0;                        // code = value - base, 0 is NULL if nullable
  std::vector<uint32_t> place_of;          // from the collector's number to the dictionary's
  std::vector<std::string_view> sorted;    // the dictionary
  std::vector<std::string_view> numbered;  // plain: by the collector's number, of rows that came first

  bool plain_text() const { return plain && text; }
  /// A value of a plain text column that is not NULL.
  std::string_view TextOf(const StagedChunk::Column& column, uint32_t row) const {
    return column.numbered() ? numbered[static_cast<size_t>(column.at(row))] : column.text_at(row);
  }
};

absl::StatusOr<ColumnCode> PlanColumn(const StagedTable& staged, size_t column);

/// The rows of one partition in their final order, column by column. One thread; reused.
class PartitionEncoder {
 public:
  PartitionEncoder(const StagedTable& staged, const std::vector<ColumnCode>& codes, int sort_column)
      : staged_(staged), codes_(codes), sort_column_(sort_column) {}

  /// Orders the partition's rows, of all chunks, by the sort column.
  void Order(uint32_t partition);
  /// Of the rows' texts in a plain column.
  std::vector<uint32_t> TextBytes(size_t column);
  /// Orders the rows and gathers what Encode takes.
  void Start(uint32_t partition);
  /// Writes rows [first, first + rows) of every column into the block's mini-pages.
  void Encode(uint64_t first, uint32_t rows, storage::BlockWriter& block);

 private:
  struct Run {  // consecutive rows of one chunk
    const StagedChunk* chunk;
    uint32_t first;
    uint32_t rows;
  };
  /// A column in final order; one of these is used.
  struct Gathered {
    std::vector<uint64_t> codes;
    std::vector<__int128> wide;
    std::vector<std::string_view> texts;  // data() == nullptr: NULL
  };
  uint64_t CodeOf(const ColumnCode& code, const StagedChunk::Column& column, uint32_t row) const;
  /// `of` each row, in the order of runs_ and then that of order_.
  template <typename T, typename Of>
  void Gather(size_t column, std::vector<T>& out, Of of);
  void GatherCodes(size_t column, std::vector<uint64_t>& out);
  void GatherWide(size_t column, std::vector<__int128>& out);
  void GatherTexts(size_t column, std::vector<std::string_view>& out);
  void OrderByCodes();

  const StagedTable& staged_;
  const std::vector<ColumnCode>& codes_;
  const int sort_column_;
  std::vector<Run> runs_;
  std::vector<uint32_t> order_;  // final order: positions in the concatenated runs; empty if unsorted
  std::vector<uint64_t> sort_keys_;
  std::vector<Gathered> columns_;
};

}  // namespace nam::partitioner
