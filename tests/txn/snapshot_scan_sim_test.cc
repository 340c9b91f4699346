#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "tests/base/seeds.h"
#include "tests/txn/lent_reader.h"
#include "tests/txn/record_cluster.h"
#include "tests/txn/space_cluster.h"
#include "tests/txn/teller.h"

namespace nam::txn {
namespace {

constexpr uint64_t kKeys = 120;
constexpr int64_t kTotal = 100 * kKeys / 2;

/// A bank in a simulated world: tellers move money between accounts, and accounts from key to key, and die
/// or lose their connections while they do; auditors without client slots scan all accounts at snapshots that
/// sessions lend them, and that may end before the scan does. What is scanned adds up, or the scan fails with
/// an error that is worth another try. Few chunks, so that blocks of deleted accounts are soon used again.
class Bank {
 public:
  Bank(TimestampKind timestamps, uint64_t seed) : random_(seed), cluster_(ClusterOptions(timestamps, seed)) {
    const uint32_t versions = uint32_t{1} << random_() % 3;
    // A chunk or two in each extent.
    cluster_.AddTable("accounts",
                      {.versions = versions, .extent_bytes = (64 << 10) * versions, .extents_max = 8});
    Teller founder(cluster_, ++members_);
    for (uint64_t key = 0; key < kKeys / 2; ++key) founder.Create(key, kTotal * 2 / kKeys);
  }

  void Run() {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    const int tellers = 1 + static_cast<int>(random_() % 3), auditors = 1 + static_cast<int>(random_() % 2);
    for (int i = 0; i < tellers; ++i) {
      threads.push_back(
          cluster_.client().StartThread("teller", [this, seed = random_()] { RunTellers(seed); }));
    }
    for (int i = 0; i < auditors; ++i) {
      threads.push_back(
          cluster_.client().StartThread("auditor", [this, seed = random_()] { RunAuditor(seed); }));
    }
    threads.clear();
  }
  int transfers() const { return transfers_; }
  int right() const { return right_; }
  int again() const { return again_; }
  int deaths() const { return deaths_; }

 private:
  static RecordCluster::Options ClusterOptions(TimestampKind timestamps, uint64_t seed) {
    std::mt19937_64 random(seed ^ 0xba2c);
    RecordCluster::Options options{.kind = fabric::Kind::kSim, .seed = seed, .timestamps = timestamps};
    options.memory_bytes = uint64_t{20} << 20;
    options.faults.delay_probability = random() % 3 == 0 ? 0.0 : 0.1;
    options.faults.delay_ns_max = 20'000;
    options.faults.torn_operation = random() % 3 == 0 ? 0.0 : 0.3;
    options.faults.wake_delay_ns_max = random() % 2 == 0 ? 0 : 5'000;
    options.faults.overtaking_fetch = random() % 2 == 0 ? 0.0 : 0.5;
    return options;
  }

  // Tellers run one after the other: each that dies is followed by the next.
  void RunTellers(uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int left = 60; left > 0;) {
      const uint32_t member = ++members_;
      const std::unique_ptr<fabric::Fabric> fabric = cluster_.OpenFabric("client");
      MortalFabric mortal(*fabric, random() % 3 == 0 ? random() % 1'000 : MortalFabric::kNever);
      RecordCluster::Member tables(cluster_, mortal, member);
      {
        auto session = OpenRsiSession(tables, {});
        int of_session = 1 + static_cast<int>(random() % 6);
        --left;
        if (session.ok()) {
          const auto table = (*session)->OpenTable("accounts");
          while (table.ok() && left-- > 0 && of_session-- > 0) Transfer(**session, *table, random);
        }
      }
      if (!mortal.dead() && tables.lost_clients().TakeAll().empty()) continue;
      ++deaths_;
      cluster_.world().KillProcess(cluster_.world().ProcessOf(*fabric));
      cluster_.SetDead(MemberId(member));
    }
  }
  void Transfer(Session& session, TableHandle table, std::mt19937_64& random) {
    const uint64_t first = random() % kKeys;
    const uint64_t wanted[2] = {first, (first + 1 + random() % (kKeys - 1)) % kKeys};
    Account accounts[2];
    std::vector<Lookup> lookups;
    for (int i = 0; i < 2; ++i)
      lookups.push_back({table, Bytes(wanted[i]), std::as_writable_bytes(std::span(&accounts[i], 1))});
    if (!session.Begin().ok() || !session.Read(lookups).ok()) return session.Abort();
    const int from = lookups[0].found ? 0 : 1, to = 1 - from;
    if (!lookups[static_cast<size_t>(from)].found) return session.Abort();
    absl::Status status;
    if (lookups[static_cast<size_t>(to)].found) {
      const auto amount = static_cast<int64_t>(random() % 30);
      accounts[from].balance -= amount;
      accounts[to].balance += amount;
      status = session.Update(table, Bytes(accounts[from]));
      if (status.ok()) status = session.Update(table, Bytes(accounts[to]));
    } else {
      const Account moved{wanted[to], accounts[from].balance};
      status = session.Delete(table, Bytes(wanted[from]));
      if (status.ok()) status = session.Insert(table, Bytes(moved));
    }
    if (!status.ok()) return session.Abort();
    transfers_ += session.Commit().ok();
  }

