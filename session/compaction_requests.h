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
/// (partitioner/compaction_rule.h). Uses the same server for all appends to a table, while it lives: of two
/// servers that merge the same groups one would fail. One thread.
class CompactionRequests {
 public:
  explicit CompactionRequests(catalog::Attachment& attachment) : attachment_(attachment) {}

  /// Takes the table as an append has left it. A thread asks, so the append's answer does not wait.
  void After(const proto::Table& table);
  /// Called when the table has its most groups. Returns once it has fewer; `full` if it keeps them for long,
  /// or no compute server can merge some. CANCELLED soon after `cancelled` is set.
  absl::Status AwaitRoom(const proto::Table& table, const absl::Status& full,
                         const std::atomic<bool>& cancelled);

 private:
  /// Returns whether a server has been asked.
  bool Ask(const std::string& table);

  catalog::Attachment& attachment_;
  std::map<uint32_t, std::unique_ptr<catalog::Peer>> peers_;  // by member; used by the thread while it runs
  int64_t next_ns_ = 0;                                       // for After
  std::atomic<bool> asking_ = false;
  std::unique_ptr<fabric::Thread> thread_;  // last: joined first, so that a session that ends has asked
};

}  // namespace nam::session
