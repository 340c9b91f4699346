#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/txn/index/tree_client.h"
#include "tests/txn/space_cluster.h"

/// Many entries of an ordered index at once, and leaves that become empty.
namespace nam::txn {
namespace {

class OrderedWindowTest : public OrderedIndexFixture {};
INSTANTIATE_TEST_SUITE_P(Fabrics, OrderedWindowTest,
                         ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp, fabric::Kind::kSim),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

TEST_P(OrderedWindowTest, ManyAtOnceBehaveLikeASet) {
  for (const uint32_t key_bytes : {1u, 8u, 13u}) {
    for (const uint64_t seed : Seeds(GetParam(), 3)) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", keys of " << key_bytes << " bytes");
      SpaceCluster cluster(Options(seed));
      TreeClient client(cluster, Small(1, key_bytes)), other(cluster, Small(2, key_bytes));
      ASSERT_TRUE(client.index.Create().ok());
      std::set<std::pair<uint64_t, uint64_t>> model;
      std::mt19937_64 random(seed);
      for (int i = 0; i < 60; ++i) {
        TreeClient& by = random() % 4 == 0 ? other : client;
        // Some are close together, some are far apart; a few keys have more values than a leaf.
        std::set<std::pair<uint64_t, uint64_t>> pairs;
        const uint64_t keys = random() % 2 == 0 ? 10 : 200, first = random() % (201 - keys);
        for (uint64_t left = random() % 150; left > 0; --left)
          pairs.emplace(first + random() % keys, random() % 40);
        size_t changed = 0;
        if (random() % 3 == 0) {
          for (const auto& pair : pairs) changed += model.erase(pair);
          ASSERT_EQ(by.RemoveAll(pairs), changed);
        } else {
          for (const auto& pair : pairs) changed += model.insert(pair).second;
          ASSERT_EQ(by.InsertAll(pairs), changed);
        }
        std::set<std::pair<uint64_t, uint64_t>> wanted;  // each key once
        for (const auto& pair : pairs) {
          if (wanted.empty() || wanted.rbegin()->first != pair.first) wanted.insert(pair);
        }
        Pairs expected;
        for (const auto& [number, value] : wanted) {
          for (uint64_t other_value = 0; other_value < 40; ++other_value) {
            if (model.count({number, other_value}) == 1) expected.emplace_back(number, other_value);
          }
        }
        std::sort(expected.begin(), expected.end());
        ASSERT_EQ(by.LookupAll(wanted), expected);
      }
      ASSERT_GT(model.size(), 500u);
      EXPECT_EQ(TreeClient(cluster, Small(3, key_bytes)).Scan(0, 255), Pairs(model.begin(), model.end()));
    }
  }
}

