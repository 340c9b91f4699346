#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "catalog/attach_over_fabric.h"
#include "catalog/control_plane.h"
#include "execution/methods.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "tests/base/seeds.h"
#include "tests/cluster/oracle.h"
#include "tests/sim/loaded_cluster.h"
#include "types/sql_error.h"

/// Queries of several stages of servers while servers die.
namespace nam::simulation {
namespace {

/// Further seeds: ./run test sim.
constexpr uint64_t kStagedSeeds = 200;
constexpr uint64_t kStagedSeedsOfACase = 20;
/// Instead of kPromisedMs: timeouts notice a host that is silent, in each stage.
constexpr double kSilentHostMs = 10'000;

const std::vector<std::string>& StagedQueries() {
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
      "select lo_orderkey, lo_linenumber, lo_revenue from lineorder where lo_quantity < 15 order by "
      "lo_revenue desc, 1, 2",
      "select lo_custkey, lo_orderkey, lo_linenumber, sum(lo_revenue) over (partition by lo_custkey order "
      "by lo_orderkey, lo_linenumber) as s from lineorder where lo_quantity < 10 order by s, 1, 2, 3",
      "select count(*), sum(a.lo_revenue), sum(b.lo_tax) from lineorder a join lineorder b on a.lo_orderkey "
      "= b.lo_orderkey and a.lo_linenumber = b.lo_linenumber",
      "select count(*), count(k), sum(n) from (select lo_custkey as k, count(*) as n from lineorder group by "
      "1) g full join customer on k = c_custkey",
      // A NULL of a single row, which is not written: an attempt that is lost with it must not take it along.
      "select count(*), count(m), sum(case when m then 1 else 0 end) from (select a.lo_quantity * 1000000 + "
      "a.lo_orderkey in (select nullif(lo_orderkey * 10 + lo_linenumber, 11) from lineorder) as m from "
      "lineorder a) q"};
  return queries;
}

/// A loaded cluster whose client's groups all go by parts, and whose sorts by runs.
class Staged : public LoadedCluster {
 public:
  Staged(uint64_t seed, int compute_servers, int memory_servers, bool by_parts = true)
      : LoadedCluster("stages", seed, compute_servers, memory_servers) {
    for (const char* const setting : {"work_queue = on", "prefetch_window = 1", "multicast = off"})
      Set(setting);
    const auto settings = by_parts
                              ? std::array{"aggregate = rdma", "join = rrj", "sorts_by_runs = on"}
                              : std::array{"aggregate = dist", "join = pipelined", "sorts_by_runs = off"};
    for (const char* const setting : settings) Set(setting);
  }

  /// Waits until it has joined again.
  void Restart(Cluster::Role role, int victim) {
    for (int i = 0; i < 100; ++i) {
      if (cluster().Restart(role, victim).ok()) return;
      Pause(500'000);
    }
    ADD_FAILURE() << "a server does not join again";
  }
};

/// The answers of the session alone, in a cluster without faults.
const std::vector<testing::TextRows>& StagedAnswers() {
  static const std::vector<testing::TextRows> rows = [] {
    Staged staged(1, 2, 2, /*by_parts=*/false);
    std::vector<testing::TextRows> made;
    for (const std::string& query : StagedQueries()) {
      const auto result = staged.Execute(query);
      EXPECT_TRUE(result.ok()) << query << "\n" << result.status();
      made.push_back(result.ok() ? testing::ToText(*result) : testing::TextRows());
      EXPECT_FALSE(made.back().empty()) << query;
    }
    return made;
  }();
  return rows;
}

/// The victim: a server's process, or its whole host.
enum class QueryVictim { kCompute, kCatalog, kMemory };

/// A query during which a server of each kind dies.
class KilledQuery {
 public:
  KilledQuery(uint64_t seed, RandomStream& random)
      : random_(random),
        number_(random.Below(StagedQueries().size())),
        staged_(seed, static_cast<int>(random.Between(2, 3)), static_cast<int>(random.Between(2, 3))),
        loaded_bytes_(staged_.cluster().UsedBytes()) {}

  /// The query without a death: its duration, and its result.
  void RunWhole() {
    const auto whole = staged_.Execute(query());
    ASSERT_TRUE(whole.ok()) << query() << "\n" << whole.status();
    EXPECT_EQ(testing::ToText(*whole), StagedAnswers()[number_]) << query();
    whole_ms_ = whole->elapsed_ms;
    // A slab that a server has not closed yet is freed with its next renewal.
    staged_.Pause(8'000'000);
    word_bytes_ = staged_.cluster().UsedBytes() - loaded_bytes_;
    EXPECT_LE(word_bytes_, uint64_t{1} << 20)
        << "words to claim work at, and nothing of scratch memory: " << staged_.cluster().Holdings();
  }

