#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fabric/tcp/busy_poll.h"
#include "tests/fabric/tcp_connection.h"

namespace {

std::atomic<uint64_t> yields = 0;
std::atomic<int64_t> slice_us = 0;  // how long other programs keep a yielded processor; 0: as long as they do

}  // namespace

/// Replaces the C library's, for all tests of the program.
extern "C" int sched_yield() {
  ++yields;
  if (slice_us == 0) return static_cast<int>(syscall(SYS_sched_yield));
  const nam::Deadline back = nam::RealClock().After(slice_us);
  while (!nam::RealClock().Passed(back)) continue;
  return 0;
}

namespace nam::fabric {
namespace {

TEST_F(TcpTest, WritesReadsAndAtomics) {
  Start(true);
  for (const uint32_t bytes : {0u, 1u, 7u, 2048u, 65'536u, 400'001u}) {
    const uint64_t offset = bytes % 5;
    for (uint32_t i = 0; i < bytes; ++i) local_->data()[i] = static_cast<std::byte>(i * 7 + bytes);
    EXPECT_EQ(Run(*pair_, WorkRequest::Write(1, local_->Slice(0, bytes), At(offset))), CompletionStatus::kOk);
    EXPECT_EQ(Run(*pair_, WorkRequest::Read(2, local_->Slice(500'000, bytes), At(offset))),
              CompletionStatus::kOk);
    EXPECT_EQ(std::memcmp(local_->data(), local_->data() + 500'000, bytes), 0) << bytes;
  }
  auto* old = reinterpret_cast<uint64_t*>(local_->data());
  const LocalBuffer into = local_->Slice(0, 8);
  const RemoteAddress word = At(900'000);
  EXPECT_EQ(Run(*pair_, WorkRequest::FetchAdd(3, into, word, 5)), CompletionStatus::kOk);
  EXPECT_EQ(*old, 0u);
  EXPECT_EQ(Run(*pair_, WorkRequest::CompareAndSwap(4, into, word, 4, 9)), CompletionStatus::kOk);
  EXPECT_EQ(*old, 5u);
  EXPECT_EQ(Run(*pair_, WorkRequest::CompareAndSwap(5, into, word, 5, 9)), CompletionStatus::kOk);
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(6, into, word)), CompletionStatus::kOk);
  EXPECT_EQ(*old, 9u);
  EXPECT_EQ(pair_->View(At(0), 8).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TcpTest, AtomicsAreExactAcrossNicThreads) {
  Start(true);
  constexpr int kThreads = 3;
  constexpr int kAdds = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      auto queue = client_->CreateCompletionQueue(512).value();
      auto pair = client_->Connect(listener_->address(), *queue, {}, Soon()).value();
      auto into = client_->Allocate(4096, {}).value();
      for (int i = 0; i < kAdds; i += 50) {
        std::vector<WorkRequest> batch;
        for (int j = 0; j < 50; ++j) {
          batch.push_back(WorkRequest::FetchAdd(j, into->Slice(0, 8), At(64), 1,
                                                j == 49 ? Signal::kSignaled : Signal::kUnsignaled));
        }
        ASSERT_TRUE(pair->Post(batch).ok());
        ASSERT_TRUE(Next(*queue).ok());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 8), At(64))), CompletionStatus::kOk);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(local_->data()), uint64_t{kThreads} * kAdds);
}

TEST_F(TcpTest, WordsAreNeverTorn) {
  Start(true);
  auto other = Connect();
  // One queue pair writes all zeroes and all ones in turn while the other, on the other NIC thread, reads.
  constexpr uint32_t kBytes = 64 << 10;
  std::memset(local_->data(), 0xff, kBytes);
  std::memset(local_->data() + kBytes, 0, kBytes);
  std::array<Completion, 8> done;
  for (int round = 0; round < 100; ++round) {
    const std::array writes = {WorkRequest::Write(1, local_->Slice(0, kBytes), At(0)),
                               WorkRequest::Write(1, local_->Slice(kBytes, kBytes), At(0))};
    const std::array reads = {WorkRequest::Read(2, local_->Slice(2 * kBytes, kBytes), At(0)),
                              WorkRequest::Read(2, local_->Slice(3 * kBytes, kBytes), At(0))};
    ASSERT_TRUE(pair_->Post(writes).ok());
    ASSERT_TRUE(other->Post(reads).ok());
    for (size_t taken = 0; taken < 4;) {
      const size_t now = completions_->Wait(done, Soon());
      ASSERT_GT(now, 0u);
      for (size_t i = 0; i < now; ++i) ASSERT_TRUE(done[i].ok());
      taken += now;
    }
    const auto* words = reinterpret_cast<const uint64_t*>(local_->data() + 2 * kBytes);
    for (size_t i = 0; i < 2 * kBytes / 8; ++i) ASSERT_TRUE(words[i] == 0 || words[i] == ~0ull) << words[i];
  }
}

TEST_F(TcpTest, ErrorsChangeNothingAndFlushWhatFollows) {
  const auto expect = [this](const WorkRequest& bad, CompletionStatus status) {
    auto pair = Connect();
    std::memset(local_->data(), 0x5a, 64);
    std::array batch = {WorkRequest::Read(1, local_->Slice(512, 8), At(0)), bad,
                        WorkRequest::Write(3, local_->Slice(0, 8), At(0), Signal::kUnsignaled)};
    batch[1].id = 2;
    batch[1].signal = Signal::kUnsignaled;
    ASSERT_TRUE(pair->Post(batch).ok());
    EXPECT_EQ(Next(*completions_).status, CompletionStatus::kOk);
    const Completion failed = Next(*completions_);
    EXPECT_EQ(failed.id, 2u);
    EXPECT_EQ(failed.status, status);
    EXPECT_EQ(pair->state(), QueuePairState::kError);
    EXPECT_EQ(Next(*completions_).status, CompletionStatus::kFlushed);
    EXPECT_EQ(Run(*pair, WorkRequest::Read(4, local_->Slice(512, 8), At(0))), CompletionStatus::kFlushed);
    ASSERT_EQ(Run(*pair_, WorkRequest::Read(5, local_->Slice(512, 8), At(0))), CompletionStatus::kOk);
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(local_->data() + 512), 0u);
  };
  Start(true);
  const LocalBuffer eight = local_->Slice(0, 8);
  const auto read_only = server_->Allocate(4096, {.access = Access::kRead}).value();
  expect(WorkRequest::Write(0, eight, At((1 << 20) - 7)), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::Read(0, eight, At(~0ull - 3)), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::Read(0, eight, {{0x12345678}, 0}), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::Write(0, eight, {read_only->rkey(), 0}), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::FetchAdd(0, eight, {read_only->rkey(), 0}, 1), CompletionStatus::kRemoteAccessError);
  expect(WorkRequest::FetchAdd(0, eight, At(4), 1), CompletionStatus::kRemoteInvalidRequest);
  expect(WorkRequest::Send(0, eight),
         CompletionStatus::kRemoteInvalidRequest);  // a passive peer has no receives
  expect(WorkRequest::Read(0, {local_->data(), 8, {77}}, At(0)), CompletionStatus::kLocalError);
  expect(WorkRequest::Read(0, {local_->data() + (1 << 20) - 4, 8, local_->lkey()}, At(0)),
         CompletionStatus::kLocalError);
}

TEST_F(TcpTest, DeregisteredRegionIsRefused) {
  Start(true);
  auto gone = server_->Allocate(4096, {}).value();
  const RemoteAddress at{gone->rkey(), 0};
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 8), at)), CompletionStatus::kOk);
  gone.reset();
  const auto next = server_->Allocate(4096, {}).value();
  EXPECT_NE(next->rkey(), at.rkey);
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(2, local_->Slice(0, 8), at)), CompletionStatus::kRemoteAccessError);
}