  void RunAuditor(uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::unique_ptr<fabric::Fabric> fabric = cluster_.OpenFabric("client");
    RecordCluster::Member tables(cluster_, *fabric, ++members_);
    const std::unique_ptr<fabric::Fabric> server = cluster_.OpenFabric("compute");
    for (int i = 0; i < 12; ++i) {
      auto lender = OpenRsiSession(tables, {});
      if (!lender.ok()) continue;  // all slots are taken, or a client has to be recovered first
      if (!(*lender)->Begin().ok()) continue;
      const uint64_t snapshot = (*lender)->snapshot();
      MortalFabric breaking(*server, MortalFabric::kNever);
      if (random() % 8 == 0) breaking.BreakAfter(random() % 2'000);
      LentReader reader(cluster_, ++members_, breaking);
      const uint64_t ends_in = random() % 3 == 0 ? random() % 12 : ~uint64_t{0};
      uint64_t batch = 0;
      Clock& clock = fabric->clock();
      const auto balances = reader.Read(snapshot, 1 + random() % 300, 1 + random() % 3, [&] {
        if (batch++ == ends_in) lender->reset();
        clock.SleepUntil(clock.After(static_cast<int64_t>(random() % 300)));
      });
      if (!balances.ok()) {
        const bool broke = breaking.breaks() > 0 && absl::IsUnavailable(balances.status());
        EXPECT_TRUE(broke || AbortReasonOf(balances.status()) == AbortReason::kSnapshotTooOld)
            << balances.status();
        ++again_;
        continue;
      }
      ++right_;
      int64_t sum = 0;
      for (const auto& [key, balance] : *balances) sum += balance;
      EXPECT_EQ(sum, kTotal) << "at snapshot " << snapshot << ", " << balances->size() << " accounts";
      EXPECT_EQ(balances->size(), kKeys / 2);
    }
  }

  std::mt19937_64 random_;
  // One simulated thread runs at a time: the following variables need no lock.
  uint32_t members_ = 0;
  int transfers_ = 0, right_ = 0, again_ = 0, deaths_ = 0;
  RecordCluster cluster_;
};

class SnapshotScanSim : public ::testing::TestWithParam<TimestampKind> {};
INSTANTIATE_TEST_SUITE_P(Timestamps, SnapshotScanSim,
                         ::testing::Values(TimestampKind::kLeased, TimestampKind::kBitVector),
                         [](const auto& info) { return NameOf(info.param); });

/// NAM_SEED=N runs one scenario again, NAM_SEEDS=N runs that many.
TEST_P(SnapshotScanSim, TheBankAddsUp) {
  const uint64_t first = FromEnvironment("NAM_SEED", 1);
  const uint64_t count = FromEnvironment("NAM_SEEDS", std::getenv("NAM_SEED") != nullptr ? 1 : 50);
  int transfers = 0, right = 0, again = 0, deaths = 0;
  for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    Bank bank(GetParam(), seed);
    bank.Run();
    transfers += bank.transfers();
    right += bank.right();
    again += bank.again();
    deaths += bank.deaths();
  }
  std::cout << count << " seeds: " << transfers << " transfers, " << deaths << " tellers died, " << right
            << " scans added up, " << again << " were to be tried again\n";
  if (count < 10) return;
  EXPECT_GT(right, static_cast<int>(count));
  EXPECT_GT(again, 0);
}

}  // namespace
}  // namespace nam::txn
