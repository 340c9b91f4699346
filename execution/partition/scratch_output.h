#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "execution/partition/partition_writer.h"
#include "proto/compute.pb.h"

namespace nam::execution {

/// Collects what one sink's tasks have left in scratch memory. Thread-safe until they have ended.
class ScratchOutput {
 public:
  /// Adds the pages of a finished writer, and so many rows with a NULL key beside them.
  void Add(const PartitionWriter& writer, uint64_t null_rows = 0) {
    const MutexLock lock(mutex_);
    directory_.Add(writer.directory());
    directory_.AddNullRows(null_rows);
    pages_ += writer.pages();
    bytes_ += writer.bytes();
  }
  const PartDirectory& directory() const { return directory_; }
  uint64_t pages() const { return pages_; }
  uint64_t bytes() const { return bytes_; }

  void Report(uint64_t attempt, uint32_t pipeline, proto::AttemptReply& out) const {
    *out.mutable_directory() = directory_.ToProto(attempt, pipeline);
  }
  void Count(proto::PipelineCounters& out) const {
    out.set_scratch_pages_written(pages_);
    out.set_scratch_bytes_written(bytes_);
  }

 private:
  Mutex mutex_;  // guards the members below during Add
  PartDirectory directory_;
  uint64_t pages_ = 0, bytes_ = 0;
};

}  // namespace nam::execution
