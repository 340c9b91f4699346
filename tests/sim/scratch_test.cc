#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

/// No memory server keeps an extent of scratch memory for a query of which a participant has ended midway.
namespace nam::simulation {
namespace {

constexpr int kJoinedRows = 4'000, kJoinedKeys = kJoinedRows / 2;
constexpr int kSteps = 32;                   // steps of the whole query at which a process is killed
constexpr int64_t kLeaseEndsUs = 8'000'000;  // by then a lease of 3 s has ended, and all have renewed theirs
constexpr uint64_t kScratchBytes = uint64_t{8} << 20;  // of a memory server

/// Both sides of the join, and then its groups, go by parts.
const std::string kQuery =
    "select count(*), sum(n), sum(s) from (select a.k as k, b.v as v, count(*) as n, sum(a.v) as s from l a "
    "join r b on a.k = b.k group by 1, 2) g";

class ScratchTest : public ::testing::Test {
 protected:
  ScratchTest() : world_(Options()) {
    auto harness = world_.OpenFabric("harness", {.secret = "s"});
    auto cluster = Cluster::Start(world_, {.memory_servers = 2,
                                           .compute_servers = 3,
                                           .threads = 2,
                                           .scratch_bytes = kScratchBytes,
                                           .always_by_parts = true});
    EXPECT_TRUE(harness.ok() && cluster.ok()) << cluster.status();
    harness_ = *std::move(harness);
    cluster_ = *std::move(cluster);
    client_ = NewClient();
    for (const char* const name : {"l", "r"}) {
      testing::SmallTable table{{name, {{"k", Type::Integer()}, {"v", Type::Integer()}}, {{"v", 8}}, ""}, {}};
      for (int i = 0; i < kJoinedRows; ++i)
        table.rows.push_back({Value::Integer(i % kJoinedKeys), Value::Integer(i)});
      const absl::Status loaded = testing::Load(client_->attachment(), table, {.block_bytes = 2048});
      EXPECT_TRUE(loaded.ok()) << loaded;
    }
    // Each key has two rows on either side: four pairs, in two groups.
    expected_ = {{absl::StrCat(2 * kJoinedKeys), absl::StrCat(4 * kJoinedKeys),
                  absl::StrCat(int64_t{kJoinedRows} * (kJoinedRows - 1))}};
    loaded_bytes_ = cluster_->UsedBytes();
  }
  ~ScratchTest() override {
    client_.reset();
    cluster_.reset();
  }

  std::unique_ptr<Client> NewClient() {
    auto client = cluster_->NewClient(absl::StrCat("client-", clients_++));
    EXPECT_TRUE(client.ok()) << client.status();
    for (const char* const setting :
         {"work_queue = on", "prefetch_window = 1", "multicast = off", "aggregate = rdma", "join = rrj"})
      EXPECT_TRUE((*client)->session().Execute(absl::StrCat("set nam.", setting)).ok());
    return *std::move(client);
  }
  absl::StatusOr<session::ResultSet> Run() { return client_->session().Execute(kQuery); }
  void ExpectRight(const absl::StatusOr<session::ResultSet>& result) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(testing::ToText(*result), expected_);
  }
  /// The duration of the undisturbed query, with connections made.
  double WholeMs() {
    ExpectRight(Run());
    const auto whole = Run();
    ExpectRight(whole);
    return whole.ok() ? whole->elapsed_ms : 0;
  }
  /// Runs the query with a fault at a step of it. Adds up how much scratch memory was in use then.
  absl::StatusOr<session::ResultSet> RunUntil(int step, double whole_ms, const std::function<void()>& event) {
    const auto thread = harness_->StartThread("event", [&, step] {
      Pause(static_cast<int64_t>(whole_ms * 1e3 * (step + 0.5) / kSteps));
      times_in_use_ += cluster_->ScratchUsedBytes() > 0;
      event();
    });
    return Run();
  }
  /// It is freed with the next renewals of leases, at the latest.
  void ExpectNoScratch() {
    Pause(kLeaseEndsUs);
    EXPECT_EQ(cluster_->ScratchUsedBytes(), 0u) << cluster_->Holdings();
    EXPECT_TRUE(cluster_->Idle());
  }
  void Pause(int64_t us) { world_.clock().SleepUntil(world_.clock().After(us)); }

