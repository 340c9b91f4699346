#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "partitioner/column_batch.h"
#include "partitioner/narrow_numbers.h"
#include "partitioner/table_schema.h"

namespace nam::partitioner {

/// The distinct strings of one column, numbered in order of arrival, while they are few: a column with mostly
/// new strings gets no dictionary. Thread-safe.
class StringCollector {
 public:
  /// kFew strings are few in any column; kMost are the largest dictionary.
  static constexpr size_t kFew = 1 << 16;
  static constexpr size_t kMost = 1 << 22;
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  /// Beyond kFew, the least average number of rows per string.
  static constexpr uint64_t kRowsPerString = 8;

  StringCollector();
  /// Replaces each of `strings` by its number. False: too many strings, so they are not numbered.
  bool Number(const std::vector<std::string_view>& strings, const std::vector<uint8_t>& nulls,
              std::vector<uint32_t>& numbers);
  // After the last Number:
  bool few() const { return !many_; }
  /// The strings in byte order, and the position of each number in that order.
  void Sort(std::vector<std::string_view>& sorted, std::vector<uint32_t>& place_of) const;
  std::vector<std::string_view> ByNumber() const;
  /// Approximate memory of the strings.
  uint64_t held_bytes() const { return held_bytes_; }

 private:
  std::atomic<bool> many_ = false;
  std::atomic<uint64_t> held_bytes_ = 0;
  Mutex mutex_;  // guards the members below during Number
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  size_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t rows_ = 0;
};

/// A batch after partitioning: rows grouped by partition, columns as narrow as they fit.
struct StagedChunk {
  struct Column {
    NarrowNumbers numbers;  // one of these is used
    std::vector<__int128> plain;
    NarrowNumbers ends;  // of the rows' texts within `text`
    std::string text;
    std::vector<uint8_t> nulls;  // empty if none is NULL
    int64_t at(uint32_t row) const { return numbers[row]; }
    __int128 wide_at(uint32_t row) const { return plain.empty() ? at(row) : plain[row]; }
    /// True if the column's strings are numbered; otherwise it has texts.
    bool numbered() const { return ends.empty(); }
    std::string_view text_at(uint32_t row) const {
      const auto begin = static_cast<size_t>(row == 0 ? 0 : ends[row - 1]);
      return {text.data() + begin, static_cast<size_t>(ends[row]) - begin};
    }
    bool IsNull(uint32_t row) const { return !nulls.empty() && nulls[row] != 0; }
  };
  uint64_t place = 0;                     // the batch's
  std::vector<uint32_t> partition_start;  // partitions + 1
  std::vector<Column> columns;            // few strings: the StringCollector's numbers
  uint64_t held_bytes() const;
};

/// All rows of a table during its load, until Commit lays them out. Any number of threads may Append.
class StagedTable {
 public:
  /// `bytes_max`: limit of the rows' memory.
  explicit StagedTable(const TableSchema& schema, uint64_t bytes_max = UINT64_MAX);

  /// Rows of a partition lie in the order of their batches' places. 53200 if they exceed the limit. Some of
  /// the batch may then be staged: no row may follow.
  absl::Status Append(const ColumnBatch& batch);

  struct ColumnRange {
    int64_t min = 0;  // of numbers; for few strings, of their numbers
    int64_t max = 0;
    uint64_t nulls = 0;
    uint64_t values = 0;  // not NULL
  };
  // After the last Append:
  const TableSchema& schema() const { return schema_; }
  uint32_t partitions() const { return partitions_; }
  uint64_t rows() const { return rows_; }
  ColumnRange RangeOf(size_t column) const;
  uint64_t RowsOf(uint32_t partition) const;
  /// The number of distinct numbers in a column: exact if they lie in a narrow range, otherwise an upper
  /// bound.
  uint64_t Distinct(size_t column) const;
  /// True if numbers with this spread are counted: one bit per value fits a near cache.
  static bool Counts(uint64_t spread) { return spread < 1 << 20; }
  /// True if a column of numbers has no duplicates. False also if the check would take too much memory.
  bool Unique(size_t column) const;
  const std::vector<std::unique_ptr<StagedChunk>>& chunks() const { return chunks_; }
  const StringCollector& strings(size_t column) const { return *strings_[column]; }
  /// True if a column of form kWide has a value beyond 64 bits. For types other than decimals: always true.
  bool wide(size_t column) const { return wide_[column] != 0; }

 private:
  absl::Status Check(const ColumnBatch& batch) const;
  void PartitionRows(const ColumnBatch& batch, std::vector<uint32_t>& partition_of) const;

  absl::Status Charge(const StagedChunk& chunk);

  const TableSchema schema_;
  const uint64_t bytes_max_;
  std::atomic<uint64_t> held_bytes_ = 0;  // by all chunks
  uint32_t partitions_ = 1;
  std::vector<int> key_columns_;
  std::vector<std::unique_ptr<StringCollector>> strings_;  // null for other forms

  Mutex mutex_;  // guards the members below during Append
  std::vector<std::unique_ptr<StagedChunk>> chunks_;
  std::vector<ColumnRange> ranges_;
  std::vector<uint8_t> wide_;  // by column
  uint64_t rows_ = 0;
};

}  // namespace nam::partitioner
