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
#include "partitioner/table_schema.h"

namespace nam::partitioner {

/// The distinct strings of one column as they come in, numbered in that order. Thread-safe.
class StringCollector {
 public:
  StringCollector();
  /// Replaces each of `strings` by its number.
  void Number(const std::vector<std::string_view>& strings, const std::vector<uint8_t>& nulls,
              std::vector<uint32_t>& numbers);
  /// After the last Number: the strings in byte order, and for each number its place in that order.
  void Sort(std::vector<std::string_view>& sorted, std::vector<uint32_t>& place_of) const;
  size_t size() const { return count_; }

 private:
  std::mutex mutex_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  size_t count_ = 0;
};

/// A batch after partitioning: rows grouped by partition, columns as small as they fit.
struct StagedChunk {
  struct Column {
    int64_t base = 0;              // narrow values are offsets from it
    std::vector<uint32_t> narrow;  // one of the two is used
    std::vector<int64_t> wide;
    std::vector<uint8_t> nulls;  // empty if there are none
    int64_t at(uint32_t row) const { return wide.empty() ? base + narrow[row] : wide[row]; }
  };
  std::vector<uint32_t> partition_start;  // partitions + 1
  std::vector<Column> columns;            // strings: numbers of the StringCollector
};

/// All rows of a table on their way in, until Commit lays them out. Append by any number of threads.
class StagedTable {
 public:
  explicit StagedTable(const TableSchema& schema);

  absl::Status Append(const ColumnBatch& batch);

  struct ColumnRange {
    int64_t min = 0;
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

 private:
  absl::Status Check(const ColumnBatch& batch) const;
  void PartitionRows(const ColumnBatch& batch, std::vector<uint32_t>& partition_of) const;

  const TableSchema schema_;
  uint32_t partitions_ = 1;
  std::vector<int> key_columns_;
  std::vector<std::unique_ptr<StringCollector>> strings_;  // null for other types

  std::mutex mutex_;  // guards what follows during Append
  std::vector<std::unique_ptr<StagedChunk>> chunks_;
  std::vector<ColumnRange> ranges_;
  uint64_t rows_ = 0;
};

}  // namespace nam::partitioner
