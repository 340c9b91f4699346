#include <gtest/gtest.h>

#include <filesystem>
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

/// Joins in streamed stages, of whose members some die.
namespace nam::simulation {
namespace {

/// Further ones: ./run test sim.
#ifndef NAM_SIM_SEEDS
#define NAM_SIM_SEEDS 100
#endif
constexpr uint64_t kSeeds = NAM_SIM_SEEDS;
constexpr uint64_t kSeedsOfACase = 20;
/// Behind a kill a query fails, or has gone on to its end, in this time and the one that it takes anyway. A
/// host that is silent is noticed by timeouts, in each stage.
constexpr double kPromisedMs = 5'000, kSilentHostMs = 14'000;

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
      "select count(*), sum(a.lo_revenue), sum(b.lo_tax) from lineorder a join lineorder b on a.lo_orderkey "
      "= b.lo_orderkey and a.lo_linenumber = b.lo_linenumber",
      "select c_region, d_year, p_mfgr, sum(lo_revenue) from lineorder, customer, date, part where "
      "lo_custkey = c_custkey and lo_orderdate = d_datekey and lo_partkey = p_partkey group by 1, 2, 3 order "
      "by 1, 2, 3",
      // Groups go by parts to a further stage.
      "select count(*), sum(n), sum(s) from (select lo_orderkey, c_name, count(*) as n, sum(lo_revenue) as s "
      "from lineorder join customer on lo_custkey = c_custkey group by 1, 2) g",
      "select c_custkey, c_name, lo_orderkey, lo_linenumber from customer left join lineorder on c_custkey = "
      "lo_custkey and lo_discount = 10 order by 1, 2, 3, 4",
      "select count(*), count(lo_orderkey), count(p_name) from lineorder full join part on lo_partkey = "
      "p_partkey and lo_quantity < 3",
      "select count(*), sum(lo_revenue) from lineorder where exists (select 1 from supplier where s_suppkey "
      "= "
      "lo_suppkey and s_region = 'ASIA')",
      "select count(*) from part where not exists (select 1 from lineorder where lo_partkey = p_partkey and "
      "lo_tax = 8)"};
  return queries;
}

/// A cluster with SSB in it, and a client whose joins are streamed. Each READ takes long, so that there is
/// time for servers to go.
class Streamed {
 public:
  Streamed(uint64_t seed, int compute_servers)
      : store_(std::filesystem::path(::testing::TempDir()) / absl::StrCat("exchange-", seed, ".db")),
        world_(Options(seed)) {
    std::filesystem::remove(store_);
    auto harness = world_.OpenFabric("harness", {.secret = "s"});
    auto cluster = Cluster::Start(world_, {.memory_servers = 2,
                                           .compute_servers = compute_servers,
                                           .threads = 2,
                                           .scratch_bytes = uint64_t{16} << 20,
                                           .few_by_parts = true,
                                           .catalog_store = store_});
    EXPECT_TRUE(harness.ok() && cluster.ok()) << cluster.status();
    harness_ = *std::move(harness);
    cluster_ = *std::move(cluster);
    auto client = cluster_->NewClient("client-0");
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    const absl::Status loaded =
        LoadTables(client_->attachment(), Answers(), {.fan_out = 4, .block_bytes = 4096});
    EXPECT_TRUE(loaded.ok()) << loaded;
    for (const std::string setting : {"prefetch_window = 1", "multicast = off", "aggregate = 'rdma'"})
      EXPECT_TRUE(Execute("SET nam." + setting).ok());
    SetJoin("ghj");
  }
  ~Streamed() {
    client_.reset();
    cluster_.reset();
    std::filesystem::remove(store_);
  }

  void SetJoin(const std::string& algorithm) {
    EXPECT_TRUE(Execute(absl::StrCat("SET nam.join = '", algorithm, "'")).ok());
  }
  absl::StatusOr<session::ResultSet> Execute(const std::string& sql) {
    return client_->session().Execute(sql);
  }
  template <typename Meanwhile>
  absl::StatusOr<session::ResultSet> Execute(const std::string& sql, Meanwhile&& meanwhile) {
    const auto thread = harness_->StartThread("meanwhile", meanwhile);
    return Execute(sql);
  }
  void Pause(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }
  double NowMs() { return static_cast<double>(world_.clock().NowNs()) / 1e6; }
  Cluster& cluster() { return *cluster_; }
  fabric::sim::World& world() { return world_; }

 private:
  static fabric::sim::WorldOptions Options(uint64_t seed) {
    fabric::sim::WorldOptions options;
    options.seed = seed;
    options.nic.read_ns = 20'000;
    return options;
  }
  const std::string store_;
  fabric::sim::World world_;
  std::unique_ptr<fabric::Fabric> harness_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
};

/// By other ways of joining, of a cluster where nothing happens.
const std::vector<testing::TextRows>& Expected() {
  static const std::vector<testing::TextRows> rows = [] {
    Streamed streamed(1, 2);
    streamed.SetJoin("auto");
    std::vector<testing::TextRows> made;
    for (const std::string& query : Queries()) {
      const auto result = streamed.Execute(query);
      EXPECT_TRUE(result.ok()) << query << "\n" << result.status();
      made.push_back(result.ok() ? testing::ToText(*result) : testing::TextRows());
      EXPECT_FALSE(made.back().empty()) << query;
    }
    return made;
  }();
  return rows;
}

