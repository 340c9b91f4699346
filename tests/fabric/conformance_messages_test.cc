#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "tests/fabric/fixture.h"

/// SEND, RECEIVE, WRITE_WITH_IMMEDIATE, and waiting for completions.
namespace nam::fabric::conformance {
namespace {

using CompletionConformance = Conformance;

TEST_F(MessageConformance, SendsEverySize) {
  for (const uint32_t bytes : {0u, 1u, 7u, 8u, 4095u, kMaxSendBytes}) {
    SCOPED_TRACE(bytes);
    const ReceiveRequest receive{.id = 50, .into = server_local_->Slice(0, kMaxSendBytes)};
    ASSERT_OK(server_pair_->PostReceive({&receive, 1}));
    FillPattern(local_->data(), bytes, bytes);
    std::fill_n(server_local_->data(), kMaxSendBytes, std::byte{0});
    EXPECT_TRUE(Run(*client_pair_, WorkRequest::Send(1, local_->Slice(0, bytes))).ok());
    const Completion received = Next(*server_completions_);
    EXPECT_TRUE(received.ok());
    EXPECT_EQ(received.id, 50u);
    EXPECT_EQ(received.opcode, Opcode::kReceive);
    EXPECT_EQ(received.queue_pair, server_pair_->id());
    EXPECT_EQ(received.bytes, bytes);
    EXPECT_FALSE(received.has_immediate);
    EXPECT_TRUE(HasPattern(server_local_->data(), bytes, bytes));
  }
}

TEST_F(MessageConformance, ManyMessagesArriveInOrderBothWays) {
  constexpr uint64_t kMessages = 3000;
  constexpr uint32_t kSlotBytes = 1024;
  // Either side sends numbers and checks the other's, with 32 receives posted and 16 sends in flight.
  const auto talk = [&](QueuePair& pair, CompletionQueue& completions, MemoryRegion& memory) {
    PostReceives(pair, memory, 32, kSlotBytes);
    std::byte* const outgoing = memory.data() + (1 << 20);
    uint64_t sent = 0, completed = 0, received = 0;
    while (completed < kMessages || received < kMessages) {
      while (sent < kMessages && sent - completed < 16) {
        const size_t at = (1 << 20) + sent % 16 * kSlotBytes;
        std::memcpy(outgoing + sent % 16 * kSlotBytes, &sent, 8);
        const uint32_t bytes = 8 + static_cast<uint32_t>(sent * 37 % (kSlotBytes - 8));
        const WorkRequest send = WorkRequest::Send(sent, memory.Slice(at, bytes));
        ASSERT_OK(pair.Post({&send, 1}));
        ++sent;
      }
      std::array<Completion, 8> some;
      const size_t count = completions.Wait(some, Soon());
      ASSERT_GT(count, 0u) << "stuck at " << sent << " sent, " << received << " received";
      for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(some[i].ok());
        if (some[i].opcode == Opcode::kSend) {
          ASSERT_EQ(some[i].id, completed++);
          continue;
        }
        uint64_t number;
        std::memcpy(&number, memory.data() + some[i].id * kSlotBytes, 8);
        ASSERT_EQ(number, received);
        ASSERT_EQ(some[i].bytes, 8 + number * 37 % (kSlotBytes - 8));
        ++received;
        const ReceiveRequest again{.id = some[i].id,
                                   .into = memory.Slice(some[i].id * kSlotBytes, kSlotBytes)};
        ASSERT_OK(pair.PostReceive({&again, 1}));
      }
    }
  };
  const auto thread =
      server_->StartThread("server", [&] { talk(*server_pair_, *server_completions_, *server_local_); });
  talk(*client_pair_, *completions_, *local_);
}

TEST_F(MessageConformance, MessagesWaitForLateReceives) {
  std::vector<WorkRequest> batch;
  for (uint64_t id = 0; id < 3; ++id) {
    FillPattern(local_->data() + id * 64, 64, static_cast<uint32_t>(id));
    batch.push_back(WorkRequest::Send(id, local_->Slice(id * 64, 64)));
  }
  batch.push_back(WorkRequest::Read(3, local_->Slice(4096, 8), At(0)));
  ASSERT_OK(client_pair_->Post(batch));
  Completion completion;
  EXPECT_EQ(completions_->Wait({&completion, 1}, client_->clock().After(20'000)), 0u)
      << "nothing completes before the first receive";
  PostReceives(*server_pair_, *server_local_, 2, 64);
  for (uint64_t id = 0; id < 2; ++id) {
    EXPECT_EQ(Next(*server_completions_).id, id);
    EXPECT_TRUE(HasPattern(server_local_->data() + id * 64, 64, static_cast<uint32_t>(id)));
    EXPECT_EQ(Next().id, id);
  }
  EXPECT_EQ(completions_->Wait({&completion, 1}, client_->clock().After(20'000)), 0u)
      << "completions come in posting order";
  PostReceives(*server_pair_, *server_local_, 1, 64);
  EXPECT_TRUE(HasPattern(server_local_->data() + 64, 64, 1));
  EXPECT_TRUE(Next(*server_completions_).ok());
  EXPECT_EQ(Next().id, 2u);
  EXPECT_EQ(Next().id, 3u);
}

TEST_F(MessageConformance, MoreThanAnyBufferHoldsWaitsForReceives) {
  constexpr uint64_t kCount = 32;  // 2 MiB
  std::vector<WorkRequest> batch;
  for (uint64_t id = 0; id < kCount; ++id) {
    FillPattern(local_->data() + id * kMaxSendBytes, kMaxSendBytes, static_cast<uint32_t>(id));
    batch.push_back(WorkRequest::Send(id, local_->Slice(id * kMaxSendBytes, kMaxSendBytes)));
  }
  ASSERT_OK(client_pair_->Post(batch));
  const auto receiver = server_->StartThread("receiver", [&] {
    for (uint64_t id = 0; id < kCount; ++id) {
      const ReceiveRequest receive{.id = id, .into = server_local_->Slice(0, kMaxSendBytes)};
      ASSERT_OK(server_pair_->PostReceive({&receive, 1}));
      ASSERT_EQ(Next(*server_completions_).id, id);
      ASSERT_TRUE(HasPattern(server_local_->data(), kMaxSendBytes, static_cast<uint32_t>(id)));
    }
  });
  for (uint64_t id = 0; id < kCount; ++id) ASSERT_EQ(Next().id, id);
}

TEST_F(MessageConformance, InlineSendsAreFreeAtOnceEvenWithoutReceives) {
  for (uint64_t id = 0; id < 64; ++id) {
    std::fill_n(local_->data(), 128, static_cast<std::byte>(id));
    WorkRequest send = WorkRequest::Send(id, local_->Slice(0, 128));
    send.inlined = true;
    ASSERT_OK(client_pair_->Post({&send, 1}));
    std::fill_n(local_->data(), 128, std::byte{0xff});
  }
  PostReceives(*server_pair_, *server_local_, 64, 128);
  for (uint64_t id = 0; id < 64; ++id) {
    ASSERT_EQ(Next(*server_completions_).id, id);
    EXPECT_EQ(server_local_->data()[id * 128 + 127], static_cast<std::byte>(id));
    EXPECT_TRUE(Next().ok());
  }
}

TEST_F(MessageConformance, TooLongAMessageFailsBothEnds) {
  PostReceives(*server_pair_, *server_local_, 2, 16);
  std::fill_n(local_->data(), 64, std::byte{0x11});
  EXPECT_EQ(Run(*client_pair_, WorkRequest::Send(1, local_->Slice(0, 17))).status,
            CompletionStatus::kRemoteInvalidRequest);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Next(*server_completions_).ok());
  EXPECT_EQ(client_pair_->state(), QueuePairState::kError);
  EXPECT_EQ(server_pair_->state(), QueuePairState::kError);
  EXPECT_EQ(server_local_->data()[0], std::byte{0});
  EXPECT_EQ(Run(*client_pair_, WorkRequest::Write(2, local_->Slice(0, 8), At(0))).status,
            CompletionStatus::kFlushed);
  EXPECT_EQ(RemoteWord(0), 0u);
  const ReceiveRequest late{.id = 9, .into = server_local_->Slice(0, 64)};
  ASSERT_OK(server_pair_->PostReceive({&late, 1}));
  EXPECT_EQ(Next(*server_completions_).status, CompletionStatus::kFlushed);
}

TEST_F(MessageConformance, TooLongAMessageFailsAlsoWithALateReceive) {
  const WorkRequest send = WorkRequest::Send(1, local_->Slice(0, 17));
  ASSERT_OK(client_pair_->Post({&send, 1}));
  PostReceives(*server_pair_, *server_local_, 1, 16);
  EXPECT_FALSE(Next(*server_completions_).ok());
  EXPECT_EQ(Next().status, CompletionStatus::kRemoteInvalidRequest);
}

TEST_F(MessageConformance, WriteWithImmediateAnnouncesWhatItWrote) {
  PostReceives(*server_pair_, *server_local_, 100, 0);
  const auto writer = client_->StartThread("writer", [&] {
    for (uint32_t i = 0; i < 100; ++i) {
      const uint64_t number = i + 1;
      std::memcpy(local_->data(), &number, 8);
      const auto write = WorkRequest::WriteWithImmediate(i, local_->Slice(0, 8), At(i * 8), 1000 + i);
      ASSERT_OK(client_pair_->Post({&write, 1}));
      ASSERT_TRUE(Next().ok());
    }
  });
  for (uint32_t i = 0; i < 100; ++i) {
    const Completion received = Next(*server_completions_);
    ASSERT_TRUE(received.ok());
    EXPECT_EQ(received.opcode, Opcode::kReceive);
    EXPECT_TRUE(received.has_immediate);
    EXPECT_EQ(received.immediate, 1000 + i);
    uint64_t number;
    std::memcpy(&number, region_->data() + i * 8, 8);
    EXPECT_EQ(number, i + 1) << "the data is there when its announcement is";
  }
}

TEST_F(MessageConformance, AFailedWriteWithImmediateAnnouncesNothing) {
  PostReceives(*server_pair_, *server_local_, 1, 8);
  EXPECT_EQ(
      Run(*client_pair_, WorkRequest::WriteWithImmediate(1, local_->Slice(0, 8), At(kRegionBytes), 7)).status,
      CompletionStatus::kRemoteAccessError);
  const Completion received = Next(*server_completions_);
  EXPECT_FALSE(received.ok()) << "the connection is over, and that is all the receiver learns";
  EXPECT_FALSE(received.has_immediate);
}

TEST_F(MessageConformance, ReceivesHaveABound) {
  std::unique_ptr<QueuePair> client, server;
  Pair(*completions_, {.send_depth = 8, .receive_depth = 4}, &client, &server);
  ASSERT_TRUE(client && server);
  PostReceives(*client, *local_, 4, 64);
  const ReceiveRequest more{.id = 5, .into = local_->Slice(0, 64)};
  EXPECT_TRUE(absl::IsResourceExhausted(client->PostReceive({&more, 1})));
  const WorkRequest send = WorkRequest::Send(1, server_local_->Slice(0, 8));
  ASSERT_OK(server->Post({&send, 1}));
  EXPECT_TRUE(Next().ok());
  ASSERT_OK(client->PostReceive({&more, 1}));
  EXPECT_TRUE(absl::IsResourceExhausted(client->PostReceive({&more, 1})));
}

TEST_F(MessageConformance, BothSidesReachEachOthersRegions) {
  FillPattern(local_->data(), 64, 3);
  const auto shared = Allocate(*client_, 4096, Access::kRead);
  FillPattern(shared->data(), 64, 4);
  const auto read = WorkRequest::Read(1, server_local_->Slice(0, 64), {shared->rkey(), 0});
  ASSERT_OK(server_pair_->Post({&read, 1}));
  EXPECT_TRUE(Next(*server_completions_).ok());
  EXPECT_TRUE(HasPattern(server_local_->data(), 64, 4));
}

TEST_F(MessageConformance, ClosingEndsWhatTheOtherSideWaitsFor) {
  PostReceives(*client_pair_, *local_, 2, 64);
  const WorkRequest send = WorkRequest::Send(7, local_->Slice(0, 8), Signal::kUnsignaled);
  ASSERT_OK(client_pair_->Post({&send, 1}));
  server_pair_.reset();
  for (int i = 0; i < 3; ++i) {
    const Completion completion = Next();
    EXPECT_FALSE(completion.ok());
    if (completion.opcode == Opcode::kSend) {
      EXPECT_EQ(completion.status, CompletionStatus::kPeerLost);
    }
  }
  EXPECT_EQ(client_pair_->state(), QueuePairState::kError);
  EXPECT_EQ(Run(*client_pair_, WorkRequest::Read(8, local_->Slice(0, 8), At(0))).status,
            CompletionStatus::kFlushed);
}

TEST_F(CompletionConformance, WaitReturnsAtItsDeadline) {
  Completion completion;
  const Deadline deadline = client_->clock().After(30'000);
  EXPECT_EQ(completions_->Wait({&completion, 1}, deadline), 0u);
  EXPECT_GE(client_->clock().NowNs(), deadline.ns);
  EXPECT_LT(client_->clock().NowNs(), deadline.ns + 1'000 * kTimeoutUs);
  EXPECT_EQ(completions_->Wait({&completion, 1}, {0}), 0u) << "a deadline in the past only polls";
  const WorkRequest read = WorkRequest::Read(1, local_->Slice(0, 8), At(0));
  ASSERT_OK(queue_pair_->Post({&read, 1}));
  EXPECT_EQ(Next().id, 1u);
}

TEST_F(CompletionConformance, WakeEndsTheCurrentOrTheNextWait) {
  Completion completion;
  completions_->Wake();
  EXPECT_EQ(completions_->Wait({&completion, 1}, Deadline::Never()), 0u);
  const auto event = client_->CreateEvent();
  const auto waker = client_->StartThread("waker", [&] {
    event->Wait(Soon());
    completions_->Wake();
  });
  event->Set();
  EXPECT_EQ(completions_->Wait({&completion, 1}, Deadline::Never()), 0u);
  EXPECT_EQ(completions_->Wait({&completion, 1}, client_->clock().After(1000)), 0u);
}

TEST_F(CompletionConformance, CompletionQueuesAreNotOvercommitted) {
  const auto queue = NewQueue(100);
  auto first = ConnectTo(listener_->address(), *queue, {.send_depth = 40, .receive_depth = 20});
  ASSERT_NE(first, nullptr);
  const auto connect = [&](uint32_t sends, uint32_t receives) {
    return client_->Connect(listener_->address(), *queue, {.send_depth = sends, .receive_depth = receives},
                            Soon());
  };
  EXPECT_TRUE(absl::IsResourceExhausted(connect(40, 1).status()));
  {
    const auto second = connect(39, 1);
    EXPECT_TRUE(second.ok()) << second.status().ToString();
  }
  // A queue pair takes its completions with it, and its room comes back.
  std::vector<WorkRequest> batch(40, WorkRequest::Read(1, local_->Slice(0, 8), At(0)));
  ASSERT_OK(first->Post(batch));
  first.reset();
  const auto third = connect(80, 20);
  ASSERT_OK(third.status());
  std::vector<WorkRequest> full(80, WorkRequest::Read(2, local_->Slice(0, 8), At(0)));
  ASSERT_OK((*third)->Post(full));
  for (int i = 0; i < 80; ++i) ASSERT_EQ(Next(*queue).id, 2u);
}

TEST_F(CompletionConformance, EventsAndThreads) {
  const auto event = client_->CreateEvent();
  EXPECT_FALSE(event->IsSet());
  EXPECT_FALSE(event->Wait(client_->clock().After(2000)));
  bool ran = false;
  {
    const auto thread = client_->StartThread("a name that is too long", [&] {
      ran = true;
      event->Set();
    });
    EXPECT_TRUE(event->Wait(Soon()));
  }
  EXPECT_TRUE(ran && event->IsSet());
  EXPECT_TRUE(event->Wait({0}));
}

}  // namespace
}  // namespace nam::fabric::conformance
