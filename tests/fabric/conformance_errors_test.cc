#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "tests/fabric/fixture.h"

/// Operations that must fail, change nothing, and take their queue pair with them.
namespace nam::fabric::conformance {
namespace {

constexpr Opcode kOneSided[] = {Opcode::kRead, Opcode::kWrite, Opcode::kWriteWithImmediate,
                                Opcode::kCompareAndSwap, Opcode::kFetchAdd};

class ErrorConformance : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (local_ != nullptr) std::fill_n(local_->data(), 4096, std::byte{0xab});
  }

  WorkRequest Make(Opcode opcode, RemoteAddress at, Signal signal = Signal::kSignaled) {
    const LocalBuffer local = local_->Slice(0, 8);
    switch (opcode) {
      case Opcode::kRead:
        return WorkRequest::Read(1, local, at, signal);
      case Opcode::kWrite:
        return WorkRequest::Write(1, local, at, signal);
      case Opcode::kWriteWithImmediate:
        return WorkRequest::WriteWithImmediate(1, local, at, 7, signal);
      case Opcode::kCompareAndSwap:
        return WorkRequest::CompareAndSwap(1, local, at, 0, 9, signal);
      default:
        return WorkRequest::FetchAdd(1, local, at, 9, signal);
    }
  }

  /// On a queue pair of its own: fails with `expected`, then everything is flushed.
  void ExpectFailure(const WorkRequest& request, CompletionStatus expected) {
    const auto pair = NewQueuePair({.send_depth = 8, .receive_depth = 0});
    ASSERT_NE(pair, nullptr);
    const Completion failed = Run(*pair, request);
    EXPECT_EQ(CompletionStatusName(failed.status), CompletionStatusName(expected));
    EXPECT_FALSE(CompletionError(failed, *pair).ok());
    EXPECT_EQ(pair->state(), QueuePairState::kError);
    EXPECT_TRUE(
        std::all_of(local_->data(), local_->data() + 8, [](std::byte b) { return b == std::byte{0xab}; }));
    const auto later = WorkRequest::Write(2, local_->Slice(64, 8), At(1024), Signal::kUnsignaled);
    EXPECT_EQ(Run(*pair, later).status, CompletionStatus::kFlushed);
    EXPECT_EQ(RemoteWord(1024), 0u) << "a flushed write must not take place";
  }
};

TEST_F(ErrorConformance, Bounds) {
  constexpr uint64_t kOffsets[] = {kRegionBytes, kRegionBytes + 4096, uint64_t{1} << 47, ~uint64_t{0} - 7};
  for (const Opcode opcode : kOneSided) {
    for (const uint64_t offset : kOffsets) {
      SCOPED_TRACE(testing::Message() << std::string(OpcodeName(opcode)) << " at " << offset);
      ExpectFailure(Make(opcode, At(offset)), CompletionStatus::kRemoteAccessError);
    }
  }
  for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
    ExpectFailure(Make(opcode, At(kRegionBytes - 7)), CompletionStatus::kRemoteAccessError);
  }
  EXPECT_EQ(RemoteWord(kRegionBytes - 8), 0u) << "not even the part inside is written";
}

TEST_F(ErrorConformance, Rights) {
  const auto wanted = [](Opcode opcode) {
    if (opcode == Opcode::kRead) return Access::kRead;
    return opcode == Opcode::kWrite || opcode == Opcode::kWriteWithImmediate ? Access::kWrite
                                                                             : Access::kAtomic;
  };
  for (const Access access : {Access::kNone, Access::kRead, Access::kWrite, Access::kAtomic,
                              Access::kRead | Access::kWrite, Access::kRead | Access::kAtomic}) {
    const auto region = Allocate(*server_, 4096, access);
    for (const Opcode opcode : kOneSided) {
      SCOPED_TRACE(testing::Message()
                   << std::string(OpcodeName(opcode)) << " with rights " << static_cast<int>(access));
      if (!Allows(access, wanted(opcode))) {
        ExpectFailure(Make(opcode, {region->rkey(), 0}), CompletionStatus::kRemoteAccessError);
        EXPECT_TRUE(
            std::all_of(region->data(), region->data() + 4096, [](std::byte b) { return b == std::byte{}; }));
      }
    }
    for (const Opcode opcode : kOneSided) {
      if (opcode == Opcode::kWriteWithImmediate || !Allows(access, wanted(opcode))) continue;
      EXPECT_TRUE(Run(Make(opcode, {region->rkey(), 8})).ok()) << std::string(OpcodeName(opcode));
      std::fill_n(local_->data(), 8, std::byte{0xab});
    }
  }
}

