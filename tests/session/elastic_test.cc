#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "dataset/load.h"
#include "execution/methods.h"
#include "ssb/generator.h"
#include "ssb/queries.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"

namespace nam::testing {
namespace {

/// SSB on one compute server; more join and some leave while queries claim their work. tests/sim/elastic_test
/// covers the order of events; this test has real threads, sockets and shared memory.
class ElasticQueryTest : public ::testing::TestWithParam<fabric::Kind> {
 protected:
  void SetUp() override {
    cluster_ = std::make_unique<InProcessCluster>(InProcessCluster::Options{
        .fabric = GetParam(), .memory_servers = 2, .compute_servers = 1, .threads = 2});
    const ssb::Generator generator({.scale_factor = 0.02});
    for (ssb::Table table : ssb::kAllTables) {
      auto loader =
          partitioner::BeginLoad(cluster_->attachment(), ssb::Schema(table, 4), {.block_bytes = 8192});
      ASSERT_TRUE(loader.ok()) << loader.status();
      const auto rows = dataset::LoadGenerated(
          cluster_->attachment().fabric(), generator, table,
          [&](const partitioner::ColumnBatch& batch) { return (*loader)->Append(batch); }, {.threads = 1});
      ASSERT_TRUE(rows.ok()) << rows.status();
      const auto committed = (*loader)->Commit();
      ASSERT_TRUE(committed.ok()) << committed.status();
    }
  }
  static TextRows Rows(session::Session& session, const std::string& sql) {
    auto result = session.Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
    return result.ok() ? Sorted(ToText(*result)) : TextRows();
  }
  std::unique_ptr<InProcessCluster> cluster_;
};

TEST_P(ElasticQueryTest, AnswersStayRightWhileServersComeAndGo) {
  const std::string sql(ssb::Queries()[3].sql);
  const TextRows expected = Rows(cluster_->session(), sql);
  std::atomic<bool> stop = false;
  std::atomic<int> queries = 0;
  std::thread client([&] {
    const auto session = cluster_->NewSession();
    Rows(*session, "set nam.work_queue = on");
    while (!stop) {
      EXPECT_EQ(Rows(*session, sql), expected);
      ++queries;
      queries.notify_all();
    }
  });
  const auto await_queries = [&](int more) {
    for (const int until = queries + more; queries < until;) queries.wait(queries);
  };
  await_queries(1);
  for (int i = 0; i < 3; ++i) {
    cluster_->AddComputeServer();
    await_queries(1);
  }
  for (int i = 0; i < 2; ++i) {
    cluster_->compute().pop_back();  // as SIGTERM does
    await_queries(2);
  }
  stop = true;
  client.join();
}

TEST_P(ElasticQueryTest, WordsToClaimFromAreGivenBack) {
  const uint64_t before = cluster_->UsedBytes();
  {
    const auto session = cluster_->NewSession();
    Rows(*session, "set nam.work_queue = on");
    Rows(*session, "select count(*) from lineorder");
    EXPECT_GT(cluster_->UsedBytes(), before);
  }
  EXPECT_LE(cluster_->AwaitUsedBytes(before), before);
}

TEST_P(ElasticQueryTest, ALimitThatIsReachedEndsTheQuery) {
  Rows(cluster_->session(), "set nam.work_queue = on");
  EXPECT_EQ(Rows(cluster_->session(), "select lo_orderkey from lineorder limit 7").size(), 7u);
  EXPECT_EQ(
      Rows(cluster_->session(), "select lo_orderkey from lineorder where lo_orderkey < 0 limit 7").size(),
      0u);
}

/// A compute server that answers every attempt, but whose results cannot be read: it is lost between the two.
TEST(LostResultsTest, WhatItReportedIsDoneAgain) {
  InProcessCluster cluster({.fabric = fabric::Kind::kTcp, .memory_servers = 1, .compute_servers = 1});
  SmallTable numbers{{"numbers", {{"id", Type::Integer()}}, {{"id", 8}}, ""}, {}};
  for (int i = 0; i < 1000; ++i) numbers.rows.push_back({Value::Integer(i)});
  ASSERT_TRUE(Load(cluster.attachment(), numbers, {.block_bytes = 1024}).ok());

  std::atomic<int> attempts = 0;
  catalog::Handlers handlers("nam.proto.Compute");
  handlers.Add(execution::kRunAttempt,
               [&](const proto::AttemptRequest& request, const catalog::IncomingCall&) {
                 ++attempts;
                 proto::AttemptReply reply;
                 reply.set_bytes(64);
                 for (int i = 0; i < request.pieces_size(); ++i) {
                   if (reply.threads_size() == 0) reply.add_threads();
                   reply.mutable_threads(0)->add_pieces(static_cast<uint32_t>(i));
                 }
                 return absl::StatusOr<proto::AttemptReply>(reply);
               });
  handlers.Add(execution::kOpenExchanges,
               [](const proto::OpenExchangesRequest&, const catalog::IncomingCall&) {
                 return absl::StatusOr<proto::OpenExchangesReply>(absl::UnimplementedError("no exchanges"));
               });
  handlers.Add(execution::kCompactTable, [](const proto::CompactTableRequest&, const catalog::IncomingCall&) {
    return absl::StatusOr<proto::CompactTableReply>(proto::CompactTableReply());
  });
  handlers.Add(execution::kReleaseResult,
               [](const proto::ReleaseResultRequest&, const catalog::IncomingCall&) {
                 return absl::StatusOr<proto::ReleaseResultReply>(proto::ReleaseResultReply());
               });
  const auto control = cluster.Client().control_plane->Serve(
      {.address = "127.0.0.1:0", .secret = cluster.Client().secret, .handlers = &handlers});
  ASSERT_TRUE(control.ok()) << control.status();
  catalog::AttachOptions options{.catalog = cluster.Client(), .role = proto::ROLE_COMPUTE};
  options.self.set_control_address((*control)->address());
  options.self.set_fabric_address("127.0.0.1:1");  // no process listens there
  options.self.set_threads(2);
  const auto joined = catalog::Attachment::Attach(options);
  ASSERT_TRUE(joined.ok()) << joined.status();

  for (const char* setting : {"set nam.work_queue = off", "set nam.work_queue = on"}) {
    ASSERT_TRUE(cluster.session().Execute(setting).ok());
    const int before = attempts;
    const auto result = cluster.session().Execute("select count(*), sum(id) from numbers");
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(ToText(*result), (TextRows{{"1000", "499500"}})) << setting;
    EXPECT_GT(attempts, before) << "it had a share";
  }
}

/// The session may not run another query for hours.
TEST(ResultsTest, LargeOnesGoOnceTheyAreRead) {
  InProcessCluster cluster({.fabric = fabric::Kind::kTcp, .memory_servers = 1, .compute_servers = 1});
  SmallTable numbers{{"numbers", {{"id", Type::Integer()}}, {{"id", 8}}, ""}, {}};
  for (int i = 0; i < 100'000; ++i) numbers.rows.push_back({Value::Integer(i)});
  ASSERT_TRUE(Load(cluster.attachment(), numbers, {.block_bytes = 8192}).ok());
  for (const char* setting : {"set nam.work_queue = off", "set nam.aggregate = dist"})
    ASSERT_TRUE(cluster.session().Execute(setting).ok());
  const auto result = cluster.session().Execute("select id, count(*) from numbers group by id");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows.size(), 100'000u);
  Clock& clock = cluster.attachment().fabric().clock();
  const Deadline deadline = clock.After(60'000'000);
  while (cluster.compute()[0]->load().results && !clock.Passed(deadline))
    clock.SleepUntil(clock.After(1'000));
  EXPECT_FALSE(cluster.compute()[0]->load().results);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ElasticQueryTest, ::testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                         [](const auto& kind) { return std::string(fabric::KindName(kind.param)); });

}  // namespace
}  // namespace nam::testing
