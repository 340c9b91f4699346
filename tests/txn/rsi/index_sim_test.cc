#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

#include "tests/base/seeds.h"
#include "tests/txn/indexed_rows.h"
#include "tests/txn/space_cluster.h"
#include "txn/rsi/session.h"

namespace nam::txn {
namespace {

/// Clients in a simulated world change rows with indexes, make and drop indexes, and die after any verb. Any
/// reader at a snapshot finds by every index the content of the whole table. NAM_SEED=N runs one scenario
/// again, NAM_SEEDS=N runs that many.
class IndexScenario {
 public:
  explicit IndexScenario(uint64_t seed) : random_(seed), cluster_(ClusterOptions(seed)) {
    const uint32_t versions[] = {1, 1, 2, 4};
    cluster_.AddTable(
        "items", {.row_bytes = sizeof(Item), .versions = versions[random_() % 4], .small = seed % 2 == 0});
    if (random_() % 2 == 0) cluster_.SetUsable("items", cluster_.AddIndex("items", ByGroup()), 1);
    if (random_() % 2 == 0) cluster_.SetUsable("items", cluster_.AddIndex("items", ByName()), 1);
  }

  void Run() {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int i = 2 + static_cast<int>(random_() % 3); i > 0; --i) {
      threads.push_back(
          cluster_.client().StartThread("client", [this, seed = random_()] { Work(seed, 25, false); }));
    }
    threads.push_back(
        cluster_.client().StartThread("builder", [this, seed = random_()] { Work(seed, 4, true); }));
    threads.clear();  // joins
    Mend();
  }

  int committed = 0, compared = 0, deaths = 0, filled = 0;

 private:
  static constexpr uint64_t kKeys = 8;

  static RecordCluster::Options ClusterOptions(uint64_t seed) {
    std::mt19937_64 random(seed ^ 0x1dec5);
    RecordCluster::Options options{.kind = fabric::Kind::kSim, .seed = seed};
    options.memory_bytes = uint64_t{20} << 20;
    options.faults.delay_probability = random() % 3 == 0 ? 0.0 : 0.1;
    options.faults.delay_ns_max = 20'000;
    options.faults.torn_operation = random() % 3 == 0 ? 0.0 : 0.3;
    options.faults.wake_delay_ns_max = random() % 2 == 0 ? 0 : 5'000;
    return options;
  }

