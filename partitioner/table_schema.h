#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "types/value.h"

namespace nam::partitioner {

struct ColumnSchema {
  std::string name;
  Type type;
  bool nullable = false;
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
