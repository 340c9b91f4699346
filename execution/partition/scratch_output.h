#pragma once

#include <cstdint>
#include <mutex>

#include "execution/partition/partition_writer.h"

namespace nam::execution {

/// What the tasks of one sink have left in scratch memory. Thread-safe until they have ended.
class ScratchOutput {
 public:
  /// Of a writer that has finished, and of so many rows beside it that have a NULL as a key.
  void Add(const PartitionWriter& writer, uint64_t null_rows = 0) {
    const std::lock_guard lock(mutex_);
    directory_.Add(writer.directory());
    directory_.AddNullRows(null_rows);
    pages_ += writer.pages();
    bytes_ += writer.bytes();
  }
  const PartDirectory& directory() const { return directory_; }
  uint64_t pages() const { return pages_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::mutex mutex_;
  PartDirectory directory_;
  uint64_t pages_ = 0, bytes_ = 0;
};

}  // namespace nam::execution
