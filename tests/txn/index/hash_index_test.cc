#include "txn/index/hash_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "storage/checksum.h"
#include "tests/txn/space_cluster.h"

namespace nam::txn {
namespace {

uint64_t HashOf(uint64_t key) {
  return storage::Checksum(std::as_bytes(std::span(&key, 1)));
}
/// All keys fall into few buckets and few branches of the trie, so that every case occurs soon.
uint64_t CrowdedHashOf(uint64_t key) {
  return HashOf(key) & ~(uint64_t{62} << 33);
}

struct IndexClient : SpaceClient {
  IndexClient(SpaceCluster& cluster, int root_bits) : IndexClient(cluster, cluster.client(), root_bits) {}
  IndexClient(SpaceCluster& cluster, fabric::Fabric& fabric, int root_bits)
      : SpaceClient(cluster, fabric), index(batch, Space(), root_bits) {}

  absl::Status Insert(uint64_t hash, uint64_t record) {
    HashIndex::Claim claim{.hash = hash, .record = record};
    return index.Insert({&claim, 1});
  }
  std::set<uint64_t> Lookup(uint64_t hash) {
    HashIndex::Probe probe{.hash = hash};
    const absl::Status status = index.Lookup({&probe, 1});
    EXPECT_TRUE(status.ok()) << status;
    const auto found = probe.candidates.view();
    EXPECT_EQ(std::set<uint64_t>(found.begin(), found.end()).size(), found.size()) << "an entry twice";
    return {found.begin(), found.end()};
  }
  HashIndex index;
};

class HashIndexTest : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  SpaceCluster::Options Options(uint64_t seed) const {
    return {.kind = GetParam(),
            .seed = seed,
            .faults = {.delay_probability = 0.2, .delay_ns_max = 20'000, .torn_operation = 0.1},
            .first_extent_bytes = seed % 2 == 0 ? uint64_t{0} : uint64_t{12} << 10};
  }
};
INSTANTIATE_TEST_SUITE_P(Fabrics, HashIndexTest,
                         ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp, fabric::Kind::kSim),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

TEST_P(HashIndexTest, BehavesLikeAMap) {
  for (const uint64_t seed : Seeds(GetParam(), 5)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(Options(seed));
    IndexClient client(cluster, 1);
    ASSERT_TRUE(client.index.Create().ok());
    std::map<uint64_t, uint64_t> model;
    std::mt19937_64 random(seed);
    for (int round = 0; round < 400; ++round) {
      std::vector<HashIndex::Claim> claims;
      std::vector<HashIndex::Removal> removals;
      for (int i = 0; i < 8; ++i) {
        const uint64_t key = random() % 2000;
        const auto found = model.find(key);
        if (found == model.end()) {
          claims.push_back({.hash = HashOf(key), .record = random() % HashIndex::kRecordMax});
          model[key] = claims.back().record;
        } else if (random() % 2 == 0) {
          if (std::any_of(claims.begin(), claims.end(), [&](auto& c) { return c.hash == HashOf(key); }))
            continue;
          removals.push_back({.hash = HashOf(key), .record = found->second});
          removals.push_back({.hash = HashOf(key), .record = found->second + 1});
          model.erase(found);
        }
      }
      ASSERT_TRUE(client.index.Remove(removals).ok());
      for (size_t i = 0; i < removals.size(); ++i) EXPECT_EQ(removals[i].removed, i % 2 == 0);
      ASSERT_TRUE(client.index.Insert(claims).ok());
      for (const auto& claim : claims) EXPECT_EQ(claim.rivals.count, 0u);
    }
    IndexClient fresh(cluster, 1);
    for (uint64_t key = 0; key < 2000; ++key) {
      const auto found = model.find(key);
      const std::set<uint64_t> expected =
          found == model.end() ? std::set<uint64_t>{} : std::set{found->second};
      ASSERT_EQ(client.Lookup(HashOf(key)), expected);
      ASSERT_EQ(fresh.Lookup(HashOf(key)), expected) << "to a client that knows nothing of the trie";
    }
  }
}

std::vector<std::byte> KeyWithHead(uint64_t number, size_t head_bytes, bool big_endian) {
  std::vector<std::byte> key(head_bytes, std::byte{7});
  for (size_t i = 0; i < 8; ++i) {
    key.push_back(static_cast<std::byte>(number >> 8 * (big_endian ? 7 - i : i)));
  }
  return key;
}

TEST(HashOf, KeysThatAreCountedUpLieSideBySide) {
  constexpr uint64_t kPlaces = (uint64_t{1} << 28) - 1;
  for (const size_t head_bytes : {0, 4, 16}) {
    for (const bool big_endian : {false, true}) {
      for (const uint64_t first : {uint64_t{0}, uint64_t{4'000'000} * 16, (uint64_t{1} << 50) + 16}) {
        std::set<uint64_t> homes;
        const uint64_t hash = HashIndex::HashOf(KeyWithHead(first, head_bytes, big_endian));
        for (uint64_t number = first; number < first + 16; ++number) {
          const uint64_t next = HashIndex::HashOf(KeyWithHead(number, head_bytes, big_endian));
          EXPECT_EQ(next & kPlaces, hash & kPlaces);
          EXPECT_EQ(next >> 33 & 63, ((hash >> 33) + number - first) & 63);
          homes.insert(next >> 33 & 63);
        }
        EXPECT_EQ(homes.size(), 16u);
        EXPECT_NE(HashIndex::HashOf(KeyWithHead(first + 16, head_bytes, big_endian)) & kPlaces,
                  hash & kPlaces);
      }
    }
  }
  // Shorter ones are counted up in their last byte.
  for (const size_t bytes : {1, 2, 4, 7}) {
    std::vector<std::byte> key(bytes, std::byte{});
    const uint64_t hash = HashIndex::HashOf(key);
    key.back() = std::byte{5};
    EXPECT_EQ(HashIndex::HashOf(key) & kPlaces, hash & kPlaces);
    EXPECT_EQ(HashIndex::HashOf(key) >> 33 & 63, ((hash >> 33) + 5) & 63);
  }
}

// Consecutive keys fill the index as well as random keys do, and are hardly ever taken for each other.
TEST(HashOf, FillsTheIndexEvenly) {
  constexpr uint64_t kKeys = 200'000;
  size_t extents[2] = {};
  uint64_t alike[2] = {};
  for (const bool in_a_row : {false, true}) {
    SpaceCluster cluster({.kind = fabric::Kind::kShm});
    IndexClient client(cluster, 0);
    ASSERT_TRUE(client.index.Create().ok());
    std::vector<HashIndex::Claim> claims;
    for (uint64_t number = 0; number < kKeys; ++number) {
      const uint64_t key = in_a_row ? number : number * 0x9e3779b97f4a7c15;
      claims.push_back({.hash = HashIndex::HashOf(std::as_bytes(std::span(&key, 1))), .record = number});
      if (claims.size() < HashIndex::kClaimsMax && number + 1 < kKeys) continue;
      ASSERT_TRUE(client.index.Insert(claims).ok());
      for (const HashIndex::Claim& claim : claims) alike[in_a_row] += claim.rivals.count;
      claims.clear();
    }
    extents[in_a_row] = cluster.Extents()->size();
  }
  EXPECT_LT(extents[1], extents[0] * 5 / 4) << "anywhere: " << extents[0];
  EXPECT_GT(extents[1], 10u);
  EXPECT_LT(alike[1], 2 * alike[0] + 10);
}

TEST(HashIndexRoots, LieInSeveralExtents) {
  for (const uint64_t rows_bytes : {uint64_t{1} << 20, uint64_t{16} << 20, uint64_t{64} << 20}) {
    const int root_bits = HashIndex::RootBitsThatFit(rows_bytes);
    const uint64_t extent_bytes = std::max(rows_bytes / 8, uint64_t{256} << 10);
    const uint32_t extents = HashIndex::ExtentsOfRoots(root_bits, extent_bytes);
    EXPECT_GE(extents, 3u);
    EXPECT_GE(extents * extent_bytes, (uint64_t{4224} << root_bits) + extents * 64);
    EXPECT_LT((extents - 1) * (extent_bytes - 64), uint64_t{4224} << root_bits);
  }
}

TEST_P(HashIndexTest, OneOfTwoSeesTheOther) {
  constexpr int kClients = 4;
  constexpr uint64_t kKeys = 300;
  for (const uint64_t seed : Seeds(GetParam(), 20)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(Options(seed));
    ASSERT_TRUE(IndexClient(cluster, 0).index.Create().ok());
    std::vector<std::atomic<int>> unrivalled(kKeys);
    RunThreads(cluster, kClients, [&](int self) {
      IndexClient client(cluster, 0);
      for (uint64_t key = 0; key < kKeys; ++key) {
        const uint64_t record = key * kClients + static_cast<uint64_t>(self);
        // Words of the buckets come and go; otherwise all clients would want the same one.
        const uint64_t neighbour = CrowdedHashOf(key) ^ uint64_t { 1 } << 41;
        if ((key + record) % 3 == 0) {
          ASSERT_TRUE(client.Insert(neighbour, record).ok());
        }
        if ((key + record) % 3 == 1) {
          HashIndex::Removal removal{.hash = neighbour, .record = record - 1};
          ASSERT_TRUE(client.index.Remove({&removal, 1}).ok());
        }
        HashIndex::Claim claim{.hash = CrowdedHashOf(key), .record = record};
        const absl::Status status = client.index.Insert({&claim, 1});
        ASSERT_TRUE(status.ok()) << status;
        bool rival = false;
        for (const uint64_t other : claim.rivals.view()) rival |= other / kClients == key;
        if (!rival) {
          ++unrivalled[key];
          continue;
        }
        HashIndex::Removal removal{.hash = claim.hash, .record = record};
        ASSERT_TRUE(client.index.Remove({&removal, 1}).ok());
        EXPECT_TRUE(removal.removed);
      }
    });
    IndexClient client(cluster, 0);
    for (uint64_t key = 0; key < kKeys; ++key) {
      ASSERT_LE(unrivalled[key], 1) << "key " << key;
      ASSERT_EQ(client.Lookup(CrowdedHashOf(key)).size(), static_cast<size_t>(unrivalled[key]));
    }
  }
}

/// Keys that are counted up, four home buckets for all of them: groups fill up, fall apart, and are split.
uint64_t CountedHashOf(uint64_t key) {
  return (HashOf(key) & ~(uint64_t{63} << 33)) | (key % 4) << 33;
}

TEST_P(HashIndexTest, KeysSideBySideAreReadAtOnce) {
  SpaceCluster cluster(Options(1));
  IndexClient client(cluster, 0);
  ASSERT_TRUE(client.index.Create().ok());
  ASSERT_TRUE(client.Insert(CountedHashOf(4), 4).ok());  // and learns the index
  std::vector<HashIndex::Claim> claims;
  for (uint64_t key = 8; key < 12; ++key) claims.push_back({.hash = CountedHashOf(key), .record = key});
  const uint64_t before = client.batch.requests_added();
  ASSERT_TRUE(client.index.Insert(claims).ok());
  const uint64_t reads = client.channel->in_place() ? 0 : 2;
  EXPECT_EQ(client.batch.requests_added() - before, claims.size() + reads);
  for (uint64_t key = 8; key < 12; ++key) EXPECT_EQ(client.Lookup(CountedHashOf(key)), std::set{key});
}

/// There is no other client: each key of a full bucket's group gets a word of its own at once.
TEST_P(HashIndexTest, AGroupTakesAWordOnce) {
  SpaceCluster cluster(Options(1));
  IndexClient client(cluster, 0);
  ASSERT_TRUE(client.index.Create().ok());
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(client.Insert(CountedHashOf(4 * i), i).ok());
  std::vector<HashIndex::Claim> claims;
  for (uint64_t key = 100; key < 102; ++key) claims.push_back({.hash = CountedHashOf(key), .record = key});
  const uint64_t before = client.batch.requests_added();
  ASSERT_TRUE(client.index.Insert(claims).ok());
  const uint64_t reads = client.channel->in_place() ? 0 : 2;
  EXPECT_EQ(client.batch.requests_added() - before, claims.size() + reads);
}

TEST_P(HashIndexTest, OneOfTwoGroupsSeesTheOther) {
  constexpr uint64_t kClients = 3, kGroups = 80, kGroup = 4;
  for (const uint64_t seed : Seeds(GetParam(), 30)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(Options(seed));
    ASSERT_TRUE(IndexClient(cluster, 0).index.Create().ok());
    std::vector<std::atomic<int>> unrivalled(kGroups * kGroup);
    RunThreads(cluster, kClients, [&](int self) {
      IndexClient client(cluster, 0);
      for (uint64_t group = 0; group < kGroups; ++group) {
        std::vector<HashIndex::Claim> claims;
        for (uint64_t key = group * kGroup; key < (group + 1) * kGroup; ++key) {
          claims.push_back({.hash = CountedHashOf(key), .record = key * kClients + uint64_t(self)});
        }
        const absl::Status status = client.index.Insert(claims);
        ASSERT_TRUE(status.ok()) << status;
        std::vector<HashIndex::Removal> removals;
        for (const HashIndex::Claim& claim : claims) {
          const uint64_t key = claim.record / kClients;
          bool rival = false;
          for (const uint64_t other : claim.rivals.view()) rival |= other / kClients == key;
          if (rival) {
            removals.push_back({.hash = claim.hash, .record = claim.record});
          } else {
            ++unrivalled[key];
          }
        }
        ASSERT_TRUE(client.index.Remove(removals).ok());
        for (const HashIndex::Removal& removal : removals) EXPECT_TRUE(removal.removed);
      }
    });
    IndexClient client(cluster, 0);
    for (uint64_t key = 0; key < kGroups * kGroup; ++key) {
      ASSERT_LE(unrivalled[key], 1) << "key " << key;
      ASSERT_EQ(client.Lookup(CountedHashOf(key)).size(), static_cast<size_t>(unrivalled[key]));
    }
  }
}

TEST_P(HashIndexTest, WhatStaysIsFoundWhileOthersInsertAndRemove) {
  constexpr uint64_t kKeys = 400;
  for (const uint64_t seed : Seeds(GetParam(), 10)) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(Options(seed));
    IndexClient first(cluster, 0);
    ASSERT_TRUE(first.index.Create().ok());
    for (uint64_t key = 0; key < 40; ++key) ASSERT_TRUE(first.Insert(CrowdedHashOf(key), key).ok());
    std::atomic<int> writers = 2;
    RunThreads(cluster, 4, [&](int self) {
      IndexClient client(cluster, 0);
      if (self >= 2) {
        for (bool last = false; !last;) {
          last = writers == 0;
          for (uint64_t key = 0; key < 40; ++key) {
            ASSERT_EQ(client.Lookup(CrowdedHashOf(key)), std::set{key});
          }
        }
        return;
      }
      for (uint64_t i = 0; i < kKeys; ++i) {
        const uint64_t key = 1000 + i * 2 + static_cast<uint64_t>(self);
        EXPECT_TRUE(client.Insert(CrowdedHashOf(key), key).ok());
        if (i % 2 == 0) continue;
        HashIndex::Removal removal{.hash = CrowdedHashOf(key), .record = key};
        EXPECT_TRUE(client.index.Remove({&removal, 1}).ok());
        EXPECT_TRUE(removal.removed);
      }
      --writers;
    });
    for (uint64_t i = 0; i < 2 * kKeys; ++i) {
      const std::set<uint64_t> expected = i / 2 % 2 == 0 ? std::set{1000 + i} : std::set<uint64_t>{};
      ASSERT_EQ(first.Lookup(CrowdedHashOf(1000 + i)), expected);
    }
  }
}

/// A client dies before every work request of an insert that splits; another one finds the entries that
/// existed before, and goes on.
TEST(HashIndexDeathTest, OthersFinishASplit) {
  constexpr uint64_t kHash = 0x123;  // differs in the highest bits only: one bucket
  const auto hash = [](uint64_t key) { return kHash | key << 58; };
  bool dead = true;
  uint64_t deaths = 0;
  for (uint64_t requests = 0; dead; ++requests) {
    SCOPED_TRACE(testing::Message() << "dies after " << requests << " work requests");
    SpaceCluster cluster({.extents_max = 8});
    IndexClient living(cluster, 0);
    ASSERT_TRUE(living.index.Create().ok());
    for (uint64_t key = 0; key < 16; ++key) ASSERT_TRUE(living.Insert(hash(key), key).ok());
    MortalFabric mortal(cluster.client(), requests);
    {
      IndexClient dying(cluster, mortal, 0);
      const absl::Status status = dying.Insert(hash(16), 16);
      EXPECT_EQ(status.ok(), !mortal.dead()) << status;
    }
    dead = mortal.dead();
    deaths += dead ? 1 : 0;
    for (uint64_t key = 0; key < 16; ++key) ASSERT_EQ(living.Lookup(hash(key)), std::set{key});
    HashIndex::Removal removal{.hash = hash(3), .record = 3};
    ASSERT_TRUE(living.index.Remove({&removal, 1}).ok());
    EXPECT_TRUE(removal.removed);
    for (uint64_t key = 17; key < 32; ++key) ASSERT_TRUE(living.Insert(hash(key), key).ok());
    for (uint64_t key = 0; key < 32; ++key) {
      const auto found = living.Lookup(hash(key));
      if (key == 16 && dead && found.empty()) continue;
      ASSERT_EQ(found, key == 3 ? std::set<uint64_t>{} : std::set{key}) << "key " << key;
    }
  }
  EXPECT_GT(deaths, 500u);  // as many as a segment has words
}

/// Clients come, insert, and die in the middle of it, with their posted requests still in flight.
TEST(HashIndexDeathTest, NothingIsLostWhileClientsDie) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SpaceCluster cluster(
        {.kind = fabric::Kind::kSim,
         .seed = seed,
         .faults = {.delay_probability = 0.2, .delay_ns_max = 20'000, .torn_operation = 0.1}});
    ASSERT_TRUE(IndexClient(cluster, 0).index.Create().ok());
    std::array<std::set<uint64_t>, 4> inserted;
    std::array<std::set<uint64_t>, 4> tried;
    RunThreads(cluster, 4, [&](int self) {
      std::mt19937_64 random(seed * 4 + static_cast<uint64_t>(self));
      for (uint64_t key = static_cast<uint64_t>(self); key < 1200;) {
        MortalFabric mortal(cluster.client(), 1 + random() % 2000);
        IndexClient client(cluster, mortal, 0);
        for (; key < 1200 && !mortal.dead(); key += 4) {
          tried[self].insert(key);
          if (client.Insert(CrowdedHashOf(key), key).ok()) inserted[self].insert(key);
        }
      }
    });
    IndexClient client(cluster, 0);
    for (uint64_t key = 0; key < 1200; ++key) {
      const auto found = client.Lookup(CrowdedHashOf(key));  // checks that none occurs twice
      ASSERT_TRUE(tried[key % 4].contains(key));
      ASSERT_TRUE(found == std::set{key} || (found.empty() && !inserted[key % 4].contains(key))) << key;
    }
  }
}

TEST(HashIndexLimitsTest, MemoryThatIsFullIsAnErrorAndNothingIsLost) {
  SpaceCluster cluster({.extent_bytes = 32 << 10, .extents_max = 2});
  IndexClient client(cluster, 0);
  ASSERT_TRUE(client.index.Create().ok());
  uint64_t key = 0;
  absl::Status status;
  while (status = client.Insert(HashOf(key), key), status.ok()) ASSERT_LT(++key, 100'000u);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  for (uint64_t i = 0; i < key; ++i) ASSERT_EQ(client.Lookup(HashOf(i)), std::set{i});
}

/// Numbers that lie behind short extents are taken by nobody, and none of the other ones is left out.
TEST(HashIndexLimitsTest, ShortExtentsAreUsedUp) {
  constexpr uint64_t kFirstBytes = 20 << 10, kWholeBytes = 64 << 10, kSegmentBytes = 4'224;
  SpaceCluster cluster({.extent_bytes = kWholeBytes, .extents_max = 4, .first_extent_bytes = kFirstBytes});
  uint64_t segments = 0;
  for (const uint64_t bytes : {kFirstBytes, 3 * kFirstBytes, kWholeBytes, kWholeBytes})
    segments += (bytes - NumberedBlocks::kExtentHeaderBytes) / kSegmentBytes;
  SpaceClient client(cluster);
  NumberedBlocks blocks(client.batch, client.Space(), kSegmentBytes, 3);
  SpaceClient other_client(cluster);
  NumberedBlocks other(other_client.batch, other_client.Space(), kSegmentBytes, 3);
  ASSERT_TRUE(blocks.Create().ok());
  std::set<uint64_t> positions;
  absl::StatusOr<uint64_t> number = 0;
  for (int turn = 0; number.ok(); ++turn) {
    NumberedBlocks& by = turn % 2 == 0 ? blocks : other;
    number = by.Allocate(1);
    if (!number.ok()) break;
    const uint64_t position = by.PositionOf(static_cast<uint32_t>(*number));
    EXPECT_TRUE(positions.insert(position).second) << *number;
    EXPECT_LE(position % kWholeBytes + kSegmentBytes, by.space().BytesOf(position / kWholeBytes)) << *number;
  }
  EXPECT_EQ(number.status().code(), absl::StatusCode::kResourceExhausted) << number.status();
  EXPECT_GE(positions.size() + 3, segments - 2) << "of " << segments;
}

TEST(HashIndexLimitsTest, TooManyKeysWithOneHashAreAnError) {
  SpaceCluster cluster({});
  IndexClient client(cluster, 0);
  ASSERT_TRUE(client.index.Create().ok());
  for (uint64_t record = 0; record < 16; ++record) ASSERT_TRUE(client.Insert(77, record).ok());
  EXPECT_EQ(client.Insert(77, 16).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(client.Lookup(77).size(), 16u);
}

TEST(HashIndexLimitsTest, RootsForTheRowsExpected) {
  EXPECT_EQ(HashIndex::RootBitsFor(0), 0);
  EXPECT_EQ(HashIndex::RootBitsFor(256), 0);
  EXPECT_EQ(HashIndex::RootBitsFor(257), 1);
  EXPECT_EQ(HashIndex::RootBitsFor(1'000'000), 12);
  EXPECT_EQ(HashIndex::RootBitsFor(~uint64_t{0}), HashIndex::kRootBitsMax);
  SpaceCluster cluster({});
  IndexClient client(cluster, 6);  // more than an extent holds
  ASSERT_TRUE(client.index.Create().ok());
  for (uint64_t key = 0; key < 1000; ++key) ASSERT_TRUE(client.Insert(HashOf(key), key).ok());
  for (uint64_t key = 0; key < 1000; ++key) ASSERT_EQ(client.Lookup(HashOf(key)), std::set{key});
}

/// Four clients, from an index that was made for a quarter of the rows.
TEST(HashIndexLoadTest, AMillionKeysByFourClientsAreThereOnce) {
  constexpr uint64_t kKeys = 1'000'000;
  constexpr size_t kBatch = 8;
  SpaceCluster cluster({.extent_bytes = 1 << 20, .extents_max = 128});
  const int root_bits = HashIndex::RootBitsFor(kKeys / 4);
  ASSERT_TRUE(IndexClient(cluster, root_bits).index.Create().ok());
  RunThreads(cluster, 4, [&](int self) {
    IndexClient client(cluster, root_bits);
    std::vector<HashIndex::Claim> claims(kBatch);
    for (uint64_t key = static_cast<uint64_t>(self); key < kKeys;) {
      for (auto& claim : claims) {
        claim = {.hash = HashOf(key), .record = key};
        key += 4;
      }
      const absl::Status status = client.index.Insert(claims);
      ASSERT_TRUE(status.ok()) << status;
    }
  });
  IndexClient client(cluster, root_bits);
  std::vector<HashIndex::Probe> probes(1000);
  uint64_t entries = 0;
  for (uint64_t key = 0; key < kKeys; key += probes.size()) {
    for (size_t i = 0; i < probes.size(); ++i) probes[i] = {.hash = HashOf(key + i)};
    ASSERT_TRUE(client.index.Lookup(probes).ok());
    for (size_t i = 0; i < probes.size(); ++i) {
      const auto found = probes[i].candidates.view();
      ASSERT_EQ(std::count(found.begin(), found.end(), key + i), 1) << "key " << key + i;
      entries += found.size();
    }
  }
  // A fingerprint tells all but a few.
  EXPECT_LT(entries, kKeys + kKeys / 1000);
}

/// One client has READ the two buckets of its key and pauses; another splits the segment meanwhile. The claim
/// must not go to a word of the old segment, not even of its last bucket, which is no key's home.
TEST(HashIndexInterleaved, ASplitFreezesTheLastBucketToo) {
  const auto hash_of = [](uint64_t fingerprint, uint64_t bucket) {
    return fingerprint << 41 | bucket << 33;  // hash_index.h
  };
  for (uint64_t requests = 0;; ++requests) {
    SCOPED_TRACE(requests);
    SpaceCluster cluster({});
    SpaceClient filler(cluster);
    HashIndex index(filler.batch, filler.Space(), 0);
    ASSERT_TRUE(index.Create().ok());
    std::vector<HashIndex::Claim> claims;
    // Home bucket 63 is full, so its next key goes to bucket 64; and there is no room for a key of bucket 10.
    for (uint64_t i = 0; i < 8; ++i)
      claims.push_back({.hash = hash_of(i * 0x10001, 63), .record = claims.size()});
    for (uint64_t i = 0; i < 16; ++i)
      claims.push_back({.hash = hash_of(i * 0x10001, 10), .record = claims.size()});
    ASSERT_TRUE(index.Insert(claims).ok());
    MortalFabric fabric(cluster.client(), MortalFabric::kNever);
    SpaceClient slow(cluster, fabric);
    HashIndex of_slow(slow.batch, slow.Space(), 0);
    HashIndex::Claim split{.hash = hash_of(20 * 0x10001, 10), .record = 100};
    fabric.PauseAfter(requests, [&] { ASSERT_TRUE(index.Insert({&split, 1}).ok()); });
    HashIndex::Claim late{.hash = hash_of(21 * 0x10001, 63), .record = 101};
    ASSERT_TRUE(of_slow.Insert({&late, 1}).ok());
    if (!fabric.paused()) {
      EXPECT_GE(requests, 2u);
      return;
    }
    SpaceClient reader(cluster);
    HashIndex of_reader(reader.batch, reader.Space(), 0);
    claims.push_back(split);
    claims.push_back(late);
    for (const HashIndex::Claim& claim : claims) {
      HashIndex::Probe probe{.hash = claim.hash};
      ASSERT_TRUE(of_reader.Lookup({&probe, 1}).ok());
      const auto found = probe.candidates.view();
      EXPECT_NE(std::find(found.begin(), found.end(), claim.record), found.end())
          << "record " << claim.record;
    }
  }
}

}  // namespace
}  // namespace nam::txn
