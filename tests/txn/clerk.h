#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/txn/indexed_rows.h"
#include "txn/rsi/session.h"

namespace nam::txn {

inline Item ItemOf(uint64_t key, uint8_t group, const char* name) {
  Item item{.key = key, .group = group};
  if (name == nullptr) {
    item.nulls = 1;
  } else {
    std::copy_n(name, 2, item.name);
  }
  return item;
}

/// A session that knows the table of items.
struct Clerk {
  Clerk(RecordCluster& cluster, uint32_t id, fabric::Fabric& fabric, const RsiOptions& options = {})
      : member(cluster, fabric, id), session(*OpenRsiSession(member, options)) {
    items = *session->OpenTable("items");
  }
  Clerk(RecordCluster& cluster, uint32_t id) : Clerk(cluster, id, cluster.client()) {}
  absl::Status Insert(const Item& item) { return session->Insert(items, BytesOf(item)); }
  absl::Status Update(const Item& item) {
    Item old;
    Lookup lookup{items, BytesOf(item.key), std::as_writable_bytes(std::span(&old, 1))};
    if (absl::Status status = session->Read({&lookup, 1}); !status.ok()) return status;
    return session->Update(items, BytesOf(item));
  }
  absl::Status Delete(uint64_t key) {
    Item old;
    Lookup lookup{items, BytesOf(key), std::as_writable_bytes(std::span(&old, 1))};
    if (absl::Status status = session->Read({&lookup, 1}); !status.ok()) return status;
    return session->Delete(items, BytesOf(key));
  }
  /// Runs in a transaction of its own.
  absl::Status Put(const Item& item) {
    if (absl::Status status = session->Begin(); !status.ok()) return status;
    if (absl::Status status = Insert(item); !status.ok()) return status;
    return session->Commit().status();
  }
  /// The keys, in the index's order.
  std::vector<uint64_t> KeysBy(AllocationId index, std::vector<std::byte> low, std::vector<std::byte> high) {
    const auto found = ItemsBy(*session, items, index, low, high);
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<uint64_t> keys;
    for (const Item& item : found.value_or(std::vector<Item>())) keys.push_back(item.key);
    return keys;
  }
  std::vector<uint64_t> KeysBy(AllocationId index) { return KeysBy(index, {}, {}); }

  RecordCluster::Member member;
  std::unique_ptr<Session> session;
  TableHandle items;
};

}  // namespace nam::txn
