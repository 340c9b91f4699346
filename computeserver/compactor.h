#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "catalog/attachment.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Merges small groups of columnar tables (partitioner/compaction_rule.h), in the background: one table at a
/// time, on one thread that is there as long as there is something to look at. Queries, appends, DROP and
/// TRUNCATE go on meanwhile. Thread-safe.
class Compactor {
 public:
  /// Borrows the attachment, whose member writes the merged groups.
  explicit Compactor(catalog::Attachment& attachment) : attachment_(attachment) {}
  ~Compactor() { Stop(); }

  /// The table may have groups to be merged. Does not wait. A table that waits is looked at once; one that
  /// finds too many before it is forgotten: its next append asks again.
  void Look(const std::string& table);
  /// Ends what is under way, of which nothing is seen, and waits for that.
  void Stop();

 private:
  static constexpr size_t kWaitingMax = 256;
  void Run();
  /// Until nothing of the table is to be merged.
  absl::Status Compact(const std::string& name);

  catalog::Attachment& attachment_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards:
  std::deque<std::string> waiting_;
  bool running_ = false;
  std::unique_ptr<fabric::Thread> thread_;
};

}  // namespace nam::computeserver
