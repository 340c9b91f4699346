#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "tests/base/seeds.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

/// More queries than servers have memory for, while clients end, or read slowly.
namespace nam::simulation {
namespace {

/// Further seeds: ./run test sim.
constexpr uint64_t kCrowdSeeds = 20;
constexpr uint64_t kCrowdSeedsOfACase = 10;
constexpr int kCrowdRows = 3'000;
constexpr int kClients = 4, kSessionsOfAClient = 10;
/// Its rows leave in windows.
constexpr size_t kStream = 3;

const std::vector<std::string>& CrowdQueries() {
  static const std::vector<std::string> queries = {
      "select count(*), sum(n) from (select v, count(*) as n from keys group by v) g",
      "select v, count(*) from keys group by v having sum(k) > 100 order by 2 desc, 1 limit 5",
      "select count(*), sum(n) from (select b.v, count(*) as n from keys a, keys b where a.v = b.k group by "
      "1) g",
      "select k, v from keys",
      "select n, count(*) from (select v, count(*) as n from keys group by v) g group by n order by n"};
  return queries;
}

/// Takes rows; the test acts after each batch.
class Reader final : public session::RowReceiver {
 public:
  explicit Reader(std::function<absl::Status()> behind) : behind_(std::move(behind)) {}
  absl::Status Begin(const std::vector<session::ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const session::ResultBatch& batch) override {
    rows_ += static_cast<int>(batch.rows());
    return behind_();
  }
  int rows() const { return rows_; }

