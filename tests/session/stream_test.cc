#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "execution/methods.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

/// Results that come to the client while servers still make them. tests/sim/stream_test covers the order of
/// events; this test has real threads, sockets and shared memory.
namespace nam::testing {
namespace {

using session::ResultBatch;
using session::ResultSet;

constexpr int kNumbers = 700;  // rows of numbers; their pairs are the square
constexpr char kPairs[] = "select a.id, b.id from numbers a, numbers b";

/// Counts pairs and sums them up; calls the test before each batch.
class Pairs final : public session::RowReceiver {
 public:
  explicit Pairs(std::function<absl::Status(int batch)> before = {}) : before_(std::move(before)) {}

  absl::Status Begin(const std::vector<ResultSet::Column>& columns) override {
    EXPECT_EQ(columns.size(), 2u);
    EXPECT_EQ(begun_++, 0);
    return absl::OkStatus();
  }
  absl::Status Add(const ResultBatch& batch) override {
    EXPECT_EQ(begun_, 1);
    if (before_) {
      const absl::Status status = before_(batches_);
      if (!status.ok()) return status;
    }
    ++batches_;
    EXPECT_LE(batch.rows(), 4096u);
    rows_ += batch.rows();
    for (size_t row = 0; row < batch.rows(); ++row) {
      const auto pair = static_cast<size_t>(batch.number(0, row) * kNumbers + batch.number(1, row));
      if (seen_.at(pair)++ > 0) ++repeated_;
    }
    return absl::OkStatus();
  }

  void ExpectAll() const {
    EXPECT_EQ(rows_, uint64_t{kNumbers} * kNumbers);
    EXPECT_EQ(repeated_, 0);
  }
  int batches() const { return batches_; }
  int begun() const { return begun_; }
  int repeated() const { return repeated_; }

 private:
  const std::function<absl::Status(int batch)> before_;
  int begun_ = 0;
  int batches_ = 0;
  int repeated_ = 0;
  uint64_t rows_ = 0;
  std::vector<uint8_t> seen_ = std::vector<uint8_t>(kNumbers * kNumbers);
};

class StreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SmallTable numbers{{"numbers", {{"id", Type::Integer()}}, {{"id", 8}}, ""}, {}};
    for (int i = 0; i < kNumbers; ++i) numbers.rows.push_back({Value::Integer(i)});
    ASSERT_TRUE(Load(cluster_.attachment(), numbers, {.block_bytes = 1024}).ok());
    Narrow(cluster_.session());
  }
  /// Many windows, of two pages each.
  static void Narrow(session::Session& session) {
    ASSERT_TRUE(session.Execute("set nam.result_mib_max = 1").ok());
  }
  static std::string StateOf(const absl::Status& status) {
    return SqlErrorOf(status).value_or(SqlError{}).sqlstate;
  }
  /// Nothing of the earlier query is left.
  void ExpectIdle() {
    Pairs rows;
    const auto result = cluster_.session().Execute(kPairs, rows);
    ASSERT_TRUE(result.ok()) << result.status();
    rows.ExpectAll();
  }

  InProcessCluster cluster_{{.compute_servers = 2}};
};

TEST_F(StreamTest, AllRowsComeInWindows) {
  for (const char* queue : {"off", "on"}) {
    ASSERT_TRUE(cluster_.session().Execute(absl::StrCat("set nam.work_queue = ", queue)).ok());
    Pairs rows;
    const auto result = cluster_.session().Execute(kPairs, rows);
    ASSERT_TRUE(result.ok()) << result.status();
    rows.ExpectAll();
    EXPECT_GT(rows.batches(), 100);
    EXPECT_EQ(result->command, absl::StrCat("SELECT ", kNumbers * kNumbers));
    EXPECT_EQ(result->columns.size(), 2u);
    EXPECT_TRUE(result->rows.empty());
  }
}