TEST_F(ErrorConformance, Keys) {
  for (const Opcode opcode : kOneSided) {
    SCOPED_TRACE(std::string(OpcodeName(opcode)));
    ExpectFailure(Make(opcode, {RemoteKey{0}, 0}), CompletionStatus::kRemoteAccessError);
    ExpectFailure(Make(opcode, {RemoteKey{~0u}, 0}), CompletionStatus::kRemoteAccessError);
    ExpectFailure(Make(opcode, {RemoteKey{region_->rkey().value ^ 0x40000000}, 0}),
                  CompletionStatus::kRemoteAccessError);
  }
}

TEST_F(ErrorConformance, LocalBuffers) {
  for (const Opcode opcode : kOneSided) {
    SCOPED_TRACE(std::string(OpcodeName(opcode)));
    WorkRequest request = Make(opcode, At(0));
    request.local.lkey = {0};
    ExpectFailure(request, CompletionStatus::kLocalError);
    request.local.lkey = {local_->lkey().value ^ 0x40000000};
    ExpectFailure(request, CompletionStatus::kLocalError);
    request = Make(opcode, At(0));
    request.local.data = local_->data() + kRegionBytes - 7;
    ExpectFailure(request, CompletionStatus::kLocalError);
    request.local.data = local_->data() - 8;
    ExpectFailure(request, CompletionStatus::kLocalError);
  }
  EXPECT_EQ(RemoteWord(0), 0u);
}

TEST_F(ErrorConformance, UnalignedAtomics) {
  for (const uint64_t offset : {1, 4, 60}) {
    ExpectFailure(Make(Opcode::kFetchAdd, At(offset)), CompletionStatus::kRemoteInvalidRequest);
    ExpectFailure(Make(Opcode::kCompareAndSwap, At(offset)), CompletionStatus::kRemoteInvalidRequest);
  }
  EXPECT_EQ(RemoteWord(0), 0u);
}

/// Requests in flight take effect before Disconnect returns, or never.
TEST_F(ErrorConformance, NothingTakesEffectAfterDisconnect) {
  constexpr uint32_t kBytes = 64 << 10;
  constexpr uint64_t kWrites = 48;
  const LocalBuffer into = local_->Slice(kRegionBytes - kBytes, kBytes);
  for (uint64_t round = 1; round <= 8; ++round) {
    SCOPED_TRACE(round);
    const auto queue = NewQueue();
    const auto pair = ConnectTo(listener_->address(), *queue, {.send_depth = kWrites, .receive_depth = 0});
    ASSERT_NE(pair, nullptr);
    std::fill_n(local_->data(), kBytes, static_cast<std::byte>(round));
    std::vector<WorkRequest> writes;
    for (uint64_t i = 0; i < kWrites; ++i) {
      writes.push_back(WorkRequest::Write(i, local_->Slice(0, kBytes), At(i * kBytes), Signal::kUnsignaled));
    }
    ASSERT_OK(pair->Post(writes));
    ASSERT_OK(pair->Disconnect(Soon()));
    EXPECT_EQ(pair->state(), QueuePairState::kError);
    ASSERT_OK(pair->Disconnect(Soon()));  // asked again
    // Last bytes first: a late write changes them before they are checked again.
    std::vector<std::byte> there(kWrites * kBytes);
    for (uint64_t i = kWrites; i-- > 0;) {
      ASSERT_TRUE(Run(WorkRequest::Read(1, into, At(i * kBytes))).ok());
      std::copy_n(into.data, kBytes, there.data() + i * kBytes);
    }
    for (uint64_t i = 0; i < kWrites; ++i) {
      ASSERT_TRUE(Run(WorkRequest::Read(1, into, At(i * kBytes))).ok());
      EXPECT_TRUE(std::equal(into.data, into.data + kBytes, there.data() + i * kBytes)) << i;
    }
  }
}

/// Also once a request was refused.
TEST_F(ErrorConformance, DisconnectsWhatHasFailed) {
  const auto pair = NewQueuePair({.send_depth = 8, .receive_depth = 0});
  ASSERT_NE(pair, nullptr);
  EXPECT_FALSE(Run(*pair, Make(Opcode::kWrite, At(kRegionBytes))).ok());
  ASSERT_OK(pair->Disconnect(Soon()));
}

