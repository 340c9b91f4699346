#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "execution/prepared_stage.h"
#include "partitioner/column_batch.h"
#include "proto/table.pb.h"

namespace nam::bench {

/// The rows of one table as in a shared-nothing system: in the memory of the servers that process them, in
/// insertion order, so that their place is unrelated to their keys. Chunk i belongs to server i mod the
/// number of servers. Codes are those of the table in memory servers.
class ShuffleTable {
 public:
  struct Chunk {
    uint32_t rows = 0;
    std::vector<std::vector<std::byte>> columns;  // by number; empty for unneeded columns
  };

  /// `columns` are the needed ones; loads the dictionaries of their strings.
  static absl::StatusOr<std::unique_ptr<ShuffleTable>> Make(std::shared_ptr<const proto::Table> table,
                                                            std::vector<uint32_t> columns,
                                                            const execution::DictionaryLoader& load);
  /// Adds a run of the table's rows. DATA_LOSS if a value is not in the table's encoding.
  absl::Status Append(const partitioner::ColumnBatch& batch);

  const proto::Table& table() const { return *table_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }

 private:
  struct Text {
    std::shared_ptr<const storage::Dictionary> dictionary;
    absl::flat_hash_map<std::string, uint64_t> codes;  // cache of look-ups
  };
  absl::Status AppendRows(const partitioner::ColumnBatch& batch, size_t first, uint32_t rows);
  absl::StatusOr<uint64_t> CodeOf(const partitioner::ColumnBatch::Column& column, size_t row,
                                  uint32_t number);

  std::shared_ptr<const proto::Table> table_;
  std::vector<uint32_t> columns_;
  std::vector<uint8_t> widths_;
  std::vector<Text> texts_;  // by column number
  std::vector<Chunk> chunks_;
};

}  // namespace nam::bench
