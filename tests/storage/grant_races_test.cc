#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "fabric/grants.h"
#include "storage/scratch.h"
#include "storage/verb_batch.h"
#include "tests/storage/chains.h"

/// The moment when a process reports memory closed: the smallest races, in a simulated world.
namespace nam::storage {
namespace {

constexpr AllocationId kAllocation(5);
constexpr MemoryServerId kServer(1);
constexpr uint64_t kOffset = 64;

class GrantRaces : public ::testing::Test {
 protected:
  GrantRaces() {
    at_ = *channel_->Resolve(Place(), 8);
    at_.grant = grant_.get();
  }
  static RemotePtr<void> Place() { return {kServer, 4096 + kOffset}; }
  uint64_t Remote() {
    uint64_t word = 0;
    std::memcpy(&word, servers_.at(Place()), sizeof(word));
    return word;
  }
  void Write(uint64_t value) {
    std::byte* const word = batch_->Scratch(8);
    std::memcpy(word, &value, sizeof(value));
    batch_->Write(word, 8, at_);
  }
  void End() { servers_.grants().End({&kAllocation, 1}); }
  bool Closed() { return !servers_.grants().Close().empty(); }
  void Sleep(int64_t us) { client_->clock().SleepUntil(client_->clock().After(us)); }
  /// Requests that have arrived at the memory server take effect later.
  void StopServer() { SimulatedWorld().Pause(server_process_, /*card_too=*/true); }
  void ServerGoesOn() { SimulatedWorld().Resume(server_process_); }
  /// Posted requests of the process leave its host later.
  void StopCard() { SimulatedWorld().Pause(process_, /*card_too=*/true); }
  void AdvanceSlice() { SimulatedWorld().Resume(process_); }

  TwoServers servers_{fabric::Kind::kSim};
  std::unique_ptr<fabric::Fabric> client_ = OpenFabric(fabric::Kind::kSim);
  const fabric::sim::ProcessId process_ = SimulatedWorld().ProcessOf(*client_);
  const fabric::sim::ProcessId server_process_ = SimulatedWorld().ProcessOf(servers_.fabric(1));
  std::unique_ptr<Channel> channel_ = *Channel::Open(*client_, servers_, {.buffer_bytes = 64 << 10});
  std::unique_ptr<VerbBatch> batch_ = std::make_unique<VerbBatch>(*channel_);
  const std::shared_ptr<fabric::Grant> grant_ =
      fabric::Grants::Opening(servers_.grants(), kServer).Add(kAllocation, 0);
  Channel::Target at_;
};

TEST_F(GrantRaces, AWriteThatHasNotLeftKeepsItsMemoryOpen) {
  StopCard();
  Write(7);
  ASSERT_TRUE(batch_->Post().ok());
  End();
  EXPECT_FALSE(Closed());
  Sleep(1'000);
  EXPECT_FALSE(Closed());
  EXPECT_EQ(Remote(), 0u);
  AdvanceSlice();
  Sleep(1'000);
  EXPECT_EQ(Remote(), 7u) << "why it was not closed";
  EXPECT_TRUE(Closed()) << "though its session does nothing";
  EXPECT_TRUE(batch_->idle());
  ASSERT_TRUE(batch_->Execute().ok());
}

TEST_F(GrantRaces, NothingIsPostedBehindTheEnd) {
  End();
  ASSERT_TRUE(Closed());
  Write(7);
  EXPECT_TRUE(absl::IsPermissionDenied(batch_->Execute()));
  EXPECT_TRUE(channel_->broken());
  Sleep(1'000);
  EXPECT_EQ(Remote(), 0u);
}

TEST_F(GrantRaces, ReadsAndAtomicsAreRefusedToo) {
  End();
  std::byte* const into = batch_->Scratch(8);
  batch_->Read(at_, into, 8);
  EXPECT_TRUE(absl::IsPermissionDenied(batch_->Execute()));
  VerbBatch other(*channel_);
  other.FetchAdd(at_, 1, other.Word());
  EXPECT_TRUE(absl::IsPermissionDenied(other.Execute()));
  EXPECT_FALSE(VerbBatch::Current(at_));
  Sleep(1'000);
  EXPECT_EQ(Remote(), 0u);
}

// It has checked, and has not posted yet.
TEST_F(GrantRaces, ARequestThatWasLookedAtBeforeTheEndKeepsItsMemoryOpen) {
  Write(7);
  End();
  EXPECT_FALSE(Closed());
  ASSERT_TRUE(batch_->Execute().ok());
  EXPECT_EQ(Remote(), 7u);
  EXPECT_TRUE(Closed());
}

TEST_F(GrantRaces, WhatADroppedChannelHasPostedKeepsItsMemoryOpen) {
  StopServer();
  Write(7);
  ASSERT_TRUE(batch_->Post().ok());
  Sleep(1'000);
  batch_.reset();
  channel_.reset();
  End();
  EXPECT_FALSE(Closed());
  Sleep(1'000);
  EXPECT_FALSE(Closed());
  ServerGoesOn();
  const Deadline deadline = client_->clock().After(10'000'000);
  while (!Closed() && !client_->clock().Passed(deadline)) Sleep(1'000);
  ASSERT_TRUE(Closed());
  const uint64_t word = Remote();
  Sleep(1'000'000);
  EXPECT_EQ(Remote(), word);
}

TEST_F(GrantRaces, WhatASinkHasPostedKeepsItsMemoryOpen) {
  batch_.reset();
  StopServer();
  {
    ScratchSpace space([] { return std::vector{kServer}; }, 0,
                       [this](MemoryServerId server, uint64_t bytes, const std::atomic<bool>&) {
                         return ScratchSlab{{server, 4096}, bytes, grant_};
                       });
    const std::atomic<bool> cancel = false;
    ScratchWriter writer(space, *channel_, 4096, cancel);
    const std::vector<std::byte> page(4096, std::byte{7});
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(writer.Write(page).ok());
  }
  EXPECT_TRUE(channel_->broken());
  End();
  EXPECT_FALSE(Closed());
  channel_.reset();
  EXPECT_FALSE(Closed());
  ServerGoesOn();
  const Deadline deadline = client_->clock().After(10'000'000);
  while (!Closed() && !client_->clock().Passed(deadline)) Sleep(1'000);
  EXPECT_TRUE(Closed());
}

}  // namespace
}  // namespace nam::storage
