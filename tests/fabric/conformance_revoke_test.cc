#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "tests/fabric/fixture.h"

/// The end of a region's key.
namespace nam::fabric::conformance {
namespace {

constexpr Opcode kChanging[] = {Opcode::kWrite, Opcode::kCompareAndSwap, Opcode::kFetchAdd};

class RevokeConformance : public Conformance {
 protected:
  WorkRequest Make(Opcode opcode, RemoteAddress at) {
    const LocalBuffer local = local_->Slice(0, 8);
    if (opcode == Opcode::kRead) return WorkRequest::Read(1, local, at);
    if (opcode == Opcode::kWrite) return WorkRequest::Write(1, local, at);
    if (opcode == Opcode::kCompareAndSwap) return WorkRequest::CompareAndSwap(1, local, at, 0, 9);
    return WorkRequest::FetchAdd(1, local, at, 9);
  }
  void ExpectOk(const WorkRequest& request) { EXPECT_EQ(Run(request).status, CompletionStatus::kOk); }
  /// On a queue pair of its own, which it takes with it.
  void ExpectRefused(const WorkRequest& request) {
    const auto pair = NewQueuePair({.send_depth = 8, .receive_depth = 0});
    ASSERT_NE(pair, nullptr);
    EXPECT_EQ(CompletionStatusName(Run(*pair, request).status),
              CompletionStatusName(CompletionStatus::kRemoteAccessError));
  }
  /// Asks until the answer is yes.
  bool RevokeInTime(MemoryRegion& key) {
    const Deadline deadline = Soon();
    while (!key.Revoke()) {
      if (server_->clock().Passed(deadline)) return false;
      RemoteWord(0);  // lets time pass
    }
    return true;
  }
};

TEST_F(RevokeConformance, RevokingOneKeyLeavesTheOthers) {
  auto revoked = Allocate(*server_, 8192);
  const auto other = Allocate(*server_, 8192);
  ExpectOk(Make(Opcode::kWrite, {revoked->rkey(), 0}));  // known to the queue pair
  ExpectOk(Make(Opcode::kWrite, {other->rkey(), 0}));
  EXPECT_TRUE(RevokeInTime(*revoked));
  EXPECT_TRUE(revoked->Revoke()) << "once more does no harm";
  for (const Opcode opcode : kChanging) ExpectRefused(Make(opcode, {revoked->rkey(), 0}));
  ExpectRefused(Make(Opcode::kRead, {revoked->rkey(), 0}));
  for (const Opcode opcode : kChanging) {
    ExpectOk(Make(opcode, {other->rkey(), 0}));
    ExpectOk(Make(opcode, At(4096)));
  }
  const RemoteKey former = revoked->rkey();
  revoked.reset();
  ExpectRefused(Make(Opcode::kRead, {former, 0}));
  ExpectOk(Make(Opcode::kRead, {other->rkey(), 8}));
  // The queue pair that used the key before has noticed too.
  EXPECT_EQ(Run(Make(Opcode::kWrite, {former, 0})).status, CompletionStatus::kRemoteAccessError);
}

TEST_F(RevokeConformance, KeysNeverReturn) {
  std::set<uint32_t> seen = {region_->rkey().value};
  for (int i = 0; i < 300; ++i) {
    const auto one = Allocate(*server_, 4096, Access::kRead);
    const auto other = Allocate(*server_, 4096, Access::kWrite);
    ASSERT_TRUE(one && other);
    EXPECT_TRUE(seen.insert(one->rkey().value).second);
    EXPECT_TRUE(seen.insert(other->rkey().value).second);
    EXPECT_TRUE(other->Revoke());
  }
}

TEST_F(RevokeConformance, EveryThreadsRevokeWaitsForTheKeysEnd) {
  const auto part = Allocate(*server_, 4096);
  ExpectOk(Make(Opcode::kWrite, {part->rkey(), 0}));
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 0; i < 4; ++i) {
      threads.push_back(server_->StartThread("revoke", [&part] { EXPECT_TRUE(part->Revoke()); }));
    }
  }
  ExpectRefused(Make(Opcode::kWrite, {part->rkey(), 0}));
}

/// Posts operations under one key until one fails, then takes the remaining completions. On its own thread
/// with everything that belongs to it.
class Poster {
 public:
  static constexpr uint32_t kDepth = 128, kSlotBytes = 16 << 10;
  static constexpr size_t kPartBytes = 16 * kSlotBytes;

  Poster(Fabric& fabric, std::string address, Opcode opcode, RemoteKey rkey)
      : fabric_(fabric),
        address_(std::move(address)),
        opcode_(opcode),
        rkey_(rkey),
        under_way_(fabric.CreateEvent()),
        done_(fabric.CreateEvent()),
        thread_(fabric.StartThread("poster", [this] {
          Work();
          under_way_->Set();
          done_->Set();
        })) {}

