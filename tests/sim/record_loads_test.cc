#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "types/sql_error.h"

/// Loads into an empty record table, or in a transaction into two of them, beside another client that reads
/// and writes one. Meanwhile the loading client is killed or stalls, or the catalog is started again.
namespace nam::simulation {
namespace {

constexpr uint64_t kLoadCases = 4, kLoadSeedsOfACase = 4;
constexpr uint32_t kLoadLeaseMs = 1'000;
constexpr int64_t kLoadedRows = 3'000;
constexpr char kLoad[] = "insert into t select i, i * 7 from generate_series(1, 3000) as g (i)";
constexpr size_t kRowsOfW = 500;
constexpr char kLoadW[] = "insert into w select i from generate_series(1, 500) as g (i)";

enum class LoadVictim { kNone, kClient, kStalledClient, kCatalog };

class LoadedRecords {
 public:
  LoadedRecords(uint64_t seed, RandomStream& random)
      : random_(random),
        store_(std::filesystem::path(::testing::TempDir()) / absl::StrCat("record-loads-", seed, ".db")),
        world_({.seed = seed}) {
    std::filesystem::remove(store_);
    auto cluster = Cluster::Start(world_, {.threads = 1,
                                           .memory_bytes = uint64_t{128} << 20,
                                           .region_bytes = uint64_t{16} << 20,
                                           .lease_ms = kLoadLeaseMs,
                                           .catalog_store = store_});
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    other_ = NewClient();
    Other("create table t (id bigint primary key, v bigint unique) with (storage = record)");
    Other("create table w (id bigint primary key)");
    Other("create table u (id bigint primary key)");
    Other("insert into u values (1)");
    used_bytes_ = cluster_->UsedBytes();
    const int64_t begun_ns = world_.NowNs();
    EXPECT_TRUE(NewClient()->session().Execute(kLoad).ok());
    whole_us_ = (world_.NowNs() - begun_ns) / 1'000;
    EXPECT_EQ(Count("id <= 3000"), kLoadedRows);
    Renew();
  }
  ~LoadedRecords() {
    other_.reset();
    cluster_.reset();
    std::filesystem::remove(store_);
  }