TEST_F(StreamTest, AReceiverHearsOfColumnsWithoutRows) {
  Pairs rows;
  const auto result =
      cluster_.session().Execute("select a.id, b.id from numbers a, numbers b where a.id < 0", rows);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(rows.begun(), 1);
  EXPECT_EQ(rows.batches(), 0);
  ASSERT_TRUE(cluster_.session().Execute("create table r (id int primary key) with (storage = record)").ok());
  Pairs returned;
  const auto change = cluster_.session().Execute("delete from r where id < 0 returning id, id + 1", returned);
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(returned.begun(), 1);
  Pairs of_nothing;
  ASSERT_TRUE(cluster_.session().Execute("set nam.result_mib_max = 2", of_nothing).ok());
  EXPECT_EQ(of_nothing.begun(), 0);
}

/// Rows behind a sort come out of it in batches.
TEST_F(StreamTest, SortedRowsComeInBatches) {
  ASSERT_TRUE(cluster_.session().Execute("set nam.result_mib_max = 64").ok());
  Pairs rows;
  const auto result = cluster_.session().Execute(absl::StrCat(kPairs, " order by 2, 1"), rows);
  ASSERT_TRUE(result.ok()) << result.status();
  rows.ExpectAll();
  EXPECT_GT(rows.batches(), 100);
}

TEST_F(StreamTest, AllRowsAtOnceAreBounded) {
  const auto result = cluster_.session().Execute(kPairs);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(StateOf(result.status()), "53200") << result.status();
  ExpectIdle();
}

/// There are more such sessions than attempts that may be suspended, and they send nothing more.
TEST_F(StreamTest, AReceiverThatFailsEndsTheStatement) {
  std::vector<std::unique_ptr<session::Session>> sessions;
  for (int i = 0; i < 60; ++i) {
    sessions.push_back(cluster_.NewSession());
    Narrow(*sessions.back());
    Pairs rows([&](int batch) {
      return batch == 10 * (i % 7) ? absl::DataLossError("the receiver is full") : absl::OkStatus();
    });
    const auto result = sessions.back()->Execute(kPairs, rows);
    ASSERT_FALSE(result.ok());
    EXPECT_TRUE(absl::StrContains(result.status().message(), "the receiver is full")) << result.status();
    EXPECT_EQ(rows.batches(), 10 * (i % 7));
  }
  ExpectIdle();
}

TEST_F(StreamTest, ALimitEndsTheStatement) {
  for (int i = 0; i < 70; ++i) {
    Pairs rows;
    const auto result = cluster_.session().Execute(absl::StrCat(kPairs, " limit 30000"), rows);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->command, "SELECT 30000");
  }
  ExpectIdle();
}

TEST_F(StreamTest, ACancelEndsTheStatementInTheMiddle) {
  for (int i = 0; i < 5; ++i) {
    Pairs rows([&](int batch) {
      if (batch == 10 * i) cluster_.session().Cancel();
      return absl::OkStatus();
    });
    const auto result = cluster_.session().Execute(kPairs, rows);
    EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
    EXPECT_LT(rows.batches(), 300);
  }
  ExpectIdle();
}

/// There are enough slow clients to hold all turns of the servers, if they kept them.
TEST_F(StreamTest, SlowReceiversDoNotHoldUpOthers) {
  constexpr int kClients = 40;
  int depth = 0;
  std::function<void()> run = [&] {
    if (++depth > kClients) return;
    const auto session = cluster_.NewSession();
    Narrow(*session);
    Pairs rows([&](int batch) {
      if (batch == 50) run();
      return absl::OkStatus();
    });
    const auto result = session->Execute(kPairs, rows);
    EXPECT_TRUE(result.ok()) << result.status();
    rows.ExpectAll();
  };
  run();
  EXPECT_GT(depth, kClients);
}

/// The query begins on one server, whose windows are less than half of the rows: it has delivered some and is
/// in the middle of others. A second server that has joined could redo them.
TEST_F(StreamTest, AServerLostAfterItDeliveredEndsTheQuery) {
  ASSERT_TRUE(cluster_.session().Execute("set nam.work_queue = on").ok());
  cluster_.compute().pop_back();
  Pairs rows([&](int batch) {
    if (batch == 0) cluster_.AddComputeServer();
    // The server leaves as with SIGTERM; no client reads its windows meanwhile.
    if (batch == 10) cluster_.compute().erase(cluster_.compute().begin());
    return absl::OkStatus();
  });
  const auto result = cluster_.session().Execute(kPairs, rows);
  EXPECT_EQ(StateOf(result.status()), "08006") << result.status();
  EXPECT_TRUE(absl::StrContains(result.status().message(), "had been delivered")) << result.status();
  EXPECT_EQ(rows.repeated(), 0);
  ExpectIdle();
}

