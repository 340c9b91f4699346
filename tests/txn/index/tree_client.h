#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tests/txn/space_cluster.h"
#include "txn/index/ordered_index.h"

namespace nam::txn {

/// Keys are ordered as numbers; a longer key has its number in the first 8 bytes.
inline std::vector<std::byte> OrderedKey(uint64_t number, size_t bytes) {
  std::vector<std::byte> key(bytes, std::byte{0x5a});
  for (size_t i = 0; i < std::min<size_t>(bytes, 8); ++i) {
    key[i] = static_cast<std::byte>(number >> (8 * (std::min<size_t>(bytes, 8) - 1 - i)));
  }
  return key;
}
inline uint64_t NumberOf(std::span<const std::byte> key) {
  uint64_t number = 0;
  for (size_t i = 0; i < std::min<size_t>(key.size(), 8); ++i) {
    number = number << 8 | std::to_integer<uint64_t>(key[i]);
  }
  return number;
}

using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

struct TreeClient : SpaceClient {
  TreeClient(SpaceCluster& cluster, OrderedIndexOptions options)
      : TreeClient(cluster, cluster.client(), std::move(options)) {}
  TreeClient(SpaceCluster& cluster, fabric::Fabric& fabric, OrderedIndexOptions options)
      : SpaceClient(cluster, fabric),
        bytes(options.shape.key_bytes),
        index(batch, Space(), std::move(options)) {}

  bool Insert(uint64_t number, uint64_t value) {
    return Take(index.Insert(OrderedKey(number, bytes), value));
  }
  bool Remove(uint64_t number, uint64_t value) {
    return Take(index.Remove(OrderedKey(number, bytes), value));
  }
  /// The numbers of pairs that have changed.
  size_t InsertAll(const std::set<std::pair<uint64_t, uint64_t>>& pairs) { return ChangeAll(pairs, true); }
  size_t RemoveAll(const std::set<std::pair<uint64_t, uint64_t>>& pairs) { return ChangeAll(pairs, false); }
  /// Sorted: a look-up visits keys in no order.
  Pairs LookupAll(const std::set<std::pair<uint64_t, uint64_t>>& wanted) {
    Entries entries(*this, wanted);
    Pairs found;
    const absl::Status status = index.Lookup(entries.changes, [&](size_t place, uint64_t value) {
      found.emplace_back(NumberOf(std::span(entries.entries[place]).first(bytes)), value);
    });
    EXPECT_TRUE(status.ok()) << status;
    std::sort(found.begin(), found.end());
    return found;
  }
  /// Sorted entries.
  struct Entries {
    Entries(const TreeClient& client, const std::set<std::pair<uint64_t, uint64_t>>& pairs) {
      entries.reserve(pairs.size());
      for (const auto& [number, value] : pairs) {
        entries.push_back(client.index.shape().Compose(OrderedKey(number, client.bytes), value));
        changes.push_back({.entry = entries.back().data()});
      }
    }
    std::vector<OrderedEntry> entries;
    std::vector<OrderedIndex::Change> changes;
  };
  std::vector<uint64_t> Lookup(uint64_t number) {
    std::vector<uint64_t> values;
    const absl::Status status = index.Lookup(OrderedKey(number, bytes), values);
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }
  Pairs Scan(uint64_t from, uint64_t to, size_t limit = SIZE_MAX) {
    Pairs pairs;
    OrderedIndex::Entries entries;
    for (auto cursor = index.Range(OrderedKey(from, bytes), OrderedKey(to, bytes)); !cursor.done();) {
      const absl::Status status = index.Next(cursor, limit, entries);
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) break;
      EXPECT_LE(entries.values.size(), limit);
      for (size_t i = 0; i < entries.values.size(); ++i) {
        pairs.emplace_back(NumberOf(std::span(entries.keys).subspan(i * bytes, bytes)), entries.values[i]);
      }
    }
    EXPECT_TRUE(std::is_sorted(pairs.begin(), pairs.end()));
    return pairs;
  }

  size_t bytes;
  OrderedIndex index;

 private:
  size_t ChangeAll(const std::set<std::pair<uint64_t, uint64_t>>& pairs, bool insert) {
    Entries entries(*this, pairs);
    const absl::Status status = insert ? index.Insert(entries.changes) : index.Remove(entries.changes);
    EXPECT_TRUE(status.ok()) << status;
    return static_cast<size_t>(
        std::count_if(entries.changes.begin(), entries.changes.end(),
                      [](const OrderedIndex::Change& change) { return change.applied; }));
  }
  static bool Take(const absl::StatusOr<bool>& result) {
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() && *result;
  }
};

/// On every fabric.
class OrderedIndexFixture : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  SpaceCluster::Options Options(uint64_t seed) const {
    return {.kind = GetParam(),
            .seed = seed,
            .faults = {.delay_probability = 0.2, .delay_ns_max = 20'000, .torn_operation = 0.2},
            .first_extent_bytes = seed % 2 == 0 ? uint64_t{0} : uint64_t{6} << 10};
  }
  /// A dozen entries a node.
  static OrderedIndexOptions Small(int owner, uint32_t key_bytes = 8) {
    return {.shape = {.key_bytes = key_bytes, .payload_bytes = (12 * (key_bytes + 16) + 63) / 64 * 64},
            .owner = static_cast<uint32_t>(owner),
            .lock_timeout_us = 20'000'000};
  }
};
}  // namespace nam::txn
