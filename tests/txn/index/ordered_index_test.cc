#include "txn/index/ordered_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/txn/space_cluster.h"

namespace nam::txn {
namespace {

/// Keys are ordered as numbers; a longer key has its number in the first 8 bytes.
std::vector<std::byte> OrderedKey(uint64_t number, size_t bytes) {
  std::vector<std::byte> key(bytes, std::byte{0x5a});
  for (size_t i = 0; i < std::min<size_t>(bytes, 8); ++i) {
    key[i] = static_cast<std::byte>(number >> (8 * (std::min<size_t>(bytes, 8) - 1 - i)));
  }
  return key;
}
uint64_t NumberOf(std::span<const std::byte> key) {
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
  static bool Take(const absl::StatusOr<bool>& result) {
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() && *result;
  }
};

class OrderedIndexTest : public ::testing::TestWithParam<fabric::Kind> {
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
INSTANTIATE_TEST_SUITE_P(Fabrics, OrderedIndexTest,
                         ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp, fabric::Kind::kSim),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

TEST_P(OrderedIndexTest, BehavesLikeASet) {
  for (const uint32_t key_bytes : {1u, 8u, 13u, 64u}) {
    for (const uint64_t seed : Seeds(GetParam(), 3)) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", keys of " << key_bytes << " bytes");
      SpaceCluster cluster(Options(seed));
      TreeClient client(cluster, Small(1, key_bytes));
      TreeClient other(cluster, Small(2, key_bytes));
      ASSERT_TRUE(client.index.Create().ok());
      std::set<std::pair<uint64_t, uint64_t>> model;
      std::mt19937_64 random(seed);
      for (int i = 0; i < 2000; ++i) {
        const std::pair pair{random() % 200, random() % 8};
        TreeClient& by = random() % 4 == 0 ? other : client;
        switch (random() % 8) {
          case 0: {
            const uint64_t to = pair.first + random() % 50;
            const auto expected = Pairs(model.lower_bound({pair.first, 0}), model.lower_bound({to + 1, 0}));
            ASSERT_EQ(by.Scan(pair.first, to, 1 + random() % 20), expected);
            break;
          }
          case 1:
          case 2:
            ASSERT_EQ(by.Remove(pair.first, pair.second), model.erase(pair) == 1);
            break;
          default:
            ASSERT_EQ(by.Insert(pair.first, pair.second), model.insert(pair).second);
        }
      }
      ASSERT_GT(model.size(), 300u);
      TreeClient fresh(cluster, Small(3, key_bytes));
      EXPECT_EQ(fresh.Scan(0, 255), Pairs(model.begin(), model.end()));
      for (uint64_t number = 0; number < 200; ++number) {
        std::vector<uint64_t> expected;
        for (uint64_t value = 0; value < 8; ++value) {
          if (model.count({number, value}) == 1) expected.push_back(value);
        }
        ASSERT_EQ(fresh.Lookup(number), expected);
      }
      EXPECT_TRUE(fresh.Scan(20, 10).empty());
    }
  }
}

TEST_P(OrderedIndexTest, EverythingIsThereOnceAfterConcurrentInserts) {
  constexpr uint64_t kKeys = 300;
  for (const uint64_t seed : Seeds(GetParam(), 10)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(Options(seed));
    ASSERT_TRUE(TreeClient(cluster, Small(9)).index.Create().ok());
    std::atomic<uint64_t> inserted = 0;
    RunThreads(cluster, 4, [&](int self) {
      TreeClient client(cluster, Small(self));
      std::mt19937_64 random(seed * 4 + static_cast<uint64_t>(self));
      std::vector<uint64_t> numbers(kKeys);
      for (uint64_t i = 0; i < kKeys; ++i) numbers[i] = i;
      std::shuffle(numbers.begin(), numbers.end(), random);
      for (const uint64_t number : numbers) {
        if (client.Insert(number, number + 1)) ++inserted;                       // only one client succeeds
        EXPECT_TRUE(client.Insert(number, 1000 + static_cast<uint64_t>(self)));  // each client has its own
      }
    });
    EXPECT_EQ(inserted, kKeys);
    Pairs expected;
    for (uint64_t number = 0; number < kKeys; ++number) {
      expected.emplace_back(number, number + 1);
      for (uint64_t self = 0; self < 4; ++self) expected.emplace_back(number, 1000 + self);
    }
    TreeClient fresh(cluster, Small(8));
    ASSERT_EQ(fresh.Scan(0, kKeys), expected);
    for (uint64_t number = 0; number < kKeys; ++number) ASSERT_EQ(fresh.Lookup(number).size(), 5u);
  }
}

TEST_P(OrderedIndexTest, ScansAreCompleteWhileOthersInsertAndRemove) {
  constexpr uint64_t kStable = 100;
  for (const uint64_t seed : Seeds(GetParam(), 10)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(Options(seed));
    TreeClient first(cluster, Small(9));
    ASSERT_TRUE(first.index.Create().ok());
    for (uint64_t i = 0; i < kStable; ++i) ASSERT_TRUE(first.Insert(i * 10, i));
    std::atomic<int> writers = 2;
    RunThreads(cluster, 4, [&](int self) {
      TreeClient client(cluster, Small(self));
      std::mt19937_64 random(seed * 4 + static_cast<uint64_t>(self));
      if (self >= 2) {
        for (bool last = false; !last;) {
          last = writers == 0;
          Pairs stable;
          const Pairs all = client.Scan(0, kStable * 10, self == 2 ? SIZE_MAX : 3);
          std::copy_if(all.begin(), all.end(), std::back_inserter(stable),
                       [](auto& p) { return p.first % 10 == 0; });
          ASSERT_EQ(stable.size(), kStable);
          ASSERT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "an entry twice";
          const uint64_t number = random() % kStable;
          ASSERT_EQ(client.Lookup(number * 10), std::vector{number});
        }
        return;
      }
      for (int i = 0; i < 400; ++i) {
        const uint64_t number = random() % (kStable * 10);
        if (number % 10 == 0) continue;
        const uint64_t value = static_cast<uint64_t>(self);
        const bool inserted = client.Insert(number, value);
        EXPECT_TRUE(inserted || client.Remove(number, value));
      }
      --writers;
    });
  }
}

/// A client dies before every work request of an insert that splits up to the root; another one takes back
/// its locks, finds the existing entries, and goes on.
TEST(OrderedIndexDeathTest, OthersFinishASplit) {
  constexpr uint16_t kDying = 7;
  OrderedIndexOptions options{.shape = {.key_bytes = 8, .payload_bytes = 256}, .lock_patience_us = 1};
  options.confirm_gone = [](uint32_t owner) {
    return owner == kDying ? absl::OkStatus() : absl::UnavailableError("it lives");
  };
  // 14 entries fit a leaf, 9 an inner node: the leaf that is the root splits, another leaf, the inner node
  // that is the root, another inner node.
  for (const uint64_t before : {13u, 14u, 28u, 126u, 252u}) {
    bool dead = true;
    for (uint64_t requests = 0; dead; ++requests) {
      SCOPED_TRACE(testing::Message() << before << " keys, dies after " << requests << " work requests");
      SpaceCluster cluster({.extents_max = 8});
      TreeClient living(cluster, options);
      ASSERT_TRUE(living.index.Create().ok());
      for (uint64_t i = 0; i < before; ++i) ASSERT_TRUE(living.Insert(2 * i, i));
      MortalFabric mortal(cluster.client(), requests);
      {
        OrderedIndexOptions dying_options = options;
        dying_options.owner = kDying;
        TreeClient dying(cluster, mortal, dying_options);
        const auto inserted = dying.index.Insert(OrderedKey(2 * before, 8), before);
        // The client died while it told the parents; it has inserted all the same.
        EXPECT_TRUE(inserted.ok() || mortal.dead()) << inserted.status();
      }
      dead = mortal.dead();
      Pairs expected;
      for (uint64_t i = 0; i < before; ++i) expected.emplace_back(2 * i, i);
      Pairs found = living.Scan(0, 1000);
      if (found.size() > expected.size()) expected.emplace_back(2 * before, before);
      ASSERT_EQ(found, expected);
      for (uint64_t i = 0; i < 2 * before + 40; ++i) {
        living.Insert(i, i / 2);
      }
      found = TreeClient(cluster, options).Scan(0, 1000);
      ASSERT_EQ(found.size(), 2 * before + 40);
      for (uint64_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], std::pair(i, i / 2));
    }
  }
}

