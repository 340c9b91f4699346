#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "bench/two_phase/row_store.h"
#include "bench/two_phase/transport.h"

namespace nam::bench::two_phase {

/// The paper's resource manager. It owns a partition of the rows, answers reads at a snapshot without looking
/// at locks (a commit under way has a timestamp above every snapshot handed out), and takes part in commits:
///
///     kPrepare ─▶ validate, lock, stage ─┬─▶ kVote yes ─▶ kDecide timestamp ─▶ install, unlock ─▶ kDone
///                                        │                        0, or connection lost ─▶ unlock
///                                        └─▶ kVote no: nothing is locked
///
/// One thread.
class Participant final : public Role {
 public:
  Participant(Transport& transport, const std::vector<TableLayout>& tables, size_t deletions_kept);

  void OnFrame(ConnectionId connection, std::span<const std::byte> frame) override;
  void OnLost(ConnectionId connection) override;

 private:
  struct LockedRow {
    RowStore* store;
    RowStore::RowNumber row;
  };
  using Transaction = std::vector<LockedRow>;

  bool Read(ConnectionId connection, const MessageHead& head, FrameReader body);
  bool Prepare(ConnectionId connection, const MessageHead& head, FrameReader body);
  bool Decide(ConnectionId connection, const MessageHead& head);
  /// False: malformed. Either way `transaction` holds what it has locked.
  bool LockAll(FrameReader body, uint64_t snapshot, Transaction* transaction, Outcome* outcome);

  Transport& transport_;
  std::vector<std::unique_ptr<RowStore>> stores_;
  /// Prepared transactions by their coordinator's connection, so that locks end with it.
  absl::flat_hash_map<ConnectionId, absl::flat_hash_map<uint64_t, Transaction>> prepared_;
};

}  // namespace nam::bench::two_phase
