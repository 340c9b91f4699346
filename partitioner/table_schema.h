#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "types/value.h"

namespace nam::partitioner {

/// How loaders are given a column's values.
enum class Form : uint8_t {
  kNumber,  // of 64 bits: booleans, integers, decimals of up to 18 digits, dates, times, real numbers
  kWide,    // of 128 bits: longer decimals, intervals, uuids
  kText,    // texts and bytea
};

/// Decimals of so many digits are numbers of 64 bits; and those of which nothing is said.
inline constexpr int kNumberDigits = 18;

inline Form FormOf(const Type& type) {
  switch (PhysicalOf(type)) {
    case Physical::kTruth:
    case Physical::kInt64:
      return Form::kNumber;
    case Physical::kInt128:
      return type.kind == TypeKind::kDecimal && type.precision <= kNumberDigits ? Form::kNumber : Form::kWide;
    case Physical::kText:
      return Form::kText;
  }
  return Form::kNumber;
}

struct ColumnSchema {
  std::string name;
  Type type;
  bool nullable = false;
  std::string default_expression = {};
  bool dropped = false;  // its values are NULL, and nobody reads them
};

/// One partition function per join key: `parts` by modulo for integers, by XXH3 for everything else.
/// The same function wherever the key occurs is what lets matching partitions be joined on their own.
struct PartitionSchema {
  std::string column;
  uint32_t parts = 8;
};

/// What a loader is told of a table before its first row.
struct TableSchema {
  std::string name;
  std::vector<ColumnSchema> columns;
  std::vector<PartitionSchema> partitioning;  // none: one partition
  std::string sort_column;                    // rows of a partition are clustered by it; may be empty
};

}  // namespace nam::partitioner
