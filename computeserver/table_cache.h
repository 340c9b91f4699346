#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "catalog/client.h"
#include "execution/channel_pool.h"
#include "proto/table.pb.h"
#include "storage/dictionary.h"
#include "storage/known_blocks.h"

namespace nam::computeserver {

/// A compute server's cache of tables and dictionaries. Neither changes under one allocation id, so entries
/// need no second look at the catalog. Bounded; thread-safe.
class TableCache {
 public:
  TableCache(catalog::Client& catalog, execution::ChannelPool& channels)
      : catalog_(catalog), channels_(channels) {}

  /// The table as it was when `allocation` was its last load, append or compaction. ABORTED if it has been
  /// replaced.
  absl::StatusOr<std::shared_ptr<const proto::Table>> Table(const std::string& name, uint64_t allocation);
  absl::StatusOr<std::shared_ptr<const storage::Dictionary>> Dictionary(const proto::Table& table,
                                                                        uint32_t column, uint32_t group);
  /// What queries have learned about this version's blocks.
  std::shared_ptr<storage::KnownBlocks> Known(const proto::Table& table);

 private:
  static constexpr size_t kMostTables = 1024;
  static constexpr uint64_t kMostDictionaryBytes = 256u << 20;

  catalog::Client& catalog_;
  execution::ChannelPool& channels_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const proto::Table>> tables_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<uint64_t, uint32_t>, std::shared_ptr<const storage::Dictionary>> dictionaries_
      ABSL_GUARDED_BY(mutex_);
  uint64_t dictionary_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::shared_ptr<storage::KnownBlocks>> known_ ABSL_GUARDED_BY(mutex_);  // by allocation
};

}  // namespace nam::computeserver