/// The threads' timing decides whether it has delivered some rows by then, or all: none is missing or
/// repeated.
TEST_F(StreamTest, AServerLostAtAnyMomentCostsNoRow) {
  for (const int moment : {0, 20, 60, 100}) {
    Pairs rows([&](int batch) {
      if (batch == moment) cluster_.compute().pop_back();
      return absl::OkStatus();
    });
    const auto result = cluster_.session().Execute(kPairs, rows);
    EXPECT_EQ(rows.repeated(), 0);
    cluster_.AddComputeServer();
    if (result.ok()) {
      rows.ExpectAll();
    } else {
      EXPECT_EQ(StateOf(result.status()), "08006") << result.status();
    }
  }
  ExpectIdle();
}

/// Beside a real compute server a fake one, whose answers to attempts the test chooses, and whose memory
/// cannot be read.
class LostServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SmallTable numbers{{"numbers", {{"id", Type::Integer()}}, {{"id", 8}}, ""}, {}};
    for (int i = 0; i < kNumbers; ++i) numbers.rows.push_back({Value::Integer(i)});
    ASSERT_TRUE(Load(cluster_.attachment(), numbers, {.block_bytes = 1024}).ok());
    handlers_.Add(execution::kRunAttempt,
                  [this](const proto::AttemptRequest& request, const catalog::IncomingCall&) {
                    ++attempts_;
                    return answer_(request);
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
                  [this](const proto::ReleaseResultRequest&, const catalog::IncomingCall&) {
                    ++released_;
                    return absl::StatusOr<proto::ReleaseResultReply>(proto::ReleaseResultReply());
                  });
    auto control = cluster_.Client().control_plane->Serve(
        {.address = "127.0.0.1:0", .secret = cluster_.Client().secret, .handlers = &handlers_});
    ASSERT_TRUE(control.ok()) << control.status();
    control_ = *std::move(control);
    catalog::AttachOptions options{.catalog = cluster_.Client(), .role = proto::ROLE_COMPUTE};
    options.self.set_control_address(control_->address());
    options.self.set_fabric_address("127.0.0.1:1");  // no process listens there
    options.self.set_threads(2);
    auto joined = catalog::Attachment::Attach(options);
    ASSERT_TRUE(joined.ok()) << joined.status();
    joined_ = *std::move(joined);
  }
  static std::string StateOf(const absl::Status& status) {
    return SqlErrorOf(status).value_or(SqlError{}).sqlstate;
  }

  InProcessCluster cluster_{{.fabric = fabric::Kind::kTcp, .memory_servers = 1, .compute_servers = 1}};
  std::function<absl::StatusOr<proto::AttemptReply>(const proto::AttemptRequest& request)> answer_;
  std::atomic<int> attempts_ = 0, released_ = 0;
  catalog::Handlers handlers_{"nam.proto.Compute"};
  std::unique_ptr<catalog::ControlServer> control_;
  std::unique_ptr<catalog::Attachment> joined_;
};