/// Clients insert many entries at once, and take half of them away: of the same keys each entry is applied by
/// one client alone.
TEST_P(OrderedWindowTest, ManyAtOnceByFourClients) {
  constexpr uint64_t kKeys = 400;
  for (const uint64_t seed : Seeds(GetParam(), 10)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(Options(seed));
    ASSERT_TRUE(TreeClient(cluster, Small(9)).index.Create().ok());
    std::atomic<uint64_t> inserted = 0, removed = 0;
    RunThreads(cluster, 4, [&](int self) {
      TreeClient client(cluster, Small(self));
      std::mt19937_64 random(seed * 4 + static_cast<uint64_t>(self));
      std::vector<uint64_t> numbers(kKeys);
      for (uint64_t i = 0; i < kKeys; ++i) numbers[i] = i;
      std::shuffle(numbers.begin(), numbers.end(), random);
      for (size_t first = 0; first < kKeys; first += 50) {
        std::set<std::pair<uint64_t, uint64_t>> both, own, half;
        for (const uint64_t number : std::span(numbers).subspan(first, 50)) {
          both.emplace(number, number + 1);
          own.emplace(number, 1'000 + static_cast<uint64_t>(self));
          if (number % 2 == 0) half.emplace(number, number + 1);
        }
        inserted += client.InsertAll(both);
        EXPECT_EQ(client.InsertAll(own), own.size());
        removed += client.RemoveAll(half);
      }
    });
    Pairs expected;
    uint64_t even = 0;
    const Pairs all = TreeClient(cluster, Small(8)).Scan(0, kKeys);
    for (uint64_t number = 0; number < kKeys; ++number) {
      const bool there = std::find(all.begin(), all.end(), std::pair(number, number + 1)) != all.end();
      EXPECT_TRUE(there || number % 2 == 0);
      even += there && number % 2 == 0;
      if (there) expected.emplace_back(number, number + 1);
      for (uint64_t self = 0; self < 4; ++self) expected.emplace_back(number, 1'000 + self);
    }
    ASSERT_EQ(all, expected);
    EXPECT_EQ(inserted - removed, kKeys / 2 + even);
  }
}

/// Runs of entries come and go, each of them longer than two leaves, so that leaves become empty and are
/// unlinked. What stays is seen by every scan and look-up meanwhile, and so is what a client has inserted
/// itself.
TEST_P(OrderedWindowTest, LeavesComeAndGo) {
  constexpr uint64_t kStable = 8, kGap = 100;
  for (const uint64_t seed : Seeds(GetParam(), 20)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(Options(seed));
    TreeClient first(cluster, Small(9));
    ASSERT_TRUE(first.index.Create().ok());
    for (uint64_t i = 0; i < kStable; ++i) ASSERT_TRUE(first.Insert(i * kGap, 0));
    std::atomic<int> writers = 2;
    RunThreads(cluster, 4, [&](int self) {
      TreeClient client(cluster, Small(self));
      std::mt19937_64 random(seed * 4 + static_cast<uint64_t>(self));
      if (self >= 2) {
        for (bool last = false; !last;) {
          last = writers == 0;
          const Pairs all = client.Scan(0, kStable * kGap, self == 2 ? SIZE_MAX : 3);
          const auto stable =
              std::count_if(all.begin(), all.end(), [](auto& pair) { return pair.second == 0; });
          ASSERT_EQ(static_cast<uint64_t>(stable), kStable);
          const uint64_t number = random() % kStable * kGap;
          ASSERT_EQ(client.Lookup(number), std::vector<uint64_t>{0});
        }
        return;
      }
      for (int i = 0; i < 40; ++i) {
        std::set<std::pair<uint64_t, uint64_t>> run;
        const uint64_t begin = random() % kStable * kGap + 1 + random() % 40;
        for (uint64_t number = begin; number < begin + 50; ++number)
          run.emplace(number, 1 + static_cast<uint64_t>(self));
        EXPECT_EQ(client.InsertAll(run), run.size());
        Pairs own;
        for (const auto& pair : client.LookupAll(run)) {
          if (pair.second == 1 + static_cast<uint64_t>(self)) own.push_back(pair);
        }
        EXPECT_EQ(own, Pairs(run.begin(), run.end()));
        EXPECT_EQ(client.RemoveAll(run), run.size());
      }
      --writers;
    });
    TreeClient fresh(cluster, Small(8));
    EXPECT_EQ(fresh.Scan(0, kStable * kGap).size(), kStable);
    for (uint64_t number = 0; number < kStable * kGap; ++number) fresh.Insert(number, 7);
    EXPECT_EQ(fresh.Scan(0, kStable * kGap).size(), kStable * kGap + kStable);
  }
}

/// Of the leaves of a queue that has moved on few are left to be passed.
TEST_P(OrderedWindowTest, AQueueKeepsFewLeaves) {
  if (GetParam() == fabric::Kind::kShm) GTEST_SKIP() << "requests are calls";
  constexpr uint64_t kEntries = 20'000;
  SpaceCluster cluster(Options(1));
  TreeClient client(cluster, {.owner = 1});
  ASSERT_TRUE(client.index.Create().ok());
  for (uint64_t first = 0; first < kEntries; first += 500) {
    std::set<std::pair<uint64_t, uint64_t>> some;
    for (uint64_t number = first; number < first + 500; ++number) some.emplace(number, number);
    EXPECT_EQ(client.InsertAll(some), some.size());
  }
  for (uint64_t first = 0; first < kEntries; first += 50) {
    std::set<std::pair<uint64_t, uint64_t>> some;
    for (uint64_t number = first; number < std::min(first + 50, kEntries - 1); ++number)
      some.emplace(number, number);
    EXPECT_EQ(client.RemoveAll(some), some.size());
  }
  MortalFabric fabric(cluster.client(), MortalFabric::kNever);
  TreeClient reader(cluster, fabric, {.owner = 2});
  EXPECT_EQ(reader.Scan(0, kEntries), (Pairs{{kEntries - 1, kEntries - 1}}));
  const uint64_t before = fabric.left();
  EXPECT_EQ(reader.Scan(0, kEntries).size(), 1u);
  EXPECT_LT(before - fabric.left(), 40u);
  for (uint64_t number = 0; number < kEntries; number += 37) ASSERT_TRUE(client.Insert(number, 1));
  EXPECT_EQ(reader.Scan(0, kEntries).size(), (kEntries + 36) / 37 + 1);
}

/// Entries of one leaf cost the requests of one entry, but for the READ of the root.
TEST_P(OrderedWindowTest, EntriesOfALeafShareItsRequests) {
  if (GetParam() == fabric::Kind::kShm) GTEST_SKIP() << "requests are calls";
  SpaceCluster cluster(Options(1));
  MortalFabric fabric(cluster.client(), MortalFabric::kNever);
  TreeClient client(cluster, fabric, {.owner = 1});
  ASSERT_TRUE(client.index.Create().ok());
  std::set<std::pair<uint64_t, uint64_t>> pairs;
  const auto requests = [&] {
    const uint64_t before = fabric.left();
    EXPECT_EQ(client.InsertAll(pairs), pairs.size());
    return before - fabric.left();
  };
  pairs = {{1'000, 1}};
  const uint64_t one = requests();
  pairs.clear();
  for (uint64_t number = 0; number < 100; ++number) pairs.emplace(number, number);
  EXPECT_LE(requests(), one);
  pairs.clear();
  for (uint64_t number = 0; number < 20'000; ++number) pairs.emplace(2'000 + number, number);
  EXPECT_LT(requests(), 4'000u);
}

/// A client dies before every work request of a removal that empties leaves: others read at once, write into
/// the ranges of these leaves, and see everything.
TEST(OrderedWindowDeathTest, OthersFinishAnUnlinking) {
  constexpr uint16_t kDying = 7;
  OrderedIndexOptions options{.shape = {.key_bytes = 8, .payload_bytes = 256}, .lock_patience_us = 1};
  options.confirm_gone = [](uint32_t owner) {
    return owner == kDying ? absl::OkStatus() : absl::UnavailableError("it lives");
  };
  bool dead = true;
  for (uint64_t requests = 0; dead; ++requests) {
    SCOPED_TRACE(requests);
    SpaceCluster cluster({.extents_max = 8});
    TreeClient living(cluster, options);
    ASSERT_TRUE(living.index.Create().ok());
    std::set<std::pair<uint64_t, uint64_t>> all, some;
    for (uint64_t i = 0; i < 100; ++i) {
      ASSERT_TRUE(living.Insert(i, i));
      all.emplace(i, i);
      if (i >= 20 && i < 75) some.emplace(i, i);
    }
    MortalFabric mortal(cluster.client(), requests);
    {
      OrderedIndexOptions dying_options = options;
      dying_options.owner = kDying;
      TreeClient dying(cluster, mortal, dying_options);
      TreeClient::Entries entries(dying, some);
      dying.index.Remove(entries.changes).IgnoreError();
    }
    dead = mortal.dead();
    const Pairs found = living.Scan(0, 1'000);  // by cached paths
    for (const auto& pair : all) {
      if (some.contains(pair)) continue;
      ASSERT_TRUE(std::binary_search(found.begin(), found.end(), pair));
    }
    TreeClient fresh(cluster, options);
    EXPECT_EQ(fresh.Scan(0, 1'000), living.Scan(0, 1'000));
    living.InsertAll(some);
    ASSERT_EQ(living.Scan(0, 1'000), Pairs(all.begin(), all.end()));
    ASSERT_EQ(TreeClient(cluster, options).Scan(0, 1'000), Pairs(all.begin(), all.end()));
    ASSERT_EQ(fresh.Scan(0, 1'000), Pairs(all.begin(), all.end()));
    if (HasFailure()) return;
  }
}

/// A client dies before every work request of an insert of many: each of its entries is there once or not at
/// all, and the others go on.
TEST(OrderedWindowDeathTest, OthersFinishManyAtOnce) {
  constexpr uint16_t kDying = 7;
  OrderedIndexOptions options{.shape = {.key_bytes = 8, .payload_bytes = 256}, .lock_patience_us = 1};
  options.confirm_gone = [](uint32_t owner) {
    return owner == kDying ? absl::OkStatus() : absl::UnavailableError("it lives");
  };
  for (const uint64_t before : {0u, 14u, 100u}) {
    bool dead = true;
    for (uint64_t requests = 0; dead; ++requests) {
      SCOPED_TRACE(testing::Message() << before << " keys, dies after " << requests << " work requests");
      SpaceCluster cluster({.extents_max = 8});
      TreeClient living(cluster, options);
      ASSERT_TRUE(living.index.Create().ok());
      Pairs expected;
      for (uint64_t i = 0; i < before; ++i) {
        ASSERT_TRUE(living.Insert(4 * i, i));
        expected.emplace_back(4 * i, i);
      }
      std::set<std::pair<uint64_t, uint64_t>> added, all(expected.begin(), expected.end());
      for (uint64_t i = 0; i < 60; ++i) added.emplace(4 * i + 1, i);
      MortalFabric mortal(cluster.client(), requests);
      {
        OrderedIndexOptions dying_options = options;
        dying_options.owner = kDying;
        TreeClient dying(cluster, mortal, dying_options);
        TreeClient::Entries entries(dying, added);
        const absl::Status inserted = dying.index.Insert(entries.changes);
        EXPECT_TRUE(inserted.ok() || mortal.dead()) << inserted;
        for (size_t i = 0; i < entries.changes.size(); ++i) {
          if (entries.changes[i].applied) all.insert(*std::next(added.begin(), static_cast<ptrdiff_t>(i)));
        }
      }
      dead = mortal.dead();
      const Pairs found = living.Scan(0, 1'000);
      for (const auto& pair : all) ASSERT_TRUE(std::binary_search(found.begin(), found.end(), pair));
      for (const auto& pair : found) ASSERT_TRUE(all.contains(pair) || added.contains(pair));
      ASSERT_EQ(std::adjacent_find(found.begin(), found.end()), found.end());
      living.InsertAll(added);
      all.insert(added.begin(), added.end());
      ASSERT_EQ(TreeClient(cluster, options).Scan(0, 1'000), Pairs(all.begin(), all.end()));
    }
  }
}

}  // namespace
}  // namespace nam::txn