TEST_F(TcpTest, PostTakesAllOrNone) {
  Start(true, 10'000'000, {.send_depth = 4, .receive_depth = 4, .inline_bytes_max = 16});
  const WorkRequest read = WorkRequest::Read(1, local_->Slice(0, 8), At(0), Signal::kUnsignaled);
  EXPECT_EQ(pair_->Post(std::vector(5, read)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(pair_->Post(std::vector(3, read)).ok());
  EXPECT_EQ(pair_->Post(std::vector(2, read)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(2, local_->Slice(0, 8), At(0))), CompletionStatus::kOk);
  EXPECT_TRUE(pair_->Post(std::vector(4, read)).ok());
  EXPECT_EQ(completions_->Wait({}, Soon()), 0u);

  WorkRequest too_long = WorkRequest::Write(3, local_->Slice(0, 17), At(0));
  too_long.inlined = true;
  EXPECT_EQ(pair_->Post({&too_long, 1}).code(), absl::StatusCode::kInvalidArgument);
  const WorkRequest narrow = WorkRequest::FetchAdd(4, local_->Slice(0, 4), At(0), 1);
  EXPECT_EQ(pair_->Post({&narrow, 1}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TcpTest, SendsMeetReceivesInBothDirections) {
  Start(false);
  const auto incoming = server_->Allocate(4096, {}).value();
  std::memcpy(local_->data(), "hello", 5);
  const std::array batch = {
      WorkRequest::Send(1, local_->Slice(0, 5)),
      WorkRequest::WriteWithImmediate(2, local_->Slice(0, 5), At(100), 4711),
  };
  // Posted before any receive: both wait.
  ASSERT_TRUE(pair_->Post(batch).ok());
  Completion none;
  EXPECT_EQ(completions_->Poll({&none, 1}), 0u);
  const std::array receives = {ReceiveRequest{10, incoming->Slice(0, 64)}, ReceiveRequest{11, {}}};
  ASSERT_TRUE(server_pair_->PostReceive(receives).ok());
  const Completion first = Next(*server_completions_);
  EXPECT_EQ(first.id, 10u);
  EXPECT_TRUE(first.ok() && first.bytes == 5 && !first.has_immediate && first.opcode == Opcode::kReceive);
  EXPECT_EQ(std::memcmp(incoming->data(), "hello", 5), 0);
  const Completion second = Next(*server_completions_);
  EXPECT_EQ(second.id, 11u);
  EXPECT_TRUE(second.ok() && second.has_immediate && second.immediate == 4711);
  EXPECT_EQ(std::memcmp(region_->data() + 100, "hello", 5), 0);
  EXPECT_EQ(Next(*completions_).id, 1u);
  EXPECT_EQ(Next(*completions_).id, 2u);

  const ReceiveRequest back{20, local_->Slice(64, 64)};
  ASSERT_TRUE(pair_->PostReceive({&back, 1}).ok());
  WorkRequest answer = WorkRequest::Send(21, incoming->Slice(0, 5));
  answer.inlined = true;
  ASSERT_TRUE(server_pair_->Post({&answer, 1}).ok());
  std::memset(incoming->data(), 0, 5);
  EXPECT_EQ(Next(*completions_).id, 20u);
  EXPECT_EQ(std::memcmp(local_->data() + 64, "hello", 5), 0);
  EXPECT_TRUE(Next(*server_completions_).ok());
}

TEST_F(TcpTest, MessageLongerThanTheReceiveFailsBothSides) {
  Start(false);
  const auto incoming = server_->Allocate(4096, {}).value();
  const ReceiveRequest receive{10, incoming->Slice(0, 4)};
  ASSERT_TRUE(server_pair_->PostReceive({&receive, 1}).ok());
  EXPECT_EQ(Run(*pair_, WorkRequest::Send(1, local_->Slice(0, 5))), CompletionStatus::kRemoteInvalidRequest);
  EXPECT_EQ(Next(*server_completions_).status, CompletionStatus::kRemoteInvalidRequest);
  EXPECT_EQ(server_pair_->state(), QueuePairState::kError);
}

// Many more bytes than all socket buffers hold wait for receives, longer than the peer timeout.
TEST_F(TcpTest, WaitingMessagesPushBackAndNothingTimesOut) {
  constexpr int64_t kPeerTimeoutUs = 1'000'000;
  Start(false, kPeerTimeoutUs, {.send_depth = 256, .receive_depth = 256});
  const auto incoming = server_->Allocate(kMaxSendBytes, {}).value();
  const std::vector<WorkRequest> sends(256, WorkRequest::Send(1, local_->Slice(0, kMaxSendBytes)));
  ASSERT_TRUE(pair_->Post(sends).ok());
  std::array<Completion, 256> done;
  EXPECT_EQ(completions_->Wait(done, RealClock().After(2 * kPeerTimeoutUs + kPeerTimeoutUs / 2)), 0u);
  EXPECT_EQ(pair_->state(), QueuePairState::kReady);
  const std::vector<ReceiveRequest> receives(256, ReceiveRequest{2, incoming->Slice(0, kMaxSendBytes)});
  ASSERT_TRUE(server_pair_->PostReceive(receives).ok());
  for (size_t taken = 0; taken < 256;) {
    const size_t now = completions_->Wait(done, Soon());
    ASSERT_GT(now, 0u);
    for (size_t i = 0; i < now; ++i) ASSERT_TRUE(done[i].ok());
    taken += now;
  }
}

TEST_F(TcpTest, WakeEndsAWait) {
  Start(true);
  Completion none;
  std::thread waker([&] { completions_->Wake(); });
  EXPECT_EQ(completions_->Wait({&none, 1}, Soon()), 0u);
  waker.join();
}

TEST_F(TcpTest, PeerDeathCompletesWhatIsPending) {
  Start(false);
  const ReceiveRequest receive{9, local_->Slice(0, 64)};
  ASSERT_TRUE(pair_->PostReceive({&receive, 1}).ok());
  const std::array sends = {WorkRequest::Send(1, local_->Slice(0, 8), Signal::kUnsignaled),
                            WorkRequest::Send(2, local_->Slice(0, 8))};
  ASSERT_TRUE(pair_->Post(sends).ok());
  server_pair_.reset();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Next(*completions_).status, CompletionStatus::kPeerLost) << i;
  EXPECT_EQ(pair_->state(), QueuePairState::kError);
  EXPECT_EQ(Run(*pair_, WorkRequest::Send(3, local_->Slice(0, 8))), CompletionStatus::kFlushed);
}

TEST_F(TcpTest, DestroyedServerIsLost) {
  Start(true);
  listener_.reset();
  region_.reset();
  server_.reset();
  EXPECT_EQ(Run(*pair_, WorkRequest::Read(1, local_->Slice(0, 8), {{1}, 0})), CompletionStatus::kPeerLost);
}

TEST_F(TcpTest, CompletionQueueBoundsItsQueuePairs) {
  Start(true);
  auto small = client_->CreateCompletionQueue(100).value();
  const auto pair =
      client_->Connect(listener_->address(), *small, {.send_depth = 60, .receive_depth = 41}, Soon());
  EXPECT_EQ(pair.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(TcpTest, ConnectErrorsSayWhatIsWrong) {
  Start(true);
  const std::string address = listener_->address();
  const auto connect = [&](Fabric& fabric, const std::string& to, int64_t timeout_us) {
    return fabric.Connect(to, *completions_, {}, RealClock().After(timeout_us)).status();
  };
  const auto stranger = OpenFabric(10'000'000, "another secret");
  auto queue = stranger->CreateCompletionQueue(1024).value();
  EXPECT_EQ(connect(*stranger, address, 60'000'000).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(connect(*client_, "127.0.0.1", 1'000'000).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(connect(*client_, "127.0.0.1:99999", 1'000'000).code(), absl::StatusCode::kInvalidArgument);
  listener_.reset();
  const absl::Status refused = connect(*client_, address, 60'000'000);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(refused.message().find("nothing listens there"), absl::string_view::npos) << refused;
  EXPECT_EQ(OpenTcp({.kind = Kind::kTcp}).status().code(), absl::StatusCode::kInvalidArgument);
}

/// Both sides poll for a while before they sleep, but not for the whole wait.
TEST_F(TcpTest, WhoWaitsLongSleeps) {
  Start(/*passive=*/true);
  EXPECT_EQ(
      Run(*pair_,
          {.id = 1, .opcode = Opcode::kRead, .local = {local_->data(), 8, local_->lkey()}, .remote = At(0)}),
      CompletionStatus::kOk);
  const uint64_t before = yields;
  Completion completion;
  EXPECT_EQ(completions_->Wait({&completion, 1}, RealClock().After(300'000)), 0u);
  EXPECT_LT(yields - before,
            5'000u);  // each follows a poll, which takes more than a tenth of a microsecond
}

/// Another program computes: the waiting thread sleeps, and runs first when it is woken.
TEST_F(TcpTest, WhoGetsTheProcessorBackLateSleeps) {
  Start(/*passive=*/true);
  slice_us = 2 * tcp::BusyPoll::kSliceNs / 1'000;
  const uint64_t before = yields;
  const int64_t began_ns = RealClock().NowNs();
  for (uint64_t id = 1; id <= 50; ++id) {
    EXPECT_EQ(Run(*pair_, {.id = id,
                           .opcode = Opcode::kRead,
                           .local = {local_->data(), 8, local_->lkey()},
                           .remote = At(0)}),
              CompletionStatus::kOk);
  }
  const int64_t asleep_ns = tcp::BusyPoll::kContended * slice_us * 1'000;  // after each yield, at least
  const uint64_t yielded = yields - before;  // while they are still long: short ones are many
  const auto times = static_cast<uint64_t>((RealClock().NowNs() - began_ns) / asleep_ns + 1);
  slice_us = 0;
  EXPECT_LE(yielded, 2 * times) << "of two threads, each once in a time";
}

}  // namespace
}  // namespace nam::fabric
