#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "catalog/attachment.h"
#include "catalog/control_plane.h"
#include "fabric/fabric.h"
#include "proto/table.pb.h"

namespace nam::session {

/// Asks a compute server to merge small groups of a table, once an append has left enough of them
/// (partitioner/compaction_rule.h). The same server for all appends to a table, as long as it lives: two that
/// merge the same groups would do it in vain. One thread.
class CompactionRequests {
 public:
  explicit CompactionRequests(catalog::Attachment& attachment) : attachment_(attachment) {}

  /// The table as an append has left it. A thread asks, so the append's answer does not wait.
  void After(const proto::Table& table);
  /// The table has as many groups as it may have. Returns once it has fewer; `full` if it does not for long,
  /// or no compute server is there to merge some. CANCELLED soon after `cancelled` is set.
  absl::Status AwaitRoom(const proto::Table& table, const absl::Status& full,
                         const std::atomic<bool>& cancelled);

 private:
  /// Whether a server has been asked.
  bool Ask(const std::string& table);

  catalog::Attachment& attachment_;
  std::map<uint32_t, std::unique_ptr<catalog::Peer>> peers_;  // by member; of the thread while it runs
  int64_t next_ns_ = 0;                                       // of After
  std::atomic<bool> asking_ = false;
  std::unique_ptr<fabric::Thread> thread_;  // last: joined first, so that a session that ends has asked
};

}  // namespace nam::session