  /// Kills at some time of the query.
  void Kill(QueryVictim victim, Fates& fates) {
    const Cluster::Role role =
        victim == QueryVictim::kMemory ? Cluster::Role::kMemory : Cluster::Role::kCompute;
    const auto number = static_cast<int>(random_.Below(static_cast<uint64_t>(staged_.cluster().count(role))));
    const auto after_us = static_cast<int64_t>(whole_ms_ * static_cast<double>(random_.Below(1000)));
    // A host that is silent is waited for as long as a call may take: that is another promise.
    const bool whole_host = random_.OneIn(4) && victim != QueryVictim::kCatalog;
    bool done = false;
    double killed_ms = 0;
    const auto result = staged_.Execute(query(), [&] {
      staged_.Pause(after_us);
      fates.in_time += !done;
      killed_ms = staged_.NowMs();
      if (victim == QueryVictim::kCatalog) {
        staged_.cluster().KillCatalog(whole_host);
      } else {
        staged_.cluster().Kill(role, number, whole_host);
      }
    });
    done = true;
    EXPECT_LT(staged_.NowMs() - killed_ms, (whole_host ? kSilentHostMs : kPromisedMs) + whole_ms_)
        << query() << "\n"
        << result.status();
    Judge(victim, result, fates);
    if (victim == QueryVictim::kCatalog) {
      const absl::Status restarted = staged_.cluster().RestartCatalog();
      EXPECT_TRUE(restarted.ok()) << restarted;
    }
    // Memory that is not returned at once is freed with the next renewals of leases.
    staged_.Pause(8'000'000);
    EXPECT_LE(staged_.cluster().UsedBytes(), loaded_bytes_ + word_bytes_) << staged_.cluster().Holdings();
    EXPECT_TRUE(staged_.cluster().Idle());
    if (victim == QueryVictim::kCompute) staged_.Restart(role, number);
  }

 private:
  const std::string& query() const { return StagedQueries()[number_]; }
  /// A compute server's death costs only time; the death of another server may end the query.
  void Judge(QueryVictim victim, const absl::StatusOr<session::ResultSet>& result, Fates& fates) {
    if (result.ok()) {
      EXPECT_EQ(testing::ToText(*result), StagedAnswers()[number_]) << query();
      return;
    }
    ++fates.failed;
    EXPECT_NE(victim, QueryVictim::kCompute) << query() << "\n" << result.status();
    EXPECT_TRUE(absl::IsUnavailable(result.status()) || SqlErrorOf(result.status()).has_value())
        << result.status();
  }

