#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "tests/fabric/child.h"
#include "tests/fabric/fixture.h"

/// Connecting, being refused, and peers that misbehave or die.
namespace nam::fabric::conformance {
namespace {

using ConnectionConformance = Conformance;
using ProcessConformance = Conformance;

struct Served {
  std::string address;
  RemoteKey rkey;
};

std::optional<Served> ReadServed(Child& child) {
  const auto line = child.ReadLine();
  if (!line.has_value()) return std::nullopt;
  const size_t space = line->rfind(' ');
  return Served{line->substr(0, space), {static_cast<uint32_t>(std::stoul(line->substr(space + 1)))}};
}

TEST_F(ConnectionConformance, NobodyThere) {
  const auto refused = client_->Connect(provider_.DeadAddress(), *completions_, {}, Soon());
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status().ToString();
}

TEST_F(ConnectionConformance, NonsenseAddressesAreRefused) {
  for (const std::string& address : {std::string(), std::string(5000, 'x'), std::string("\0\0", 2)}) {
    EXPECT_FALSE(client_->Connect(address, *completions_, {}, Soon()).ok());
    EXPECT_FALSE(client_->Listen({.address = address}).ok());
  }
}

TEST_F(ConnectionConformance, WrongSecretIsRefused) {
  const auto stranger = Take(provider_.Open("another secret"));
  const auto queue = Take(stranger->CreateCompletionQueue(512));
  const auto refused =
      stranger->Connect(listener_->address(), *queue, {}, stranger->clock().After(kTimeoutUs));
  EXPECT_TRUE(absl::IsUnauthenticated(refused.status())) << refused.status().ToString();
  EXPECT_TRUE(Run(WorkRequest::Read(1, local_->Slice(0, 8), At(0))).ok());
}

TEST_F(ConnectionConformance, ListenersGoAway) {
  const std::string address = listener_->address();
  listener_.reset();
  const auto refused = client_->Connect(address, *completions_, {}, Soon());
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status().ToString();
}

TEST_F(ConnectionConformance, AnAddressIsTakenOnce) {
  EXPECT_FALSE(client_->Listen({.address = listener_->address()}).ok());
  EXPECT_NE(NewQueuePair(), nullptr);
}

TEST_F(ConnectionConformance, AcceptHasADeadline) {
  const auto active = Take(server_->Listen({.address = provider_.ListenAddress(), .passive = false}));
  const auto queue = Take(server_->CreateCompletionQueue(512));
  const auto nobody = active->Accept(*queue, {}, server_->clock().After(10'000));
  EXPECT_TRUE(absl::IsDeadlineExceeded(nobody.status())) << nobody.status().ToString();
  EXPECT_FALSE(listener_->Accept(*queue, {}, server_->clock().After(10'000)).ok()) << "passive";
}

TEST_F(ConnectionConformance, GarbageAndSilenceCostOthersNothing) {
  const auto silent = provider_.Harass(listener_->address(), "");
  const auto text = provider_.Harass(listener_->address(), "GET / HTTP/1.1\r\n\r\n");
  const auto long_junk = provider_.Harass(listener_->address(), std::string(32 << 10, '\xff'));
  const auto zeroes = provider_.Harass(listener_->address(), std::string(176, '\0'));
  EXPECT_FALSE(silent.empty());
  const int64_t start_ns = client_->clock().NowNs();
  EXPECT_TRUE(Run(WorkRequest::Read(1, local_->Slice(0, 8), At(0))).ok());
  const auto pair = NewQueuePair();
  ASSERT_NE(pair, nullptr);
  EXPECT_TRUE(Run(*pair, WorkRequest::FetchAdd(2, local_->Slice(0, 8), At(0), 1)).ok());
  // Waiting for 20 silent connections in turn takes a minute: each has the peer timeout of 3 s.
  EXPECT_LT(client_->clock().NowNs() - start_ns, 20'000'000'000) << "silent connections delay no other";
}

TEST_F(ConnectionConformance, ManyConnectionsComeAndGo) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<QueuePair>> pairs;
    for (int i = 0; i < 50; ++i) pairs.push_back(NewQueuePair({.send_depth = 4, .receive_depth = 0}));
    for (const auto& pair : pairs) {
      ASSERT_NE(pair, nullptr);
      ASSERT_TRUE(Run(*pair, WorkRequest::FetchAdd(1, local_->Slice(0, 8), At(0), 1)).ok());
    }
  }
  EXPECT_EQ(RemoteWord(0), 150u);
}

/// A queue's memory may grow with its queue pairs, whatever waits in it, and wherever that lies.
TEST_F(ConnectionConformance, ConnectingKeepsWhatHasCompleted) {
  constexpr uint64_t kRequests = 12;
  const auto queue = NewQueue();
  const auto first = ConnectTo(listener_->address(), *queue, {.send_depth = kRequests, .receive_depth = 0});
  ASSERT_NE(first, nullptr);
  for (uint64_t i = 0; i < kRequests / 2; ++i) {
    ASSERT_TRUE(Run(*queue, *first, WorkRequest::FetchAdd(i, local_->Slice(0, 8), At(0), 1)).ok());
  }
  std::vector<WorkRequest> adds;
  for (uint64_t i = 0; i < kRequests; ++i)
    adds.push_back(WorkRequest::FetchAdd(100 + i, local_->Slice(0, 8), At(0), 1));
  ASSERT_OK(first->Post(adds));
  ASSERT_EQ(Next(*queue).id, 100u);
  const auto second = ConnectTo(listener_->address(), *queue, {.send_depth = 100, .receive_depth = 0});
  ASSERT_NE(second, nullptr);
  for (uint64_t i = 1; i < kRequests; ++i) ASSERT_EQ(Next(*queue).id, 100 + i);
  EXPECT_TRUE(Run(*queue, *second, WorkRequest::FetchAdd(1, local_->Slice(0, 8), At(0), 1)).ok());
  EXPECT_EQ(RemoteWord(0), kRequests / 2 + kRequests + 1);
}

TEST_F(ProcessConformance, AtomicsOfTwoProcessesAreExact) {
  constexpr uint64_t kAdds = 1000;
  const std::string rkey = std::to_string(region_->rkey().value);
  Child first({"add", "secret", listener_->address(), rkey, std::to_string(kAdds)});
  Child second({"add", "secret", listener_->address(), rkey, std::to_string(kAdds)});
  for (uint64_t i = 0; i < kAdds; ++i) {
    ASSERT_TRUE(Run(WorkRequest::FetchAdd(1, local_->Slice(0, 8), At(0), 1)).ok());
  }
  EXPECT_EQ(first.Finish(), 0);
  EXPECT_EQ(second.Finish(), 0);
  EXPECT_EQ(RemoteWord(0), 3 * kAdds);
  EXPECT_EQ(RemoteWord(8), 2 * kAdds);
}

TEST_F(ProcessConformance, AKilledServerIsLost) {
  Child child({"serve", "secret"});
  const auto served = ReadServed(child);
  ASSERT_TRUE(served.has_value());
  const auto pair = ConnectTo(served->address, *completions_);
  ASSERT_NE(pair, nullptr);
  const auto write = WorkRequest::Write(1, local_->Slice(0, 8), {served->rkey, 0});
  ASSERT_TRUE(Run(*pair, write).ok());
  child.Kill();
  const Deadline deadline = Soon();
  Completion completion;
  do {
    completion = Run(*pair, write);
  } while (completion.ok() && !client_->clock().Passed(deadline));
  EXPECT_EQ(completion.status, CompletionStatus::kPeerLost);
  EXPECT_EQ(Run(*pair, write).status, CompletionStatus::kFlushed);
  EXPECT_EQ(pair->state(), QueuePairState::kError);
  EXPECT_TRUE(Run(WorkRequest::Read(3, local_->Slice(0, 8), At(0))).ok()) << "other peers are not concerned";
}

TEST_F(ProcessConformance, AKilledPeerWakesWhoWaitsForIt) {
  Child child({"accept", "secret"});
  const auto address = child.ReadLine();
  ASSERT_TRUE(address.has_value());
  const auto pair = ConnectTo(*address, *completions_);
  ASSERT_NE(pair, nullptr);
  ASSERT_EQ(child.ReadLine(), "accepted");
  const WorkRequest send = WorkRequest::Send(1, local_->Slice(0, 8));
  const ReceiveRequest receive{.id = 2, .into = local_->Slice(64, 8)};
  ASSERT_OK(pair->Post({&send, 1}));
  ASSERT_OK(pair->PostReceive({&receive, 1}));
  const auto killer = client_->StartThread("killer", [&] { child.Kill(); });
  const Deadline deadline = Soon();
  for (int i = 0; i < 2; ++i) {
    const Completion completion = Next();
    EXPECT_FALSE(completion.ok());
    if (completion.opcode == Opcode::kSend) {
      EXPECT_EQ(completion.status, CompletionStatus::kPeerLost);
    }
  }
  EXPECT_FALSE(client_->clock().Passed(deadline));
}

TEST_F(ProcessConformance, AKilledClientLeavesTheServerAndNothingElse) {
  {
    Child adder({"add", "secret", listener_->address(), std::to_string(region_->rkey().value), "100000000"});
    // It has begun.
    const Deadline deadline = Soon();
    while (RemoteWord(0) == 0 && !client_->clock().Passed(deadline)) {
    }
    EXPECT_NE(RemoteWord(0), 0u);
    Child server({"serve", "secret"});
    EXPECT_TRUE(ReadServed(server).has_value());
    for (Child* child : {&adder, &server}) {
      const int pid = child->pid();
      child->Kill();
      EXPECT_EQ(provider_.NamesOf(pid), std::vector<std::string>());
    }
  }
  EXPECT_NE(NewQueuePair(), nullptr);
}

}  // namespace
}  // namespace nam::fabric::conformance
