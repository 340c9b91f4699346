#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "partitioner/column_batch.h"
#include "partitioner/narrow_numbers.h"
#include "partitioner/table_schema.h"

namespace nam::partitioner {

/// The distinct strings of one column as they come in, numbered in that order, as long as they are few: a
/// column of which most strings are new gets no dictionary. Thread-safe.
class StringCollector {
 public:
  /// So many strings are few in any column, and a dictionary of so many is not too large.
  static constexpr size_t kFew = 1 << 16;
  static constexpr size_t kMost = 1 << 22;
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  /// Beyond kFew, a string comes so often on average.
  static constexpr uint64_t kRowsPerString = 8;

  StringCollector();
  /// Replaces each of `strings` by its number. False: the column's strings are too many, and get none.
  bool Number(const std::vector<std::string_view>& strings, const std::vector<uint8_t>& nulls,
              std::vector<uint32_t>& numbers);
  // After the last Number:
  bool few() const { return !many_; }
  /// The strings in byte order, and for each number its place in that order.
  void Sort(std::vector<std::string_view>& sorted, std::vector<uint32_t>& place_of) const;
  std::vector<std::string_view> ByNumber() const;
  /// What the strings take, about.
  uint64_t held_bytes() const { return held_bytes_; }

 private:
  std::atomic<bool> many_ = false;
  std::atomic<uint64_t> held_bytes_ = 0;
  std::mutex mutex_;  // guards:
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  size_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t rows_ = 0;
};

/// A batch after partitioning: rows grouped by partition, columns as small as they fit.
struct StagedChunk {
  struct Column {
    NarrowNumbers numbers;  // one of these is used
    std::vector<__int128> plain;
    NarrowNumbers ends;  // of the rows' texts in `text`
    std::string text;
    std::vector<uint8_t> nulls;  // empty if there are none
    int64_t at(uint32_t row) const { return numbers[row]; }
    __int128 wide_at(uint32_t row) const { return plain.empty() ? at(row) : plain[row]; }
    /// Of a column whose strings are numbered; others have texts.
    bool numbered() const { return ends.empty(); }
    std::string_view text_at(uint32_t row) const {
      const auto begin = static_cast<size_t>(row == 0 ? 0 : ends[row - 1]);
      return {text.data() + begin, static_cast<size_t>(ends[row]) - begin};
    }
    bool IsNull(uint32_t row) const { return !nulls.empty() && nulls[row] != 0; }
  };
  std::vector<uint32_t> partition_start;  // partitions + 1
  std::vector<Column> columns;            // few strings: numbers of the StringCollector
  uint64_t held_bytes() const;
};

/// All rows of a table on their way in, until Commit lays them out. Append by any number of threads.
class StagedTable {
 public:
  /// `bytes_max`: what the rows may take.
  explicit StagedTable(const TableSchema& schema, uint64_t bytes_max = UINT64_MAX);

  /// 53200 if the rows take more than they may. Some of these may be staged then: no row is to follow.
  absl::Status Append(const ColumnBatch& batch);

  struct ColumnRange {
    int64_t min = 0;  // of numbers; of few strings: of their numbers
    int64_t max = 0;
    uint64_t nulls = 0;
    uint64_t values = 0;  // that are not null
  };
  // After the last Append:
  const TableSchema& schema() const { return schema_; }
  uint32_t partitions() const { return partitions_; }
  uint64_t rows() const { return rows_; }
  ColumnRange RangeOf(size_t column) const;
  uint64_t RowsOf(uint32_t partition) const;
  /// How many different numbers a column holds: counted where they lie close together, and otherwise the most
  /// that there can be.
  uint64_t Distinct(size_t column) const;
  /// Whether numbers that are so far apart at most are counted: one bit each stays in a near cache.
  static bool Counts(uint64_t spread) { return spread < 1 << 20; }
  /// Whether a column of numbers holds none twice. False also where finding out would take too much memory.
  bool Unique(size_t column) const;
  const std::vector<std::unique_ptr<StagedChunk>>& chunks() const { return chunks_; }
  const StringCollector& strings(size_t column) const { return *strings_[column]; }
  /// Whether a column of the form kWide has a value that 64 bits do not hold. Of other types than decimals:
  /// yes.
  bool wide(size_t column) const { return wide_[column] != 0; }

 private:
  absl::Status Check(const ColumnBatch& batch) const;
  void PartitionRows(const ColumnBatch& batch, std::vector<uint32_t>& partition_of) const;

  absl::Status Charge(const StagedChunk& chunk);

  const TableSchema schema_;
  const uint64_t bytes_max_;
  std::atomic<uint64_t> held_bytes_ = 0;  // of all chunks
  uint32_t partitions_ = 1;
  std::vector<int> key_columns_;
  std::vector<std::unique_ptr<StringCollector>> strings_;  // null for other forms

  std::mutex mutex_;  // guards what follows during Append
  std::vector<std::unique_ptr<StagedChunk>> chunks_;
  std::vector<ColumnRange> ranges_;
  std::vector<uint8_t> wide_;  // by column
  uint64_t rows_ = 0;
};

}  // namespace nam::partitioner
