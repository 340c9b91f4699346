#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "fabric/region_directory.h"
#include "storage/channel.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"

namespace nam::txn {

/// Hands out each number of a record table's column once. Words in a memory server count them, by FETCH_ADD.
/// A process takes several at a time; those that it does not use become a gap, also if it dies.
///
///     the table's part      │ column 0 │ column 1 │ column 2 │ …      8 bytes each
///                                          ▲ + 32: this process has 32 more
///
/// The sessions of a process share it, and with it one channel. Thread-safe.
class ColumnNumbers {
 public:
  static constexpr uint64_t kTakenAtOnce = 32;
  struct Table {
    AllocationId allocation;
    uint64_t extent_bytes = 0;
    std::function<absl::StatusOr<std::shared_ptr<ExtentSource>>()> open;  // of the part with its words
  };

  ColumnNumbers(fabric::Fabric& fabric, fabric::RegionDirectory& directory)
      : fabric_(fabric), directory_(directory) {}

  /// CANCELLED: the thread was interrupted while another one took numbers.
  absl::StatusOr<uint64_t> Next(const Table& table, uint32_t column);
  /// Drops the next `count` numbers of a column that has handed out none yet. Returns the first number that
  /// no process had taken; with a count of 0 it drops none.
  absl::StatusOr<uint64_t> Skip(const Table& table, uint32_t column, uint64_t count);

 private:
  struct Taken {
    uint64_t next = 0;
    uint64_t end = 0;
  };
  /// Access to the words, for the thread that takes numbers.
  struct Access {
    std::unique_ptr<storage::Channel> channel;
    std::unique_ptr<storage::VerbBatch> batch;
    std::map<AllocationId, ExtentSpace> spaces;
  };

  absl::Status AwaitTurn(fabric::Event& over) const;
  absl::StatusOr<uint64_t> Reserve(const Table& table, uint32_t column, uint64_t count);
  absl::StatusOr<ExtentSpace*> SpaceOf(const Table& table);

  fabric::Fabric& fabric_;
  fabric::RegionDirectory& directory_;
  Mutex mutex_;  // not held during calls
  std::map<std::pair<AllocationId, uint32_t>, Taken> taken_ ABSL_GUARDED_BY(mutex_);
  // Not null while a thread takes numbers; set when it is done.
  std::shared_ptr<fabric::Event> taking_ ABSL_GUARDED_BY(mutex_);
  // That thread's; null until needed, and after an error.
  std::unique_ptr<Access> access_;
};

}  // namespace nam::txn