 private:
  const std::function<absl::Status()> behind_;
  int rows_ = 0;
};

class Crowd {
 public:
  struct Options {
    int threads = 2;
    uint64_t compute_memory_bytes = uint64_t{4} << 20;
    uint64_t first_bytes = uint64_t{16} << 20;  // of an attempt
    uint64_t scratch_bytes = uint64_t{16} << 20;
    int rows = kCrowdRows;
    size_t running_max = 32, waiting_max = 64;
  };
  Crowd(uint64_t seed, const Options& options) : world_({.seed = seed}) {
    auto cluster = Cluster::Start(world_, {.compute_servers = 2,
                                           .threads = options.threads,
                                           .memory_bytes = uint64_t{1} << 30,
                                           .scratch_bytes = options.scratch_bytes,
                                           .compute_memory_bytes = options.compute_memory_bytes,
                                           .first_attempt_bytes = options.first_bytes,
                                           .running_max = options.running_max,
                                           .waiting_max = options.waiting_max,
                                           .always_by_parts = true});
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    client_ = NewClient("loader");
    testing::SmallTable keys{{"keys", {{"k", Type::Integer()}, {"v", Type::Integer()}}, {{"k", 8}}, ""}, {}};
    for (int i = 0; i < options.rows; ++i)
      keys.rows.push_back({Value::Integer(i), Value::Integer(i * 7 % (options.rows / 2))});
    const absl::Status loaded = testing::Load(client_->attachment(), keys, {.block_bytes = 2048});
    EXPECT_TRUE(loaded.ok()) << loaded;
    loaded_bytes_ = cluster_->UsedBytes();
  }
  std::unique_ptr<Client> NewClient(const std::string& host) {
    auto client = cluster_->NewClient(host);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  /// Runs with small budgets.
  static std::unique_ptr<session::Session> NewSession(Client& client) {
    auto session = session::Session::Open(client.attachment());
    EXPECT_TRUE(session.ok()) << session.status();
    Prepare(**session);
    return *std::move(session);
  }
  static void Prepare(session::Session& session) {
    for (const char* setting : {"result_mib_max = 1", "build_mib_max = 1", "aggregate = rdma"})
      EXPECT_TRUE(session.Execute(absl::StrCat("SET nam.", setting)).ok());
  }
  void Pause(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }
  double NowMs() { return static_cast<double>(world_.clock().NowNs()) / 1e6; }
  /// Checks that nothing of any query is left, at the latest once leases have ended.
  void ExpectNothingLeft(int64_t within_us) {
    const Deadline deadline = world_.clock().After(within_us);
    const auto clean = [&] {
      return cluster_->Idle() && cluster_->UsedBytes() <= loaded_bytes_ + kWordBytes;
    };
    while (!clean() && !world_.clock().Passed(deadline)) Pause(10'000);
    EXPECT_TRUE(cluster_->Idle());
    EXPECT_LE(cluster_->UsedBytes(), loaded_bytes_ + kWordBytes) << cluster_->Holdings();
  }

  fabric::sim::World& world() { return world_; }
  Cluster& cluster() { return *cluster_; }
  Client& client() { return *client_; }

 private:
  /// The words at which sessions that live claim work.
  static constexpr uint64_t kWordBytes = uint64_t{256} << 10;

  fabric::sim::World world_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
  uint64_t loaded_bytes_ = 0;
};

/// The memory that one query has at a time.
const std::vector<testing::TextRows>& CrowdAnswers() {
  static const std::vector<testing::TextRows> rows = [] {
    Crowd crowd(1, {.compute_memory_bytes = uint64_t{1} << 30});
    std::vector<testing::TextRows> made;
    for (const std::string& query : CrowdQueries()) {
      const auto result = crowd.client().session().Execute(query);
      EXPECT_TRUE(result.ok()) << query << "\n" << result.status();
      made.push_back(result.ok() ? testing::Sorted(testing::ToText(*result)) : testing::TextRows());
      EXPECT_FALSE(made.back().empty()) << query;
    }
    return made;
  }();
  return rows;
}

struct Outcome {
  int right = 0;
  int out_of_memory = 0;
};

/// Forty sessions of four clients, all at once, with a query each.
Outcome RunForty(uint64_t seed, bool much_scratch) {
  RandomStream random(seed);
  // Their first budget is all that they may have, or too little for some, which are then redone alone.
  const bool short_of_memory = random.OneIn(2);
  Crowd crowd(seed, {.threads = static_cast<int>(random.Between(1, 2)),
                     .compute_memory_bytes = static_cast<uint64_t>(random.Between(2, 8)) << 20,
                     .first_bytes = short_of_memory ? uint64_t{64} << 10 : uint64_t{16} << 20,
                     .scratch_bytes = much_scratch ? uint64_t{256} << 20
                                                   : static_cast<uint64_t>(random.Between(1, 40)) << 16});
  Outcome outcome;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<session::Session>> sessions;
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (int c = 0; c < kClients; ++c) {
    clients.push_back(crowd.NewClient(absl::StrCat("client-", c)));
    for (int s = 0; s < kSessionsOfAClient; ++s) sessions.push_back(Crowd::NewSession(*clients.back()));
  }
  for (size_t i = 0; i < sessions.size(); ++i) {
    const size_t number = random.Below(CrowdQueries().size());
    const bool queue = random.OneIn(2);
    const int64_t pause_us = random.OneIn(2) ? 0 : random.Between(100, 20'000);
    threads.push_back(
        clients[i / kSessionsOfAClient]->fabric().StartThread("session", [&, i, number, queue, pause_us] {
          session::Session& session = *sessions[i];
          EXPECT_TRUE(session.Execute(absl::StrCat("SET nam.work_queue = ", queue ? "on" : "off")).ok());
          absl::Status status;
          if (number == kStream) {
            Reader reader([&] {
              crowd.Pause(pause_us);
              return absl::OkStatus();
            });
            status = session.Execute(CrowdQueries()[number], reader).status();
            EXPECT_TRUE(!status.ok() || reader.rows() == kCrowdRows);
          } else {
            const auto result = session.Execute(CrowdQueries()[number]);
            status = result.status();
            EXPECT_TRUE(!status.ok() || testing::Sorted(testing::ToText(*result)) == CrowdAnswers()[number]);
          }
          outcome.right += status.ok();
          if (status.ok()) return;
          ++outcome.out_of_memory;
          EXPECT_EQ(SqlErrorOf(status).value_or(SqlError{}).sqlstate, much_scratch ? "none" : "53200")
              << CrowdQueries()[number] << "\n"
              << status;
        }));
  }
  threads.clear();
  sessions.clear();  // with their words to claim work at
  crowd.ExpectNothingLeft(10'000'000);
  return outcome;
}

class AdmissionSim : public ::testing::TestWithParam<uint64_t> {};

TEST_P(AdmissionSim, FortyQueriesWithScratchMemoryEnoughAllFinish) {
  CrowdAnswers();
  for (uint64_t seed = GetParam() * kCrowdSeedsOfACase + 1; seed <= (GetParam() + 1) * kCrowdSeedsOfACase;
       ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    EXPECT_EQ(RunForty(seed, /*much_scratch=*/true).right, kClients * kSessionsOfAClient);
    if (HasFailure()) return;
  }
}

TEST_P(AdmissionSim, FortyQueriesWithLittleScratchMemoryFinishOrSaySo) {
  CrowdAnswers();
  int out_of_memory = 0;
  for (uint64_t seed = GetParam() * kCrowdSeedsOfACase + 1; seed <= (GetParam() + 1) * kCrowdSeedsOfACase;
       ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Outcome outcome = RunForty(seed, /*much_scratch=*/false);
    EXPECT_EQ(outcome.right + outcome.out_of_memory, kClients * kSessionsOfAClient);
    out_of_memory += outcome.out_of_memory;
    if (HasFailure()) return;
  }
  EXPECT_GT(out_of_memory, 0) << "a test without a lack of memory";
}

INSTANTIATE_TEST_SUITE_P(Seeds, AdmissionSim,
                         ::testing::Range(uint64_t{0}, FromEnvironment("NAM_SIM_SEEDS", kCrowdSeeds) /
                                                           kCrowdSeedsOfACase));

constexpr char kStreamOfGroups[] = "select k, n from (select k, count(*) as n from keys group by k) g";

/// A result that flows out of a stage that reads scratch memory, with a client that is killed, or cancels it.
TEST(StreamsThatEnd, MemoryAndScratchMemoryOfAClientThatIsKilledGoWithItsLease) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Crowd crowd(seed, {.rows = 60'000});
    const std::unique_ptr<Client> client = crowd.NewClient("client");
    Crowd::Prepare(client->session());
    RandomStream random(seed);
    const int64_t after_us = random.OneIn(2) ? 0 : random.Between(0, 200'000);
    bool dead = false, standing = false;
    Reader reader([&] {
      standing = true;
      while (!dead) crowd.Pause(1'000);
      return absl::OkStatus();
    });
    auto thread = client->fabric().StartThread(
        "session", [&] { EXPECT_FALSE(client->session().Execute(kStreamOfGroups, reader).ok()); });
    for (int i = 0; i < 10'000 && !standing; ++i) crowd.Pause(1'000);
    EXPECT_TRUE(standing);
    crowd.Pause(after_us);
    EXPECT_FALSE(crowd.cluster().Idle());
    crowd.world().KillProcess(client->process());
    dead = true;
    thread.reset();
    crowd.ExpectNothingLeft(2 * 1000 * crowd.cluster().options().lease_ms);
    if (::testing::Test::HasFailure()) return;
  }
}

/// The client does so at once, and without a further statement.
TEST(StreamsThatEnd, ACancelledStreamLeavesNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Crowd crowd(seed, {.rows = 60'000});
    Crowd::Prepare(crowd.client().session());
    const bool cancels = seed % 2 == 0;
    bool standing = false;
    Reader reader([&]() -> absl::Status {
      standing = true;
      crowd.Pause(50'000);  // until servers have suspended their attempts
      EXPECT_FALSE(crowd.cluster().Idle());
      if (!cancels) return absl::FailedPreconditionError("enough");
      crowd.client().session().Cancel();
      return absl::OkStatus();
    });
    const absl::Status status = crowd.client().session().Execute(kStreamOfGroups, reader).status();
    EXPECT_EQ(status.code(), cancels ? absl::StatusCode::kCancelled : absl::StatusCode::kFailedPrecondition)
        << status;
    EXPECT_TRUE(standing);
    EXPECT_TRUE(crowd.cluster().Idle()) << "servers are told at once";
    crowd.ExpectNothingLeft(2 * 1000 * crowd.cluster().options().lease_ms);
    if (::testing::Test::HasFailure()) return;
  }
}

/// A server where too many queries wait is not needed while another one takes their work.
TEST(CrowdsOfQueries, WhoIsRefusedEverywhereIsTold) {
  CrowdAnswers();
  int right = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStream random(seed);
    const int sessions = static_cast<int>(random.Between(2, 6));
    Crowd crowd(seed, {.running_max = 1, .waiting_max = 1});
    const std::unique_ptr<Client> client = crowd.NewClient("client");
    std::vector<std::unique_ptr<session::Session>> all;
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int i = 0; i < sessions; ++i) {
      all.push_back(Crowd::NewSession(*client));
      const char* const queue = random.OneIn(2) ? "on" : "off";
      EXPECT_TRUE(all.back()->Execute(absl::StrCat("SET nam.work_queue = ", queue)).ok());
    }
    for (const auto& session : all) {
      threads.push_back(client->fabric().StartThread("session", [&, s = session.get()] {
        const auto result = s->Execute(CrowdQueries()[2]);
        if (result.ok()) {
          EXPECT_EQ(testing::Sorted(testing::ToText(*result)), CrowdAnswers()[2]);
          ++right;
        } else {
          EXPECT_EQ(SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate, "53300") << result.status();
          ++refused;
        }
      }));
    }
    threads.clear();
    all.clear();
    crowd.ExpectNothingLeft(10'000'000);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(right, 30);
  EXPECT_GT(refused, 5);
}

/// A query that wants all of the servers comes while another one holds some for a long time. Small queries do
/// not wait for it, and they never stop coming.
TEST(LargeQueries, HoldUpNoSmallOnesAndAreNotHeldUpForEver) {
  constexpr int64_t kLongUs = 10'000'000;
  Crowd crowd(1, {.rows = 60'000});
  Crowd::Prepare(crowd.client().session());
  const std::unique_ptr<Client> large = crowd.NewClient("large");
  std::vector<std::unique_ptr<Client>> small;
  for (int i = 0; i < 2; ++i) {
    small.push_back(crowd.NewClient(absl::StrCat("small-", i)));
    Crowd::Prepare(small.back()->session());
  }
  for (const char* const setting : {"result_mib_max = 4", "build_mib_max = 4"})
    EXPECT_TRUE(large->session().Execute(absl::StrCat("SET nam.", setting)).ok());
  bool large_done = false;
  double freed_ms = 0, done_ms = 0;
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  const auto run_small = [&](Client& client) {
    const auto result = client.session().Execute("select count(*) from keys where v < 100");
    EXPECT_TRUE(result.ok()) << result.status();
  };
  Reader reader([&, once = true]() mutable {
    if (!std::exchange(once, false)) return absl::OkStatus();
    threads.push_back(large->fabric().StartThread("large", [&] {
      const auto result = large->session().Execute("select count(*) from keys");
      EXPECT_TRUE(result.ok()) << result.status();
      done_ms = crowd.NowMs();
      large_done = true;
    }));
    crowd.Pause(100'000);
    const double before_ms = crowd.NowMs();
    for (int i = 0; i < 10; ++i) run_small(*small[0]);
    EXPECT_LT(crowd.NowMs() - before_ms, 1'000);
    EXPECT_FALSE(large_done) << "it has all memory while another query has some";
    for (const auto& client : small) {
      threads.push_back(client->fabric().StartThread("small", [&, c = client.get()] {
        const Deadline deadline = crowd.world().clock().After(kLongUs);
        while (!large_done && !crowd.world().clock().Passed(deadline)) run_small(*c);
      }));
    }
    crowd.Pause(100'000);
    freed_ms = crowd.NowMs();
    return absl::OkStatus();
  });
  const auto result = crowd.client().session().Execute("select k, v from keys", reader);
  EXPECT_TRUE(result.ok()) << result.status();
  threads.clear();
  EXPECT_TRUE(large_done);
  EXPECT_LT(done_ms - freed_ms, 1'000) << "small ones have passed it again and again";
}

/// It may be the same user's second query that waits for the first, which is never read on.
TEST(StreamsThatStand, MemoryGoesToWhoWaits) {
  Crowd crowd(1, {.compute_memory_bytes = uint64_t{2} << 20, .rows = 60'000});
  Crowd::Prepare(crowd.client().session());
  const std::unique_ptr<Client> other = crowd.NewClient("client");
  Crowd::Prepare(other->session());
  double waited_ms = 0;
  Reader reader([&, once = true]() mutable {
    if (!std::exchange(once, false)) return absl::OkStatus();
    const double before_ms = crowd.NowMs();
    const auto result = other->session().Execute("select count(*) from keys a, keys b where a.k = b.k");
    EXPECT_TRUE(result.ok()) << result.status();
    waited_ms = crowd.NowMs() - before_ms;
    return absl::OkStatus();
  });
  const absl::Status status = crowd.client().session().Execute("select k, v from keys", reader).status();
  EXPECT_EQ(SqlErrorOf(status).value_or(SqlError{}).sqlstate, "53200") << status;
  EXPECT_GT(waited_ms, 29'000) << "results may be read slowly";
  EXPECT_LT(waited_ms, 65'000);
}

}  // namespace
}  // namespace nam::simulation
