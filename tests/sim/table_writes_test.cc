#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "tests/cluster/oracle.h"
#include "tests/sim/loaded_cluster.h"
#include "types/sql_error.h"

/// Rows that compute servers write into a table, of which some die, or their client, or the catalog.
namespace nam::simulation {
namespace {

constexpr uint64_t kInsertCases = 4, kInsertSeedsOfACase = 8;

enum class InsertVictim { kCompute, kCatalog, kClient };

class WrittenTable {
 public:
  WrittenTable(uint64_t seed, RandomStream& random)
      : random_(random),
        loaded_("table-writes", seed, static_cast<int>(random.Between(2, 3)),
                static_cast<int>(random.Between(2, 3))) {
    for (const char* const setting :
         {"work_queue = on", "prefetch_window = 1", "multicast = off", "compaction = off"})
      loaded_.Set(setting);
    if (random.OneIn(2)) loaded_.Set("result_mib_max = 1");
    Execute("create table t (k int, l int, r bigint, p text) with (partition_by = 'k:4')");
    loaded_.Set("server_writes = off");
    Execute(kInsert);
    rows_ = Counted();
    loaded_.Set("server_writes = on");
    const double begun_ms = loaded_.NowMs();
    Execute(kInsert);
    whole_ms_ = loaded_.NowMs() - begun_ms;
    EXPECT_EQ(Counted(), Times(2));
    copies_ = 2;
    loaded_.Pause(8'000'000);
    used_bytes_ = loaded_.cluster().UsedBytes();
  }

  void Insert(InsertVictim victim, Fates& fates) {
    const auto after_us = static_cast<int64_t>(whole_ms_ * static_cast<double>(random_.Below(1000)));
    const auto number = static_cast<int>(random_.Below(static_cast<uint64_t>(count())));
    const bool whole_host = random_.OneIn(4);
    auto client = loaded_.cluster().NewClient(absl::StrCat("client-", ++clients_));
    ASSERT_TRUE(client.ok()) << client.status();
    for (const char* const setting : {"set nam.work_queue = on", "set nam.server_writes = on"})
      ASSERT_TRUE((*client)->session().Execute(setting).ok());
    bool done = false;
    absl::StatusOr<session::ResultSet> result = absl::CancelledError("not run");
    {
      const auto killer = loaded_.StartThread([&] {
        loaded_.Pause(after_us);
        fates.in_time += !done;
        if (victim == InsertVictim::kCatalog) loaded_.cluster().KillCatalog(whole_host);
        if (victim == InsertVictim::kCompute)
          loaded_.cluster().Kill(Cluster::Role::kCompute, number, whole_host);
        if (victim == InsertVictim::kClient) loaded_.world().KillProcess((*client)->process());
      });
      result = (*client)->session().Execute(kInsert);
      done = true;
    }
    fates.failed += !result.ok();
    if (victim == InsertVictim::kCatalog) {
      EXPECT_TRUE(loaded_.cluster().RestartCatalog().ok());
    }
    client->reset();
    loaded_.Pause(8'000'000);
    Judge(victim, result.status());
    if (victim == InsertVictim::kCompute) Restart(number);
  }

 private:
  static constexpr char kInsert[] =
      "insert into t select lo_orderkey, lo_linenumber, lo_revenue, 'part ' || lo_partkey % 97 from "
      "lineorder where "
      "lo_quantity < 40";

  void Execute(const std::string& sql) {
    const auto result = loaded_.Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
  }
  testing::TextRows Counted() {
    const auto result = loaded_.Execute("select count(*), sum(r), count(distinct p) from t");
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? testing::ToText(*result) : testing::TextRows();
  }
  testing::TextRows Times(int64_t copies) const {
    testing::TextRows rows = rows_;
    for (size_t c = 0; c < 2; ++c) rows[0][c] = absl::StrCat(copies * std::stoll(rows_[0][c]));
    return rows;
  }
  int count() { return loaded_.cluster().count(Cluster::Role::kCompute); }

  /// All of a statement has happened, or nothing; and nothing else stays.
  void Judge(InsertVictim victim, const absl::Status& status) {
    EXPECT_TRUE(loaded_.cluster().Idle());
    const testing::TextRows now = Counted();
    if (victim == InsertVictim::kCompute) {
      EXPECT_TRUE(status.ok()) << status;
    }
    if (status.ok() || now == Times(copies_ + 1)) ++copies_;
    EXPECT_EQ(now, Times(copies_)) << status;
    const uint64_t of_a_copy = used_bytes_ / 4;  // the loaded tables are larger
    EXPECT_LE(loaded_.cluster().UsedBytes(), used_bytes_ + static_cast<uint64_t>(copies_ - 2) * of_a_copy)
        << loaded_.cluster().Holdings();
  }
  void Restart(int number) {
    for (int i = 0; i < 100; ++i) {
      if (loaded_.cluster().Restart(Cluster::Role::kCompute, number).ok()) return;
      loaded_.Pause(500'000);
    }
    ADD_FAILURE() << "a server does not join again";
  }

  RandomStream& random_;
  LoadedCluster loaded_;
  testing::TextRows rows_;  // of one copy
  int64_t copies_ = 0;
  int clients_ = 0;
  double whole_ms_ = 0;
  uint64_t used_bytes_ = 0;
};

class TableWritesSim : public ::testing::TestWithParam<uint64_t> {};

TEST_P(TableWritesSim, AStatementHappensAsAWholeOrNotAtAll) {
  std::map<InsertVictim, Fates> fates;
  for (uint64_t seed = GetParam() * kInsertSeedsOfACase + 1; seed <= (GetParam() + 1) * kInsertSeedsOfACase;
       ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStream random(seed);
    WrittenTable table(seed, random);
    for (const InsertVictim victim :
         {InsertVictim::kCompute, InsertVictim::kClient, InsertVictim::kCatalog}) {
      if (::testing::Test::HasFailure()) return;
      SCOPED_TRACE(victim == InsertVictim::kCompute  ? "a compute server"
                   : victim == InsertVictim::kClient ? "the client"
                                                     : "the catalog");
      table.Insert(victim, fates[victim]);
    }
  }
  // A test that kills too late tests nothing.
  for (const auto& [victim, fate] : fates) EXPECT_GT(fate.in_time, static_cast<int>(kInsertSeedsOfACase / 4));
  EXPECT_GT(fates[InsertVictim::kClient].failed, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, TableWritesSim, ::testing::Range<uint64_t>(0, kInsertCases));

}  // namespace
}  // namespace nam::simulation