/// Clients come, insert, and die in the middle of it; their locks are taken back once none of their requests
/// is in flight any more.
TEST(OrderedIndexDeathTest, NothingIsLostWhileClientsDie) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(
        {.kind = fabric::Kind::kSim,
         .seed = seed,
         .faults = {.delay_probability = 0.2, .delay_ns_max = 20'000, .torn_operation = 0.2}});
    std::set<uint16_t> gone;  // one thread at a time runs in a simulated world
    OrderedIndexOptions options{.shape = {.key_bytes = 8, .payload_bytes = 256}, .lock_patience_us = 1};
    options.confirm_gone = [&gone](uint32_t owner) {
      return gone.contains(owner) ? absl::OkStatus() : absl::UnavailableError("it may live");
    };
    TreeClient last(cluster, options);
    ASSERT_TRUE(last.index.Create().ok());
    std::array<std::set<uint64_t>, 4> inserted;
    int deaths = 0;
    RunThreads(cluster, 4, [&](int self) {
      std::mt19937_64 random(seed * 4 + static_cast<uint64_t>(self));
      OrderedIndexOptions own = options;
      own.owner = static_cast<uint32_t>((self + 1) * 1000);
      for (uint64_t key = static_cast<uint64_t>(self); key < 600; ++own.owner) {
        MortalFabric mortal(cluster.client(), 1 + random() % 150);
        {
          TreeClient client(cluster, mortal, own);
          for (; key < 600 && !mortal.dead(); key += 4) {
            // A quarter ascends, the others come in between.
            const uint64_t number = self == 0 ? key : key * 7919 % 600 / 4 * 4 + static_cast<uint64_t>(self);
            const auto done = client.index.Insert(OrderedKey(number, 8), number);
            EXPECT_TRUE(done.ok() || mortal.dead()) << done.status();
            if (done.ok() && *done) inserted[static_cast<size_t>(self)].insert(number);
          }
        }
        if (!mortal.dead()) break;
        ++deaths;
        cluster.client().clock().SleepUntil(cluster.client().clock().After(1000));  // virtual time
        gone.insert(own.owner);
      }
    });
    EXPECT_GT(deaths, 10);
    std::set<uint64_t> found;
    for (const auto& [number, value] : last.Scan(0, 1000)) {
      EXPECT_EQ(number, value);
      EXPECT_TRUE(found.insert(number).second);
    }
    for (const auto& by : inserted) {
      for (const uint64_t number : by) {
        EXPECT_TRUE(found.contains(number));
        EXPECT_EQ(last.Lookup(number), std::vector{number});
      }
    }
    for (uint64_t number = 0; number < 600; ++number) last.Insert(number, number);
    EXPECT_EQ(last.Scan(0, 1000).size(), 600u);
  }
}

/// A splitter that died may have left the parent without a key: the next client that misses it inserts it.
TEST(OrderedIndexDeathTest, MissingSeparatorsAreRepaired) {
  constexpr uint64_t kFull = 28;  // two leaves, the second one full
  const OrderedIndexOptions options{.shape = {.key_bytes = 8, .payload_bytes = 256}};
  int missing = 0;
  int repaired = 0;
  bool dead = true;
  for (uint64_t requests = 0; dead; ++requests) {
    SpaceCluster cluster({.extents_max = 8});
    TreeClient living(cluster, options);
    ASSERT_TRUE(living.index.Create().ok());
    for (uint64_t i = 0; i < kFull; ++i) ASSERT_TRUE(living.Insert(i, i));
    MortalFabric mortal(cluster.client(), requests);
    const bool inserted = TreeClient(cluster, mortal, options).index.Insert(OrderedKey(kFull, 8), kFull).ok();
    dead = mortal.dead();
    if (!inserted) continue;
    std::vector<uint64_t> requests_used;
    for (int i = 0; i < 2; ++i) {
      MortalFabric counting(cluster.client(), 1000);
      TreeClient fresh(cluster, counting, options);
      EXPECT_EQ(fresh.Lookup(kFull), std::vector{kFull});
      requests_used.push_back(1000 - counting.left());
    }
    if (requests_used[0] == 6) continue;  // root and leaf
    ++missing;
    repaired += requests_used[1] == 6 ? 1 : 0;  // the others had died with the parent's lock
  }
  EXPECT_GT(repaired, 0);
  EXPECT_EQ(missing - repaired, 2);  // requests between the lock and the new header
}

TEST(OrderedIndexLimitsTest, ALivingOwnersLockIsWaitedForAndNotTaken) {
  SpaceCluster cluster({.kind = fabric::Kind::kSim});
  OrderedIndexOptions options{.lock_timeout_us = 100'000};
  options.confirm_gone = [](uint32_t owner) {
    EXPECT_EQ(owner, ordered_header::OwnerOf(7, 3));
    return absl::UnavailableError("its lease runs");
  };
  TreeClient living(cluster, options);
  ASSERT_TRUE(living.index.Create().ok());
  ASSERT_TRUE(living.Insert(1, 1));
  {
    OrderedIndexOptions stopped_options = options;
    stopped_options.owner = ordered_header::OwnerOf(7, 3);
    MortalFabric mortal(cluster.client(), 4);  // after the lock
    TreeClient stopped(cluster, mortal, stopped_options);
    EXPECT_FALSE(stopped.index.Insert(OrderedKey(2, 8), 2).ok());
  }
  const int64_t before_ns = cluster.client().clock().NowNs();
  const absl::Status status = living.index.Insert(OrderedKey(3, 8), 3).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("client 7"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("its lease runs"), absl::string_view::npos) << status;
  EXPECT_LT(cluster.client().clock().NowNs() - before_ns, 200'000'000);
  EXPECT_EQ(living.Scan(0, 10), (Pairs{{1, 1}})) << "readers do not wait";
}

TEST(OrderedIndexLimitsTest, MemoryThatIsFullIsAnErrorAndNothingIsLost) {
  SpaceCluster cluster({.extent_bytes = 16 << 10, .extents_max = 2});
  TreeClient client(cluster, {});
  ASSERT_TRUE(client.index.Create().ok());
  uint64_t number = 0;
  absl::Status status;
  while (status = client.index.Insert(OrderedKey(number, 8), number).status(), status.ok())
    ASSERT_LT(++number, 100'000u);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(client.Scan(0, 100'000).size(), number);
  ASSERT_TRUE(client.Remove(number - 1, number - 1));
  ASSERT_TRUE(client.Insert(number - 1, number - 1));
}

TEST(OrderedIndexLoadTest, AMillionKeysByFourClientsAreThereOnce) {
  constexpr uint64_t kKeys = 1'000'000;
  SpaceCluster cluster({.extent_bytes = 1 << 20, .extents_max = 256});
  ASSERT_TRUE(TreeClient(cluster, {.owner = 9}).index.Create().ok());
  RunThreads(cluster, 4, [&](int self) {
    TreeClient client(cluster, {.owner = static_cast<uint32_t>(self), .lock_timeout_us = 20'000'000});
    // An odd factor makes a permutation of 2^64 numbers.
    for (uint64_t i = static_cast<uint64_t>(self); i < kKeys; i += 4) {
      ASSERT_TRUE(client.Insert(i * 0x9e3779b97f4a7c15, i));
    }
  });
  TreeClient client(cluster, {.owner = 9});
  const Pairs all = client.Scan(0, ~uint64_t{0});
  ASSERT_EQ(all.size(), kKeys);
  std::vector<bool> seen(kKeys);
  for (const auto& [number, value] : all) {
    ASSERT_EQ(number, value * 0x9e3779b97f4a7c15);
    ASSERT_FALSE(seen[value]);
    seen[value] = true;
  }
  for (uint64_t i = 0; i < kKeys; i += 7) ASSERT_EQ(client.Lookup(i * 0x9e3779b97f4a7c15), std::vector{i});
}

}  // namespace
}  // namespace nam::txn