  fabric::sim::World world_;
  std::unique_ptr<fabric::Fabric> harness_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Client> client_;
  testing::TextRows expected_;
  uint64_t loaded_bytes_ = 0;
  int clients_ = 0;
  int times_in_use_ = 0;

 private:
  /// Each READ takes long, so that a query has many moments.
  static fabric::sim::WorldOptions Options() {
    fabric::sim::WorldOptions options;
    options.nic.read_ns = 20'000;
    return options;
  }
};

TEST_F(ScratchTest, AComputeServerThatDiesAtAnyStepLeavesNone) {
  const double whole_ms = WholeMs();
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step, " of ", kSteps));
    const int victim = step % 3;
    const bool whole_host = step % 8 == 7;
    ExpectRight(
        RunUntil(step, whole_ms, [&] { cluster_->Kill(Cluster::Role::kCompute, victim, whole_host); }));
    ExpectNoScratch();
    ExpectRight(Run());  // by the others
    for (int i = 0; i < 100 && !cluster_->Restart(Cluster::Role::kCompute, victim).ok(); ++i) Pause(500'000);
    ASSERT_TRUE(cluster_->Alive(Cluster::Role::kCompute, victim));
    ExpectRight(Run());
    if (HasFailure()) return;
  }
  EXPECT_GT(times_in_use_, kSteps / 3) << "a test that kills too early, or too late, tests nothing";
}

TEST_F(ScratchTest, AClientThatDiesAtAnyStepLeavesNone) {
  const double whole_ms = WholeMs();
  int in_time = 0;
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step, " of ", kSteps));
    const auto result = RunUntil(step, whole_ms, [&] { world_.KillProcess(client_->process()); });
    if (result.ok()) ExpectRight(result);  // it had ended before
    in_time += !result.ok();
    client_.reset();
    ExpectNoScratch();
    // The words at which work was claimed go with the lease, too.
    EXPECT_EQ(cluster_->UsedBytes(), loaded_bytes_) << cluster_->Holdings();
    client_ = NewClient();
    ExpectRight(Run());
    if (HasFailure()) return;
  }
  EXPECT_GT(in_time, kSteps / 2);
  EXPECT_GT(times_in_use_, kSteps / 3) << "a test that kills too early, or too late, tests nothing";
}

/// Takes rows and stops after the first of them.
class Standing final : public session::RowReceiver {
 public:
  explicit Standing(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  absl::Status Begin(const std::vector<session::ResultSet::Column>&) override { return absl::OkStatus(); }
  absl::Status Add(const session::ResultBatch& batch) override {
    if (rows_ == 0) meanwhile_();
    rows_ += batch.rows();
    return absl::OkStatus();
  }
  uint64_t rows() const { return rows_; }

 private:
  const std::function<void()> meanwhile_;
  uint64_t rows_ = 0;
};

TEST_F(ScratchTest, AQueryBeyondThePoolFailsAloneAndGivesBackWhatItHad) {
  auto other = NewClient();
  int failed = 0;
  Standing reader([&] {
    const uint64_t in_use = cluster_->ScratchUsedBytes();
    EXPECT_GT(in_use, 0u) << "the query that stands still holds its groups";
    // Each row of either side with 1,000 of the other: groups of several times the pool.
    const auto large = other->session().Execute(
        "select count(*) from (select a.v as x, b.v as y, min(a.k) as k, count(*) as n from l a join r b on "
        "a.k % 4 = b.k % 4 group by 1, 2) g");
    ASSERT_FALSE(large.ok());
    const SqlError error = SqlErrorOf(large.status()).value_or(SqlError{});
    EXPECT_TRUE(error.sqlstate == "53200" || error.sqlstate == "53100") << large.status();
    EXPECT_NE(error.message.find("scratch memory is full"), std::string::npos) << large.status();
    ++failed;
    Pause(kLeaseEndsUs);
    EXPECT_EQ(cluster_->ScratchUsedBytes(), in_use) << cluster_->Holdings();
    ExpectRight(other->session().Execute(kQuery));
  });
  const auto result =
      client_->session().Execute("select v, k, sum(k) from l group by v, k having count(*) > 0", reader);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(reader.rows(), static_cast<uint64_t>(kJoinedRows));
  EXPECT_EQ(failed, 1);
  ExpectNoScratch();
}

}  // namespace
}  // namespace nam::simulation
