#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "storage/channel.h"
#include "tests/txn/accounts.h"
#include "tests/txn/record_cluster.h"
#include "txn/snapshot_scan.h"

namespace nam::txn {

/// A thread of a compute server: a member without a client slot, to which a session lends its snapshot.
class LentReader {
 public:
  using Balances = std::map<uint64_t, int64_t>;

  LentReader(RecordCluster& cluster, uint32_t member, fabric::Fabric& fabric, uint64_t buffer_bytes = 1 << 20)
      : member_(cluster, fabric, member), fabric_(fabric), buffer_bytes_(buffer_bytes) {}
  LentReader(RecordCluster& cluster, uint32_t member) : LentReader(cluster, member, cluster.client()) {}

  absl::StatusOr<std::unique_ptr<RecordReader>> Open(uint64_t snapshot, uint64_t window = 1024,
                                                     const std::atomic<bool>* cancel = nullptr) {
    // A broken channel cannot be used again.
    auto channel = storage::Channel::Open(fabric_, member_.directory(), {.buffer_bytes = buffer_bytes_});
    if (!channel.ok()) return channel.status();
    const auto table = member_.Find("accounts");
    if (!table.ok()) return table.status();
    const auto state = member_.State();
    if (!state.ok()) return state.status();
    auto reader = RecordReader::Open(*table, *state, **channel,
                                     {.snapshot = snapshot, .cancel = cancel, .window_max = window});
    channel_ = *std::move(channel);
    return reader;
  }

  /// All rows of the table, in runs of `run` chunks. `meanwhile` runs between batches.
  absl::StatusOr<Balances> Read(uint64_t snapshot, uint64_t window, uint64_t run,
                                const std::function<void()>& meanwhile = nullptr) {
    auto reader = Open(snapshot, window);
    if (!reader.ok()) return reader.status();
    const size_t extents = member_.Find("accounts")->records->Extents()->size();
    Balances balances;
    for (uint64_t extent = 0; extent < extents; ++extent) {
      const uint64_t chunks = (*reader)->layout().chunks;
      for (uint64_t first = 0; first < chunks; first += run) {
        const absl::Status read =
            ReadRun(**reader, {extent, first, std::min(run, chunks - first)}, balances, meanwhile);
        if (!read.ok()) return read;
      }
    }
    reader->reset();
    return balances;
  }

  static absl::Status ReadRun(RecordReader& reader, const SnapshotScan::Run& run, Balances& balances,
                              const std::function<void()>& meanwhile = nullptr) {
    if (absl::Status started = reader.Start(run); !started.ok()) return started;
    while (true) {
      const auto rows = reader.Next();
      if (!rows.ok()) return rows.status();
      if (rows->empty()) return absl::OkStatus();
      for (const std::byte* row : *rows) {
        Account account;
        std::memcpy(&account, row, sizeof(account));
        EXPECT_TRUE(balances.emplace(account.key, account.balance).second) << account.key << " comes twice";
      }
      if (meanwhile != nullptr) meanwhile();
    }
  }

  RecordCluster::Member& member() { return member_; }

 private:
  RecordCluster::Member member_;
  fabric::Fabric& fabric_;
  const uint64_t buffer_bytes_;
  std::unique_ptr<storage::Channel> channel_;
};

}  // namespace nam::txn