  /// Returns whether the load was under way when the victim was hit.
  bool Load(LoadVictim victim) {
    const std::unique_ptr<Client> client = NewClient();
    absl::Status status = absl::UnknownError("not run");
    bool done = false, in_time = false;
    in_transaction_ = random_.OneIn(2);
    {
      const auto thread = client->fabric().StartThread("load", [&] {
        status = in_transaction_ ? LoadBoth(client->session()) : client->session().Execute(kLoad).status();
        done = true;
      });
      const int64_t hit_ns = world_.NowNs() + static_cast<int64_t>(random_.Below(1'000)) * whole_us_;
      const bool writes = random_.OneIn(3);
      while (world_.NowNs() < hit_ns && !done) Look(writes);
      in_time = !done;
      if (victim == LoadVictim::kClient) world_.KillProcess(client->process());
      if (victim == LoadVictim::kCatalog) {
        cluster_->KillCatalog(/*whole_host=*/false);
        EXPECT_TRUE(cluster_->RestartCatalog().ok());
      }
      if (victim == LoadVictim::kStalledClient) {
        world_.Pause(client->process(), /*card_too=*/false);
        const int64_t until_ns =
            world_.NowNs() + static_cast<int64_t>(random_.Below(2 * kLoadLeaseMs)) * 1'000'000;
        while (world_.NowNs() < until_ns) Look(writes);
        world_.Resume(client->process());
      }
      while (!done) Look(writes);
    }
    Judge(status);
    return in_time;
  }

 private:
  static absl::Status LoadBoth(session::Session& session) {
    for (const char* statement : {"begin", kLoad, kLoadW, "commit"}) {
      const auto result = session.Execute(statement);
      if (!result.ok()) return result.status();
    }
    return absl::OkStatus();
  }
  std::unique_ptr<Client> NewClient() {
    auto client = cluster_->NewClient(absl::StrCat("client-", clients_++));
    EXPECT_TRUE(client.ok()) << client.status();
    EXPECT_TRUE((*client)->session().Execute("set nam.transaction_mib_max = '4MB'").ok());
    return *std::move(client);
  }
  session::ResultSet Other(const std::string& sql) {
    auto result = other_->session().Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
    return result.ok() ? *std::move(result) : session::ResultSet();
  }
  int64_t Count(const std::string& condition) {
    const session::ResultSet result = Other(absl::StrCat("select count(*) from t where ", condition));
    return result.rows.empty() ? -1 : static_cast<int64_t>(result.rows[0][0].number);
  }
  /// A look at the table by another client, or a row for it.
  void Look(bool writes) {
    world_.clock().SleepUntil(world_.clock().After(static_cast<int64_t>(random_.Below(2'000))));
    session::Session& session = other_->session();
    if (writes && random_.OneIn(4)) {
      const int64_t id = 1'000'000 + written_++;
      const absl::Status inserted =
          session.Execute(absl::StrCat("insert into t values (", id, ", ", id, ")")).status();
      if (inserted.ok()) acknowledged_.insert(id);
      return;
    }
    const auto counted = session.Execute("select count(*) from t where id <= 3000");
    if (!counted.ok()) return;
    const auto rows = static_cast<int64_t>(counted->rows[0][0].number);
    EXPECT_TRUE(rows == 0 || rows == kLoadedRows) << rows;
    EXPECT_TRUE(rows == kLoadedRows || !seen_) << "rows that were seen are gone";
    seen_ = rows > 0;
  }
  /// All rows are there, or none, and all that others were told of; and nothing else stays.
  void Judge(const absl::Status& status) {
    world_.clock().SleepUntil(world_.clock().After(8'000'000));
    const int64_t rows = Count("id <= 3000"), distinct = Count("v <= 21000");
    EXPECT_EQ(rows, distinct);
    EXPECT_EQ(Other("select id from w").rows.size(), in_transaction_ && rows > 0 ? kRowsOfW : 0) << status;
    EXPECT_TRUE(rows == kLoadedRows || (rows == 0 && !status.ok() && !seen_)) << rows << status;
    const auto error = SqlErrorOf(status);
    if (error.has_value() && error->sqlstate != "08007" && error->sqlstate != "08006") {
      EXPECT_EQ(rows, 0) << status;
    }
    for (const int64_t id : acknowledged_) EXPECT_EQ(Count(absl::StrCat("id = ", id)), 1) << status;
    const auto tables = other_->attachment().catalog().ListTables();
    ASSERT_TRUE(tables.ok()) << tables.status();
    for (const proto::Table& table : *tables) {
      EXPECT_FALSE(absl::StartsWith(table.name(), "nam.load.")) << table.name();
      EXPECT_EQ(table.record().closed_by(), 0u) << table.name();
    }
    Renew();
  }
  /// An empty table, as at first.
  void Renew() {
    Other("delete from w");
    Other("drop table t");
    Other("create table t (id bigint primary key, v bigint unique) with (storage = record)");
    world_.clock().SleepUntil(world_.clock().After(8'000'000));
    // Logs may grow.
    EXPECT_LE(cluster_->UsedBytes(), used_bytes_ + (uint64_t{4} << 20));
    acknowledged_.clear();
    seen_ = false;
  }

  RandomStream& random_;
  bool in_transaction_ = false;
  const std::string store_;
  fabric::sim::World world_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> other_;
  int clients_ = 0;
  int64_t whole_us_ = 0;
  uint64_t used_bytes_ = 0;
  int64_t written_ = 0;
  std::set<int64_t> acknowledged_;
  bool seen_ = false;
};

class RecordLoadsSim : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RecordLoadsSim, HappenAsAWholeOrNotAtAll) {
  std::map<LoadVictim, int> in_time;
  for (uint64_t seed = GetParam() * kLoadSeedsOfACase + 1; seed <= (GetParam() + 1) * kLoadSeedsOfACase;
       ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStream random(seed);
    LoadedRecords table(seed, random);
    for (const LoadVictim victim :
         {LoadVictim::kNone, LoadVictim::kClient, LoadVictim::kStalledClient, LoadVictim::kCatalog}) {
      if (::testing::Test::HasFailure()) return;
      SCOPED_TRACE(absl::StrCat("victim ", static_cast<int>(victim)));
      in_time[victim] += table.Load(victim);
    }
  }
  // A test that hits too late tests nothing.
  for (const auto& [victim, count] : in_time) EXPECT_GT(count, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, RecordLoadsSim, ::testing::Range<uint64_t>(0, kLoadCases));

}  // namespace
}  // namespace nam::simulation