  // Clients run one after the other: each that dies is followed by the next.
  void Work(uint64_t seed, int left, bool builds) {
    std::mt19937_64 random(seed);
    while (left > 0) {
      const uint32_t member = ++members_;
      const std::unique_ptr<fabric::Fabric> fabric = cluster_.OpenFabric("client");
      MortalFabric mortal(*fabric, random() % 2 == 0 ? ~uint64_t{0} >> 1 : random() % 1'500);
      RecordCluster::Member tables(cluster_, mortal, member);
      auto session = OpenRsiSession(tables, {});
      if (session.ok()) {
        const auto table = (*session)->OpenTable("items");
        bool goes_on = table.ok();
        while (goes_on && left > 0 && !::testing::Test::HasFatalFailure()) {
          --left;
          goes_on = builds ? Alter(**session, *table, random) : Transact(**session, *table, random);
        }
      } else {
        --left;
      }
      if (!mortal.dead()) continue;
      ++deaths;
      cluster_.world().KillProcess(cluster_.world().ProcessOf(*fabric));
      cluster_.SetDead(MemberId(member));
    }
  }

  // False: the session cannot be used any more.
  bool Alter(Session& session, TableHandle table, std::mt19937_64& random) {
    const IndexDescription index = random() % 2 == 0 ? ByGroup() : ByName();
    for (const IndexDescription& known : cluster_.IndexesOf("items")) {
      if (known.name != index.name) continue;
      cluster_.RemoveIndex("items", known.allocation);
      const auto awaited = session.AwaitCommits();
      return awaited.ok() || AbortReasonOf(awaited.status()).has_value();
    }
    const AllocationId allocation = cluster_.AddIndex("items", index);
    const absl::StatusOr<uint64_t> usable_from = session.FillIndex(table, allocation);
    if (usable_from.ok()) {
      ++filled;
      cluster_.SetUsable("items", allocation, *usable_from);
      return true;
    }
    return absl::IsAlreadyExists(usable_from.status()) || AbortReasonOf(usable_from.status()).has_value();
  }

  bool Transact(Session& session, TableHandle table, std::mt19937_64& random) {
    const auto usable = [](const absl::Status& status) { return AbortReasonOf(status).has_value(); };
    if (absl::Status status = session.Begin(); !status.ok()) return usable(status);
    if (random() % 3 == 0) {
      if (absl::Status status = Compare(session, table, true); !status.ok()) return usable(status);
    }
    for (uint64_t changes = random() % 4; changes > 0; --changes) {
      if (absl::Status status = Change(session, table, random); !status.ok()) return usable(status);
    }
    if (random() % 3 == 0) {
      if (absl::Status status = Compare(session, table, false); !status.ok()) return usable(status);
    }
    const absl::StatusOr<uint64_t> done = session.Commit();
    committed += done.ok() && *done != 0;
    return done.ok() || usable(done.status());
  }

  absl::Status Change(Session& session, TableHandle table, std::mt19937_64& random) {
    Item item;
    const uint64_t key = random() % kKeys;
    Lookup lookup{table, BytesOf(key), std::as_writable_bytes(std::span(&item, 1))};
    if (absl::Status status = session.Read({&lookup, 1}); !status.ok()) return status;
    if (lookup.found && random() % 5 == 0) return session.Delete(table, lookup.key);
    item.key = key;
    ++item.count;
    if (!lookup.found || random() % 2 == 0) item.group = static_cast<uint8_t>(random() % 5);
    if (!lookup.found || random() % 2 == 0) {
      item.nulls = random() % 4 == 0;
      item.name[0] = item.nulls != 0 ? 0 : static_cast<uint8_t>(1 + random() % 12);
    }
    return lookup.found ? session.Update(table, BytesOf(item)) : session.Insert(table, BytesOf(item));
  }

  /// Reads at the transaction's snapshot, including its own writes.
  absl::Status Compare(Session& session, TableHandle table, bool unchanged) {
    const std::vector<IndexDescription> indexes = cluster_.IndexesOf("items");
    absl::StatusOr<std::vector<Item>> all = AllItems(session, table);
    if (!all.ok()) return all.status();
    for (const IndexDescription& index : indexes) {
      if (index.usable_from == 0 || index.usable_from > session.snapshot()) continue;
      const std::vector<std::byte> low(index.key_bytes == 1 ? 1 : 2, std::byte{1});
      absl::StatusOr<std::vector<Item>> found = ItemsBy(session, table, index.allocation, low, {});
      if (!found.ok()) return found.status();
      std::vector<Item> expected;
      for (const Item& item : *all) {
        const std::vector<std::byte> key = KeyIn(index, item);
        if (!std::lexicographical_compare(key.begin(), key.end(), low.begin(), low.end()))
          expected.push_back(item);
      }
      EXPECT_TRUE(std::is_sorted(found->begin(), found->end(), [&](const Item& a, const Item& b) {
        return KeyIn(index, a) < KeyIn(index, b);
      }));
      std::sort(expected.begin(), expected.end());
      std::sort(found->begin(), found->end());
      EXPECT_TRUE(*found == expected) << "by index " << index.name << ": " << found->size() << " rows, not "
                                      << expected.size() << ", at snapshot " << session.snapshot();
      ++compared;
      if (!index.unique || !unchanged) continue;
      std::set<std::vector<std::byte>> keys;
      for (const Item& item : *all)
        EXPECT_TRUE(item.nulls != 0 || keys.insert(KeyIn(index, item)).second) << "a key is there twice";
    }
    return absl::OkStatus();
  }

  // Every row can be written to, whichever client died, and the indexes are right.
  void Mend() {
    RecordCluster::Member tables(cluster_, cluster_.client(), ++members_);
    auto session = OpenRsiSession(tables, {});
    ASSERT_TRUE(session.ok()) << session.status();
    const TableHandle table = *(*session)->OpenTable("items");
    Clock& clock = cluster_.client().clock();
    const Deadline deadline = clock.After(10'000'000);
    for (uint64_t key = 0; key < kKeys;) {
      ASSERT_FALSE(clock.Passed(deadline)) << "row " << key << " stays locked";
      const absl::Status status = Touch(**session, table, key);
      ASSERT_TRUE(status.ok() || AbortReasonOf(status).has_value()) << status;
      if (status.ok()) ++key;
      if (!status.ok()) clock.SleepUntil(clock.After(100));
    }
    ASSERT_TRUE((*session)->Begin().ok());
    const absl::Status status = Compare(**session, table, true);
    EXPECT_TRUE(status.ok()) << status;
  }
  static absl::Status Touch(Session& session, TableHandle table, uint64_t key) {
    if (absl::Status status = session.Begin(); !status.ok()) return status;
    Item item;
    Lookup lookup{table, BytesOf(key), std::as_writable_bytes(std::span(&item, 1))};
    if (absl::Status status = session.Read({&lookup, 1}); !status.ok()) return status;
    item.key = key;
    if (!lookup.found) item.nulls = 1;
    item.group = static_cast<uint8_t>(7 + key);
    absl::Status status =
        lookup.found ? session.Update(table, BytesOf(item)) : session.Insert(table, BytesOf(item));
    return status.ok() ? session.Commit().status() : status;
  }

  std::mt19937_64 random_;
  // One simulated thread runs at a time: the following variables need no lock.
  uint32_t members_ = 0;
  RecordCluster cluster_;
};

TEST(RsiIndexSim, IndexesTellWhatTheTableHolds) {
  const uint64_t first = FromEnvironment("NAM_SEED", 1);
  const uint64_t count = FromEnvironment("NAM_SEEDS", std::getenv("NAM_SEED") != nullptr ? 1 : 100);
  int committed = 0, compared = 0, deaths = 0, filled = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    IndexScenario scenario(seed);
    scenario.Run();
    committed += scenario.committed;
    compared += scenario.compared;
    deaths += scenario.deaths;
    filled += scenario.filled;
    if (::testing::Test::HasFailure()) break;
  }
  std::cout << count << " seeds: " << committed << " commits, " << compared << " comparisons, " << filled
            << " indexes filled, " << deaths << " clients died\n";
  EXPECT_GT(compared, count);
}

}  // namespace
}  // namespace nam::txn
