#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "types/value.h"

namespace nam::partitioner {

/// The representation in which loaders receive a column's values.
enum class Form : uint8_t {
  kNumber,  // of 64 bits: booleans, integers, decimals of up to 18 digits, dates, times, real numbers
  kWide,    // of 128 bits: longer decimals, numerics, intervals, uuids
  kText,    // texts and bytea
};

/// The most decimal digits of a 64-bit number; decimals of unspecified precision count as such.
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
  bool dropped = false;  // its values are NULL and never read
};

/// One partition function per join key: `parts` by modulo for integers, by XXH3 for all other types. Matching
/// partitions can be joined separately because the function is the same wherever the key occurs.
struct PartitionSchema {
  std::string column;
  uint32_t parts = 8;
};

/// A loader's description of a table before its first row.
struct TableSchema {
  std::string name;
  std::vector<ColumnSchema> columns;
  std::vector<PartitionSchema> partitioning;  // none: one partition
  std::string sort_column;                    // clusters the rows of a partition; may be empty
};

}  // namespace nam::partitioner