TEST_F(ErrorConformance, ErrorsCompleteUnsignaledAndFlushWhatFollows) {
  const auto pair = NewQueuePair({.send_depth = 8, .receive_depth = 0});
  std::array batch = {Make(Opcode::kWrite, At(0), Signal::kUnsignaled), Make(Opcode::kWrite, At(8)),
                      Make(Opcode::kWrite, At(kRegionBytes), Signal::kUnsignaled),
                      Make(Opcode::kWrite, At(16), Signal::kUnsignaled), Make(Opcode::kRead, At(0))};
  batch.back().local = local_->Slice(128, 8);
  for (uint64_t i = 0; i < batch.size(); ++i) batch[i].id = i;
  ASSERT_OK(pair->Post(batch));
  constexpr CompletionStatus kExpected[] = {CompletionStatus::kOk, CompletionStatus::kRemoteAccessError,
                                            CompletionStatus::kFlushed, CompletionStatus::kFlushed};
  for (uint64_t i = 0; i < 4; ++i) {
    const Completion completion = Next();
    EXPECT_EQ(completion.id, i + 1);
    EXPECT_EQ(completion.status, kExpected[i]);
  }
  EXPECT_EQ(RemoteWord(8), 0xabababababababab);
  EXPECT_EQ(RemoteWord(16), 0u);
  // The places come back, so that flushing never runs out of them.
  for (int round = 0; round < 3; ++round) {
    std::vector<WorkRequest> full(8, Make(Opcode::kWrite, At(16), Signal::kUnsignaled));
    ASSERT_OK(pair->Post(full));
    for (int i = 0; i < 8; ++i) EXPECT_EQ(Next().status, CompletionStatus::kFlushed);
  }
}

TEST_F(ErrorConformance, OtherQueuePairsGoOn) {
  ExpectFailure(Make(Opcode::kRead, At(kRegionBytes)), CompletionStatus::kRemoteAccessError);
  EXPECT_EQ(queue_pair_->state(), QueuePairState::kReady);
  EXPECT_TRUE(Run(Make(Opcode::kRead, At(0))).ok());
}

TEST_F(ErrorConformance, DeregisteredRegionsAreRefusedAndTheirKeysNeverReturn) {
  std::vector<RemoteKey> former;
  for (int i = 0; i < 5; ++i) {
    auto region = Allocate(*server_, 4096);
    for (const RemoteKey key : former) EXPECT_FALSE(key == region->rkey());
    former.push_back(region->rkey());
    ASSERT_TRUE(Run(Make(Opcode::kWrite, {region->rkey(), 0})).ok());
  }
  const auto successor = Allocate(*server_, 4096);
  for (const Opcode opcode : kOneSided) {
    SCOPED_TRACE(std::string(OpcodeName(opcode)));
    ExpectFailure(Make(opcode, {former.back(), 0}), CompletionStatus::kRemoteAccessError);
  }
  // Also on a queue pair that used the region before.
  EXPECT_EQ(Run(Make(Opcode::kRead, {former.front(), 0})).status, CompletionStatus::kRemoteAccessError);
  EXPECT_EQ(successor->data()[0], std::byte{0});
}

TEST_F(ErrorConformance, LocalRegionsStopBeingLocalWhenDestroyed) {
  auto buffer = Allocate(*client_, 4096, Access::kNone);
  WorkRequest request = WorkRequest::Write(1, buffer->Slice(0, 8), At(0));
  ASSERT_TRUE(Run(request).ok());
  buffer.reset();
  ExpectFailure(request, CompletionStatus::kLocalError);
}

TEST_F(ErrorConformance, AllocationsThatCannotBeAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Allocate(0, {}).status()));
  for (const size_t bytes : {size_t{1} << 45, size_t{1} << 62, ~size_t{0}}) {
    const absl::Status refused = client_->Allocate(bytes, {.huge_pages = false}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused.ToString();
    EXPECT_GT(refused.message().size(), 40u) << "says what is short and how to raise it";
  }
  const auto populated = client_->Allocate(3 << 20, {.populate = true});
  ASSERT_OK(populated.status());
  EXPECT_EQ((*populated)->bytes(), size_t{3} << 20);
  EXPECT_EQ((*populated)->data()[(3 << 20) - 1], std::byte{0});
}

}  // namespace
}  // namespace nam::fabric::conformance
