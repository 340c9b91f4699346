#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/table.h"
#include "partitioner/column_batch.h"

namespace nam::dataset {

/// Reads lines of dbgen's format, `field|field|…|field` with or without one more `|`, into a batch.
/// Used by any number of threads.
class TblLineParser {
 public:
  explicit TblLineParser(const Table& table);

  /// Adds one row; text in the batch refers into `line`, which has no line end. Otherwise says what is
  /// wrong, as `column 9 (lo_quantity): "x" is not an integer`; the batch is then useless until cleared.
  std::optional<std::string> Parse(std::string_view line, partitioner::ColumnBatch& batch) const;

  size_t column_count() const { return columns_.size(); }
  /// `column 9 (lo_quantity)`; columns are counted from 0 here and from 1 in the text.
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
