#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/table.pb.h"
#include "sql/parse_tree.h"

namespace nam::sql {

/// WITH (…) of CREATE TABLE: the layout of its rows in memory.
struct StorageOptions {
  enum class Storage : uint8_t {
    kRecord,    // rows, which transactions change; WITH (versions = n)
    kColumnar,  // columns in blocks, loaded and appended to; WITH (partition_by, sort_by, block_bytes)
  };
  Storage storage = Storage::kRecord;
  uint32_t versions = 1;     // of a record, kept for older snapshots
  std::string partition_by;  // `a:8,b:8`: columns, and the number of parts by each
  std::string sort_by;       // the column that orders the rows of a partition
  uint32_t block_bytes = 0;  // 0: by the number of columns
  int partition_position = -1, sort_position = -1;

  /// `options`: the DefElem nodes. Without `storage`, options of columnar tables imply it; otherwise it is
  /// `otherwise`.
  static absl::StatusOr<StorageOptions> From(const std::vector<Node>& options, Storage otherwise);
};

/// The most bytes of a block if nobody says: enough for many rows of many columns, each of which takes room
/// in a block's prefix.
constexpr uint32_t DefaultBlockBytes(int columns) {
  constexpr int kFewColumns = 256;
  return columns <= kFewColumns ? 64 << 10 : 1 << 20;
}

/// Gives a columnar table, whose columns are bound, its partitions, order and blocks. 0A000 if it has a
/// column or a default that only record tables have.
absl::Status LayOutColumnar(const StorageOptions& options, int position, proto::Table& table);

}  // namespace nam::sql