/// The server says that it has a window.
TEST_F(LostServerTest, WhatWasNotDeliveredIsDoneAgain) {
  answer_ = [](const proto::AttemptRequest& request) {
    EXPECT_GT(request.window_bytes(), 0u);
    EXPECT_EQ(request.resume(), 0u);
    proto::AttemptReply reply;
    reply.set_bytes(1 << 16);
    reply.set_more(true);
    return reply;
  };
  for (const char* setting : {"set nam.work_queue = off", "set nam.work_queue = on"}) {
    ASSERT_TRUE(cluster_.session().Execute(setting).ok());
    const int before = attempts_;
    Pairs rows;
    const auto result = cluster_.session().Execute(kPairs, rows);
    ASSERT_TRUE(result.ok()) << result.status();
    rows.ExpectAll();
    EXPECT_GT(attempts_, before) << "it had a share";
  }
  Clock& clock = cluster_.attachment().fabric().clock();
  const Deadline deadline = clock.After(60'000'000);
  while (released_ < attempts_ && !clock.Passed(deadline)) clock.SleepUntil(clock.After(1'000));
  EXPECT_GE(released_, attempts_) << "what stands there is told to end";
}

/// The server has been asked, and has no keys: that is no error of the query.
TEST_F(LostServerTest, WhoHasStoodStillForLongerThanItsLeaseIsLost) {
  answer_ = [](const proto::AttemptRequest&) {
    absl::Status no_keys = absl::FailedPreconditionError("member 3 gets no keys");
    no_keys.SetPayload(execution::kServerOver, absl::Cord());
    return no_keys;
  };
  Pairs rows;
  const auto result = cluster_.session().Execute(kPairs, rows);
  ASSERT_TRUE(result.ok()) << result.status();
  rows.ExpectAll();
  EXPECT_GT(attempts_, 0);
}

/// Its rows would come twice.
TEST_F(LostServerTest, AnAttemptThatHasDeliveredIsNotGivenBack) {
  answer_ = [](const proto::AttemptRequest& request) {
    proto::AttemptReply reply;
    request.resume() == 0 ? reply.set_more(true) : reply.set_crowded(true);
    return reply;
  };
  Pairs rows;
  const auto result = cluster_.session().Execute(kPairs, rows);
  EXPECT_EQ(StateOf(result.status()), "XX000") << result.status();
}

/// They would come twice.
TEST_F(LostServerTest, NothingBeginsAnewOnceRowsAreOut) {
  std::atomic<bool> out = false;
  answer_ = [&](const proto::AttemptRequest&) {
    Clock& clock = joined_->fabric().clock();
    const Deadline deadline = clock.After(60'000'000);
    while (!out && !clock.Passed(deadline)) clock.SleepUntil(clock.After(1'000));
    absl::Status too_large = UserError(sqlstate::kOutOfMemory, "a build side is too large", -1);
    too_large.SetPayload(execution::kBuildSidesTooLarge, absl::Cord());
    return too_large;
  };
  Pairs rows([&](int) {
    out = true;
    return absl::OkStatus();
  });
  const auto result = cluster_.session().Execute(kPairs, rows);
  EXPECT_EQ(StateOf(result.status()), "53200") << result.status();
  EXPECT_TRUE(out);
  EXPECT_EQ(attempts_, 1);
  EXPECT_EQ(rows.begun(), 1);
  EXPECT_EQ(rows.repeated(), 0);
}

/// No member knows of that memory, but the session can tell that there may be some.
TEST_F(LostServerTest, WhatItLeftInScratchMemoryIsGivenBack) {
  std::atomic<int> left = 0;
  answer_ = [&](const proto::AttemptRequest& request) {
    const AllocationId scratch(request.scratch());
    EXPECT_NE(scratch, AllocationId());
    const auto members = joined_->Members(proto::ROLE_MEMORY);
    EXPECT_TRUE(members.ok());
    const MemoryServerId server(static_cast<uint16_t>(members->front().id()));
    const std::atomic<bool> never{false};
    left += joined_->AllocateScratch(server, scratch, request.attempt(), 1 << 20, never).ok();
    proto::AttemptReply reply;
    reply.set_bytes(1 << 16);
    return reply;
  };
  const uint64_t used = cluster_.UsedBytes();
  const auto result = cluster_.session().Execute(absl::StrCat(kPairs, " order by 1, 2"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows.size(), size_t{kNumbers} * kNumbers);
  EXPECT_GT(left, 0) << "it had a share, and wrote";
  Clock& clock = cluster_.attachment().fabric().clock();
  const Deadline deadline = clock.After(60'000'000);
  while (cluster_.UsedBytes() != used && !clock.Passed(deadline)) clock.SleepUntil(clock.After(10'000));
  EXPECT_EQ(cluster_.UsedBytes(), used);
}

}  // namespace
}  // namespace nam::testing
