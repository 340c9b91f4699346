#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "simulation/ssb_answers.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

/// Queries of several stages of servers, of which some die.
namespace nam::simulation {
namespace {

constexpr uint64_t kSeeds = 200;

const SsbAnswers& Answers() {
  static const SsbAnswers* const answers = [] {
    auto made = SsbAnswers::Make(0.002);
    EXPECT_TRUE(made.ok()) << made.status();
    return made->release();
  }();
  return *answers;
}

const std::vector<std::string>& Queries() {
  static const std::vector<std::string> queries = {
      "select * from (select lo_orderkey, lo_linenumber, sum(lo_revenue) as s from lineorder group by 1, 2) "
      "g "
      "order by s desc, 1, 2 limit 20",
      "select * from (select n, count(*), sum(s) from (select lo_custkey, lo_partkey, count(*) as n, "
      "sum(lo_revenue) as s from lineorder group by 1, 2) g group by n) h order by n",
      "select count(*), sum(k) from (select distinct lo_partkey as k from lineorder) d",
      "select c_region, count(*), sum(s) from (select lo_custkey as k, lo_orderkey, sum(lo_revenue) as s "
      "from "
      "lineorder group by 1, 2) g join customer on k = c_custkey group by 1 order by 1",
      "select count(*), sum(a.lo_revenue), sum(b.lo_tax) from lineorder a join lineorder b on a.lo_orderkey "
      "= b.lo_orderkey and a.lo_linenumber = b.lo_linenumber",
      "select count(*), count(k), sum(n) from (select lo_custkey as k, count(*) as n from lineorder group by "
      "1) g full join customer on k = c_custkey"};
  return queries;
}

/// A cluster with SSB in it, and a client whose groups all go by parts. Each READ takes long, so that there
/// is time for servers to go.
class Staged {
 public:
  Staged(uint64_t seed, int compute_servers, int memory_servers, bool by_parts = true)
      : world_(Options(seed)) {
    auto harness = world_.OpenFabric("harness", {.secret = "s"});
    auto cluster = Cluster::Start(world_, {.memory_servers = memory_servers,
                                           .compute_servers = compute_servers,
                                           .threads = 2,
                                           .few_by_parts = true});
    EXPECT_TRUE(harness.ok() && cluster.ok()) << cluster.status();
    harness_ = *std::move(harness);
    cluster_ = *std::move(cluster);
    auto client = cluster_->NewClient("client-0");
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    const absl::Status loaded =
        LoadTables(client_->attachment(), Answers(), {.fan_out = 4, .block_bytes = 4096});
    EXPECT_TRUE(loaded.ok()) << loaded;
    for (const std::string setting : {"work_queue = on", "prefetch_window = 1", "multicast = off"})
      EXPECT_TRUE(Execute("SET nam." + setting).ok());
    for (const std::string what : {"groups", "joins"})
      EXPECT_TRUE(Execute(absl::StrCat("SET nam.", what, "_by_parts = ", by_parts ? "on" : "off")).ok());
  }

  absl::StatusOr<session::ResultSet> Execute(const std::string& sql) {
    return client_->session().Execute(sql);
  }
  /// The statement, with `meanwhile` on another thread.
  template <typename Meanwhile>
  absl::StatusOr<session::ResultSet> Execute(const std::string& sql, Meanwhile&& meanwhile) {
    const auto thread = harness_->StartThread("meanwhile", meanwhile);
    return Execute(sql);
  }
  void Pause(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }
  Cluster& cluster() { return *cluster_; }

 private:
  static fabric::sim::WorldOptions Options(uint64_t seed) {
    fabric::sim::WorldOptions options;
    options.seed = seed;
    options.nic.read_ns = 20'000;
    return options;
  }
  fabric::sim::World world_;
  std::unique_ptr<fabric::Fabric> harness_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
};

/// By the session alone, of a cluster where nothing happens.
const std::vector<testing::TextRows>& Expected() {
  static const std::vector<testing::TextRows> rows = [] {
    Staged staged(1, 2, 2, /*by_parts=*/false);
    std::vector<testing::TextRows> made;
    for (const std::string& query : Queries()) {
      const auto result = staged.Execute(query);
      EXPECT_TRUE(result.ok()) << query << "\n" << result.status();
      made.push_back(result.ok() ? testing::ToText(*result) : testing::TextRows());
      EXPECT_FALSE(made.back().empty()) << query;
    }
    return made;
  }();
  return rows;
}

struct Fate {
  bool in_time = false;  // the victim died before the query's end
  bool failed = false;
};

/// Kills a server at some time of a query. A compute server's death costs nothing but time, a memory server's
/// perhaps the query. What it had of scratch memory is given back.
Fate KillInMidQuery(uint64_t seed, Cluster::Role role) {
  RandomStream random(seed);
  Expected();
  Staged staged(seed, static_cast<int>(random.Between(2, 3)), static_cast<int>(random.Between(2, 3)));
  const size_t number = random.Below(Queries().size());
  const std::string& query = Queries()[number];
  const uint64_t loaded = staged.cluster().UsedBytes();
  const auto whole = staged.Execute(query);
  EXPECT_TRUE(whole.ok()) << query << "\n" << whole.status();
  if (!whole.ok()) return {};
  EXPECT_EQ(testing::ToText(*whole), Expected()[number]) << query;
  const uint64_t words = staged.cluster().UsedBytes() - loaded;
  EXPECT_LE(words, uint64_t{1} << 20) << "words to claim work at, and nothing of scratch memory";
  const auto victim = static_cast<int>(random.Below(static_cast<uint64_t>(staged.cluster().count(role))));
  const auto after_us =
      static_cast<int64_t>(whole->elapsed_ms * 1000 * static_cast<double>(random.Below(1000)) / 1000);
  const bool whole_host = random.OneIn(4);
  Fate fate;
  bool done = false;
  const auto result = staged.Execute(query, [&] {
    staged.Pause(after_us);
    fate.in_time = !done;
    staged.cluster().Kill(role, victim, whole_host);
  });
  done = true;
  if (result.ok()) {
    EXPECT_EQ(testing::ToText(*result), Expected()[number]) << query;
  } else {
    fate.failed = true;
    EXPECT_EQ(role, Cluster::Role::kMemory) << query << "\n" << result.status();
    const auto error = SqlErrorOf(result.status());
    EXPECT_TRUE(absl::IsUnavailable(result.status()) || error.has_value()) << result.status();
  }
  // What is not given back at once goes with the next renewals of leases.
  staged.Pause(8'000'000);
  EXPECT_LE(staged.cluster().UsedBytes(), loaded + words) << staged.cluster().Holdings();
  return fate;
}

TEST(StagesSim, ADeadComputeServerCostsNothingButTime) {
  int in_time = 0;
  for (uint64_t seed = 1; seed <= kSeeds / 2; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    in_time += KillInMidQuery(seed, Cluster::Role::kCompute).in_time;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(in_time, static_cast<int>(kSeeds / 4));
}

TEST(StagesSim, ADeadMemoryServerEndsTheQueryCleanlyOrNotAtAll) {
  int in_time = 0, failed = 0;
  for (uint64_t seed = 1'001; seed <= 1'000 + kSeeds / 2; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Fate fate = KillInMidQuery(seed, Cluster::Role::kMemory);
    in_time += fate.in_time;
    failed += fate.failed;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(in_time, static_cast<int>(kSeeds / 4));
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace nam::simulation