  bool AwaitUnderWay(Deadline deadline) { return under_way_->Wait(deadline); }
  bool done() const { return done_->IsSet(); }
  /// After the thread's end.
  void ExpectOneRefused() {
    thread_.reset();
    EXPECT_GT(succeeded_, 0u);
    // On a lossy network the connection may be lost before the refusal.
    if (LossyNetwork() && refused_ == 0) return;
    EXPECT_EQ(refused_, 1u);
    EXPECT_EQ(out_of_place_, 0u) << "all is well before the refusal, everything after it is flushed";
  }

 private:
  void Work() {
    local_ =
        Take(fabric_.Allocate(size_t{kDepth} * kSlotBytes, {.access = Access::kNone, .huge_pages = false}));
    completions_ = Take(fabric_.CreateCompletionQueue(2 * kDepth));
    if (!local_ || !completions_) return;
    pair_ = Take(fabric_.Connect(address_, *completions_, {.send_depth = kDepth, .receive_depth = 0},
                                 fabric_.clock().After(kTimeoutUs)));
    if (!pair_) return;
    for (uint32_t slot = 0; slot < kDepth; ++slot) ASSERT_OK(Post(slot));
    std::array<Completion, 32> some;
    for (uint32_t in_flight = kDepth; in_flight > 0;) {
      const size_t n = completions_->Wait(some, fabric_.clock().After(kTimeoutUs));
      ASSERT_GT(n, 0u) << "no completion in time";
      for (size_t i = 0; i < n; ++i) {
        Note(some[i]);
        if (refused_ == 0 && out_of_place_ == 0) {
          ASSERT_OK(Post(static_cast<uint32_t>(some[i].id)));
        } else {
          --in_flight;
        }
      }
      if (succeeded_ > 3 * kDepth) under_way_->Set();
    }
  }
  absl::Status Post(uint32_t slot) {
    const RemoteAddress at{rkey_, uint64_t{posted_ % 16} * kSlotBytes};
    WorkRequest request{.id = slot,
                        .opcode = opcode_,
                        .local = local_->Slice(slot * kSlotBytes, kSlotBytes),
                        .remote = at,
                        .swap_or_add = 1};
    if (opcode_ == Opcode::kWrite) std::memset(request.local.data, static_cast<int>(posted_), kSlotBytes);
    if (opcode_ == Opcode::kFetchAdd) request.local.bytes = 8;
    ++posted_;
    return pair_->Post({&request, 1});
  }
  void Note(const Completion& completion) {
    const CompletionStatus expected = refused_ == 0 ? CompletionStatus::kOk : CompletionStatus::kFlushed;
    if (refused_ == 0 && completion.status == CompletionStatus::kRemoteAccessError) {
      ++refused_;
    } else if (completion.status != expected) {
      ++out_of_place_;
    } else if (completion.ok()) {
      ++succeeded_;
    }
  }

  Fabric& fabric_;
  const std::string address_;
  const Opcode opcode_;
  const RemoteKey rkey_;
  std::unique_ptr<MemoryRegion> local_;
  std::unique_ptr<CompletionQueue> completions_;
  std::unique_ptr<QueuePair> pair_;
  uint64_t posted_ = 0, succeeded_ = 0, refused_ = 0, out_of_place_ = 0;
  const std::unique_ptr<Event> under_way_;
  const std::unique_ptr<Event> done_;
  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

class RevocationConformance : public RevokeConformance, public testing::WithParamInterface<Opcode> {
 protected:
  /// As its owner sees it.
  static std::vector<std::byte> Memory(const MemoryRegion& region) {
    return {region.data(), region.data() + region.bytes()};
  }
};

TEST_P(RevocationConformance, WhatWasPostedBeforeChangesNothingAfterIt) {
  const auto part = Allocate(*server_, Poster::kPartBytes);
  std::vector<std::unique_ptr<Poster>> posters;
  for (int i = 0; i < 2; ++i) {
    posters.push_back(std::make_unique<Poster>(*client_, listener_->address(), GetParam(), part->rkey()));
  }
  for (const auto& poster : posters) ASSERT_TRUE(poster->AwaitUnderWay(Soon()));
  ASSERT_TRUE(RevokeInTime(*part));
  const std::vector<std::byte> at_once = Memory(*part);
  while (!posters[0]->done() || !posters[1]->done()) {
    RemoteWord(0);  // lets time pass
    ASSERT_EQ(Memory(*part), at_once);
  }
  for (const auto& poster : posters) poster->ExpectOneRefused();
  EXPECT_EQ(Memory(*part), at_once) << "it is its owner's alone";
}

TEST_P(RevocationConformance, KeysAndMemoryMayGoUnderOperations) {
  auto region = Allocate(*server_, Poster::kPartBytes);
  Poster poster(*client_, listener_->address(), GetParam(), region->rkey());
  ASSERT_TRUE(poster.AwaitUnderWay(Soon()));
  region.reset();
  poster.ExpectOneRefused();
}

INSTANTIATE_TEST_SUITE_P(Opcodes, RevocationConformance,
                         testing::Values(Opcode::kRead, Opcode::kWrite, Opcode::kFetchAdd),
                         [](const auto& info) { return std::string(OpcodeName(info.param)); });

}  // namespace
}  // namespace nam::fabric::conformance
