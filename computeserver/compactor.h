#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "catalog/attachment.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Merges small groups of columnar tables (partitioner/compaction_rule.h) in the background: one table at a
/// time, on one thread that exists while there is work. Queries, appends, DROP and TRUNCATE go on meanwhile.
/// Thread-safe.
class Compactor {
 public:
  /// Borrows the attachment, whose member writes the merged groups.
  explicit Compactor(catalog::Attachment& attachment) : attachment_(attachment) {}
  ~Compactor() { Stop(); }

  /// Notes that the table may have groups to merge. Does not wait. Shortly after a failed try it does
  /// nothing. A waiting table is checked at once; one with too many before it is forgotten: its next append
  /// asks again.
  void Look(const std::string& table);
  /// Ends the work under way, which leaves no trace, and waits for that.
  void Stop();

 private:
  static constexpr size_t kWaitingMax = 256;
  void Run();
  /// Merges until nothing of the table is left to merge.
  absl::Status Compact(const std::string& name);

  catalog::Attachment& attachment_;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> failed_ns_ ABSL_GUARDED_BY(mutex_);  // tables whose last try failed recently
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<fabric::Thread> thread_;
};

}  // namespace nam::computeserver