  RandomStream& random_;
  const size_t number_;
  Staged staged_;
  const uint64_t loaded_bytes_;
  double whole_ms_ = 0;
  uint64_t word_bytes_ = 0;
};

class StagesSim : public ::testing::TestWithParam<uint64_t> {};

TEST_P(StagesSim, AnyServerDiesAtAnyPointOfAnyStage) {
  StagedAnswers();
  std::map<QueryVictim, Fates> fates;
  for (uint64_t seed = GetParam() * kStagedSeedsOfACase + 1; seed <= (GetParam() + 1) * kStagedSeedsOfACase;
       ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStream random(seed);
    KilledQuery query(seed, random);
    query.RunWhole();
    for (const QueryVictim victim :
         {seed % 2 == 0 ? QueryVictim::kCompute : QueryVictim::kCatalog, QueryVictim::kMemory}) {
      if (HasFatalFailure()) return;
      SCOPED_TRACE(victim == QueryVictim::kMemory    ? "a memory server"
                   : victim == QueryVictim::kCompute ? "a compute server"
                                                     : "the catalog");
      query.Kill(victim, fates[victim]);
    }
    if (HasFailure()) return;
  }
  // A test that kills too late tests nothing.
  for (const auto& [victim, fate] : fates) EXPECT_GT(fate.in_time, static_cast<int>(kStagedSeedsOfACase / 8));
  EXPECT_EQ(fates[QueryVictim::kCompute].failed, 0);
  EXPECT_GT(fates[QueryVictim::kMemory].failed, 0);
}

/// A compute server that takes all scratch memory for its first attempt, and then does nothing.
class Glutton {
 public:
  explicit Glutton(Staged& staged) : staged_(staged), handlers_("nam.proto.Compute") {
    auto process = staged.cluster().NewProcess("glutton");
    EXPECT_TRUE(process.ok()) << process.status();
    process_ = *std::move(process);
    handlers_.Add(execution::kRunAttempt,
                  [this](const proto::AttemptRequest& request, const catalog::IncomingCall& call) {
                    TakeAll(request);
                    while (process_->control_plane().Running() && !call.Cancelled()) staged_.Pause(10'000);
                    return absl::StatusOr<proto::AttemptReply>(absl::CancelledError("cancelled"));
                  });
    handlers_.Add(
        execution::kOpenExchanges, [](const proto::OpenExchangesRequest&, const catalog::IncomingCall&) {
          return absl::StatusOr<proto::OpenExchangesReply>(absl::UnimplementedError("no exchanges"));
        });
    handlers_.Add(execution::kCompactTable,
                  [](const proto::CompactTableRequest&, const catalog::IncomingCall&) {
                    return absl::StatusOr<proto::CompactTableReply>(proto::CompactTableReply());
                  });
    handlers_.Add(execution::kReleaseResult,
                  [](const proto::ReleaseResultRequest&, const catalog::IncomingCall&) {
                    return absl::StatusOr<proto::ReleaseResultReply>(proto::ReleaseResultReply());
                  });
    auto control = process_->control_plane().Serve({.address = "glutton:0", .handlers = &handlers_});
    EXPECT_TRUE(control.ok()) << control.status();
    control_ = *std::move(control);
    catalog::AttachOptions options{.catalog = staged.cluster().CatalogOf(*process_),
                                   .role = proto::ROLE_COMPUTE};
    options.self.set_control_address(control_->address());
    options.self.set_threads(2);
    auto joined = catalog::AttachOverFabric(options, process_->Opener());
    EXPECT_TRUE(joined.ok()) << joined.status();
    attachment_ = *std::move(joined);
  }
  /// Until it has all that it can get.
  void AwaitFull() {
    for (int i = 0; i < 1'000 && !full_; ++i) staged_.Pause(1'000);
    EXPECT_TRUE(full_);
  }
  void Die() { staged_.world().KillProcess(process_->id()); }
  /// The amount of scratch memory.
  uint64_t bytes() const { return bytes_; }

 private:
  const std::atomic<bool> never_{false};
  void TakeAll(const proto::AttemptRequest& request) {
    const auto servers = attachment_->Members(proto::ROLE_MEMORY);
    ASSERT_TRUE(servers.ok()) << servers.status();
    for (const proto::Member& server : *servers) {
      const MemoryServerId id(static_cast<uint16_t>(server.id()));
      const AllocationId allocation(request.scratch());
      for (uint64_t bytes = uint64_t{1} << 20; bytes >= 4096;) {
        if (attachment_->AllocateScratch(id, allocation, request.attempt(), bytes, never_).ok()) {
          bytes_ += bytes;
        } else {
          bytes /= 2;
        }
      }
    }
    full_ = true;
  }

  Staged& staged_;
  std::unique_ptr<Process> process_;
  catalog::Handlers handlers_;
  std::unique_ptr<catalog::ControlServer> control_;
  std::unique_ptr<catalog::Attachment> attachment_;
  uint64_t bytes_ = 0;
  bool full_ = false;
};

/// A sort whose servers stop until the Glutton has all scratch memory.
class LostScratchMemory : public ::testing::Test {
 protected:
  /// `behind` runs once that has happened, and the servers continue.
  template <typename Behind>
  absl::StatusOr<session::ResultSet> Sort(Staged& staged, Glutton& glutton, Behind&& behind) {
    const auto of_server = [&](int number) {
      return staged.cluster().ProcessOf(Cluster::Role::kCompute, number);
    };
    for (int i = 0; i < kComputeServers; ++i) staged.world().Pause(of_server(i), /*card_too=*/false);
    return staged.Execute(StagedQueries()[kSort], [&] {
      glutton.AwaitFull();
      EXPECT_EQ(glutton.bytes(), kMemoryServers * LoadedCluster::kScratchBytes) << "others have some of it";
      for (int i = 0; i < kComputeServers; ++i) staged.world().Resume(of_server(i));
      behind();
    });
  }
  static constexpr size_t kSort = 4;
  static constexpr int kComputeServers = 2, kMemoryServers = 2;
};

/// The loss of the server is known at once, or when others have met full scratch memory. They end with the
/// memory that its attempt returns; the query's end would be too late for them.
TEST_F(LostScratchMemory, ComesBackBeforeTheQueryEnds) {
  StagedAnswers();  // in a world of its own
  for (const int64_t after_us : {0, 1'000, 2'000'000}) {
    SCOPED_TRACE(absl::StrCat("dies after ", after_us, " us"));
    Staged staged(1, kComputeServers, kMemoryServers);
    Glutton glutton(staged);
    const auto result = Sort(staged, glutton, [&] {
      staged.Pause(after_us);
      glutton.Die();
    });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(testing::ToText(*result), StagedAnswers()[kSort]);
  }
}

/// A server that lives on may keep it for any time.
TEST_F(LostScratchMemory, IsWaitedForNoLongerThanALossIsNoticed) {
  Staged staged(1, kComputeServers, kMemoryServers);
  Glutton glutton(staged);
  double full_ms = 0;
  const auto result = Sort(staged, glutton, [&] { full_ms = staged.NowMs(); });
  EXPECT_EQ(SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate, "53200") << result.status();
  EXPECT_GT(staged.NowMs() - full_ms, 9'000);
  EXPECT_LT(staged.NowMs() - full_ms, 12'000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StagesSim,
                         ::testing::Range(uint64_t{0}, FromEnvironment("NAM_SIM_SEEDS", kStagedSeeds) /
                                                           kStagedSeedsOfACase));

}  // namespace
}  // namespace nam::simulation
