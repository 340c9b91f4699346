#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "ssb/generator.h"
#include "ssb/schema.h"
#include "workload/sqlite_oracle.h"

namespace nam::simulation {

/// A small Star Schema Benchmark and what SQLite answers on it; made once, used by many runs.
class SsbAnswers {
 public:
  struct Query {
    std::string id;
    std::string sql;
    SqliteOracle::Rows rows;
  };

  static absl::StatusOr<std::unique_ptr<SsbAnswers>> Make(double scale_factor);

  const std::vector<Query>& queries() const { return queries_; }
  const partitioner::ColumnBatch& rows(ssb::Table table) const { return tables_[static_cast<size_t>(table)]; }

 private:
  std::deque<partitioner::ColumnBatch> tables_;  // never moved: their text points into them
  std::vector<Query> queries_;
};

struct LoadShape {
  uint32_t fan_out = 2;  // parts per join key
  uint32_t block_bytes = 16 << 10;
  uint32_t pointer_group = 4;
};

/// Loads all five tables, replacing what is there.
absl::Status LoadTables(catalog::Attachment& attachment, const SsbAnswers& answers, const LoadShape& shape);

}  // namespace nam::simulation
