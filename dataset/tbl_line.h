#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/table.h"
#include "partitioner/column_batch.h"

namespace nam::dataset {

/// Parses lines of dbgen's format, `field|field|…|field` with or without a final `|`, into a batch. Any
/// number of threads.
class TblLineParser {
 public:
  explicit TblLineParser(const Table& table);

  /// Adds one row; the batch's text refers into `line`, which excludes the line end. On failure returns the
  /// error, such as `column 9 (lo_quantity): "x" is not an integer`; the batch is then useless until cleared.
  std::optional<std::string> Parse(std::string_view line, partitioner::ColumnBatch& batch) const;

  size_t column_count() const { return columns_.size(); }
  /// `column 9 (lo_quantity)`; `column` counts from 0, the text from 1.
  std::string ColumnText(size_t column) const;

 private:
  enum class Kind : uint8_t { kInteger, kDateKey, kDecimal, kDate, kText };
  struct Column {
    std::string name;
    Kind kind;
    uint32_t length;  // of text
    int scale;        // of decimals
    std::string type;
  };
  std::optional<std::string> ParseField(const Column& column, std::string_view field,
                                        partitioner::ColumnBatch::Column& out) const;
  static std::optional<std::string> ParseText(const Column& column, std::string_view field,
                                              partitioner::ColumnBatch::Column& out);
  std::string WrongFieldCount(std::string_view line) const;

  std::vector<Column> columns_;
};

}  // namespace nam::dataset