class ExchangeSim : public ::testing::TestWithParam<uint64_t> {};

TEST(ExchangeSimulation, StreamedJoinsAreThoseOfOtherPlansOnAnyNumberOfServers) {
  Expected();  // of a world of its own
  for (const int variant : {0, 1, 2, 3, 4, 5}) {
    const int servers = 1 << variant / 2;
    SCOPED_TRACE(absl::StrCat(servers, variant % 2 == 0 ? " servers" : " servers, with Bloom filters"));
    Streamed streamed(static_cast<uint64_t>(servers), servers);
    if (variant % 2 != 0) streamed.SetJoin("ghj_bloom");
    for (size_t q = 0; q < Queries().size(); ++q) {
      const auto plan = streamed.Execute("explain analyze " + Queries()[q]);
      ASSERT_TRUE(plan.ok()) << Queries()[q] << "\n" << plan.status();
      std::string lines;
      for (const auto& row : plan->rows) absl::StrAppend(&lines, row[0].text, "\n");
      EXPECT_NE(lines.find(absl::StrCat("streamed between ", servers, " compute server")), std::string::npos)
          << lines;
      const auto result = streamed.Execute(Queries()[q]);
      ASSERT_TRUE(result.ok()) << Queries()[q] << "\n" << result.status();
      EXPECT_EQ(testing::ToText(*result), Expected()[q]) << Queries()[q];
    }
    EXPECT_TRUE(streamed.cluster().Idle());
  }
}

TEST_P(ExchangeSim, AnyServerDiesAtAnyPoint) {
  Expected();
  int in_time = 0, memory_lost = 0;
  for (uint64_t seed = GetParam() * kSeedsOfACase + 1; seed <= (GetParam() + 1) * kSeedsOfACase; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStream random(seed);
    const size_t q = random.Below(Queries().size());
    Streamed streamed(seed, static_cast<int>(random.Between(2, 4)));
    if (random.OneIn(2)) streamed.SetJoin("ghj_bloom");
    const uint64_t loaded_bytes = streamed.cluster().UsedBytes();
    const auto whole = streamed.Execute(Queries()[q]);
    ASSERT_TRUE(whole.ok()) << Queries()[q] << "\n" << whole.status();
    EXPECT_EQ(testing::ToText(*whole), Expected()[q]) << Queries()[q];
    const bool memory = random.OneIn(5), whole_host = random.OneIn(4);
    const Cluster::Role role = memory ? Cluster::Role::kMemory : Cluster::Role::kCompute;
    const auto victim = static_cast<int>(random.Below(static_cast<uint64_t>(streamed.cluster().count(role))));
    const auto after_us = static_cast<int64_t>(whole->elapsed_ms * static_cast<double>(random.Below(1000)));
    bool done = false;
    double killed_ms = 0;
    const auto result = streamed.Execute(Queries()[q], [&] {
      streamed.Pause(after_us);
      in_time += !done;
      killed_ms = streamed.NowMs();
      streamed.cluster().Kill(role, victim, whole_host);
    });
    done = true;
    EXPECT_LT(streamed.NowMs() - killed_ms, (whole_host ? kSilentHostMs : kPromisedMs) + whole->elapsed_ms)
        << Queries()[q] << "\n"
        << result.status();
    if (result.ok()) {
      EXPECT_EQ(testing::ToText(*result), Expected()[q]) << Queries()[q];
    } else {
      EXPECT_TRUE(memory) << Queries()[q] << "\n" << result.status();
      EXPECT_TRUE(absl::IsUnavailable(result.status()) || SqlErrorOf(result.status()).has_value())
          << result.status();
      ++memory_lost;
    }
    // What is not given back at once goes with the next renewals of leases.
    streamed.Pause(8'000'000);
    EXPECT_LE(streamed.cluster().UsedBytes(), loaded_bytes + (uint64_t{1} << 20))
        << streamed.cluster().Holdings();
    EXPECT_TRUE(streamed.cluster().Idle());
    if (HasFailure()) return;
  }
  // A test that kills too late tests nothing.
  EXPECT_GT(in_time, static_cast<int>(kSeedsOfACase / 4));
}

/// Sessions whose members come in another order each time, and more than a server runs at once.
TEST(ExchangeSimulation, SessionsThatAllWantAllServersEndAll) {
  Expected();
  Streamed streamed(3, 3);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 1; i <= 6; ++i) {
    auto client = streamed.cluster().NewClient(absl::StrCat("client-", i));
    ASSERT_TRUE(client.ok()) << client.status();
    clients.push_back(*std::move(client));
    ASSERT_TRUE(clients.back()->session().Execute("SET nam.join = 'ghj'").ok());
  }
  const auto harness = streamed.world().OpenFabric("harness-2", {.secret = "s"});
  ASSERT_TRUE(harness.ok());
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (const auto& client : clients) {
    threads.push_back((*harness)->StartThread("query", [&client] {
      for (int i = 0; i < 3; ++i) {
        const auto result = client->session().Execute(Queries()[0]);
        EXPECT_TRUE(result.ok()) << result.status();
        if (!result.ok()) return;
        EXPECT_EQ(testing::ToText(*result), Expected()[0]);
      }
    }));
  }
  threads.clear();
  clients.clear();
  EXPECT_TRUE(streamed.cluster().Idle());
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExchangeSim, ::testing::Range(uint64_t{0}, kSeeds / kSeedsOfACase));

}  // namespace
}  // namespace nam::simulation
