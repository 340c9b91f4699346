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

/// Keys to parts of a region: bounds and rights of their own, and an end of their own.
namespace nam::fabric::conformance {
namespace {

constexpr Opcode kChanging[] = {Opcode::kWrite, Opcode::kCompareAndSwap, Opcode::kFetchAdd};

class SharedKeyConformance : public Conformance {
 protected:
  std::unique_ptr<MemoryRegion> Share(size_t offset, size_t bytes, Access access = Access::kAll) {
    return Take(server_->Share(*region_, offset, bytes, access));
  }
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

TEST_F(SharedKeyConformance, OffsetsCountFromThePartsStart) {
  for (const size_t offset : {size_t{8}, size_t{4096}, 3 * size_t{4096} + 1000, kRegionBytes - 104}) {
    const auto part = Share(offset, 104);
    ASSERT_NE(part, nullptr);
    EXPECT_EQ(part->data(), region_->data() + offset);
    EXPECT_EQ(part->bytes(), 104u);
    EXPECT_FALSE(part->rkey() == region_->rkey());
    FillPattern(local_->data(), 104, static_cast<uint32_t>(offset));
    ExpectOk(WorkRequest::Write(1, local_->Slice(0, 104), {part->rkey(), 0}));
    ExpectOk(WorkRequest::Read(1, local_->Slice(1024, 104), At(offset)));
    EXPECT_TRUE(HasPattern(local_->data() + 1024, 104, static_cast<uint32_t>(offset)));
    ExpectOk(WorkRequest::Read(1, local_->Slice(2048, 50), {part->rkey(), 54}));
    EXPECT_EQ(std::memcmp(local_->data() + 2048, local_->data() + 54, 50), 0);
  }
}

TEST_F(SharedKeyConformance, PartsHaveBoundsOfTheirOwn) {
  constexpr size_t kOffset = 8192 + 8, kBytes = 100;
  const auto part = Share(kOffset, kBytes);
  ASSERT_NE(part, nullptr);
  std::fill_n(local_->data(), 4096, std::byte{0xab});
  for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite, Opcode::kCompareAndSwap, Opcode::kFetchAdd}) {
    for (const uint64_t offset : {uint64_t{96}, uint64_t{104}, uint64_t{4096}, ~uint64_t{0} - 7}) {
      SCOPED_TRACE(testing::Message() << std::string(OpcodeName(opcode)) << " at " << offset);
      ExpectRefused(Make(opcode, {part->rkey(), offset}));
    }
  }
  ExpectRefused(WorkRequest::Write(1, local_->Slice(0, kBytes + 1), {part->rkey(), 0}));
  ExpectOk(WorkRequest::Read(1, local_->Slice(4096, 16384), At(0)));
  EXPECT_TRUE(std::all_of(local_->data() + 4096, local_->data() + 4096 + 16384, [](std::byte b) {
    return b == std::byte{0};
  })) << "what is refused changes nothing";
  ExpectOk(WorkRequest::Write(1, local_->Slice(0, kBytes), {part->rkey(), 0}));
  EXPECT_EQ(RemoteWord(kOffset - 8), 0u);
  EXPECT_EQ(RemoteWord(kOffset + kBytes - 4) >> 32, 0u);
}

TEST_F(SharedKeyConformance, PartsHaveRightsOfTheirOwn) {
  const auto hidden = Allocate(*server_, 8192, Access::kNone);
  ASSERT_NE(hidden, nullptr);
  for (MemoryRegion* region : {region_.get(), hidden.get()}) {
    for (const Access access :
         {Access::kNone, Access::kRead, Access::kWrite, Access::kAtomic, Access::kAll}) {
      const auto part = Take(server_->Share(*region, 4096, 4096, access));
      ASSERT_NE(part, nullptr);
      for (const Opcode opcode :
           {Opcode::kRead, Opcode::kWrite, Opcode::kCompareAndSwap, Opcode::kFetchAdd}) {
        SCOPED_TRACE(testing::Message() << std::string(OpcodeName(opcode)) << " with " << int(access));
        const Access wanted = opcode == Opcode::kRead    ? Access::kRead
                              : opcode == Opcode::kWrite ? Access::kWrite
                                                         : Access::kAtomic;
        if (Allows(access, wanted)) {
          ExpectOk(Make(opcode, {part->rkey(), 64}));
        } else {
          ExpectRefused(Make(opcode, {part->rkey(), 64}));
        }
      }
    }
  }
  ExpectRefused(Make(Opcode::kRead, {hidden->rkey(), 4096}));
}

TEST_F(SharedKeyConformance, PartsThatAreNoneAreRefused) {
  EXPECT_FALSE(server_->Share(*region_, 4, 8, Access::kAll).ok());
  EXPECT_FALSE(server_->Share(*region_, 0, 0, Access::kAll).ok());
  EXPECT_FALSE(server_->Share(*region_, 0, kRegionBytes + 1, Access::kAll).ok());
  EXPECT_FALSE(server_->Share(*region_, kRegionBytes, 8, Access::kAll).ok());
  EXPECT_FALSE(server_->Share(*region_, ~size_t{0} - 7, 16, Access::kAll).ok());
}

TEST_F(SharedKeyConformance, PartsGiveNoMoreThanTheirRegion) {
  const auto read_only = Allocate(*server_, 8192, Access::kRead);
  const auto no_atomics = Allocate(*server_, 8192, Access::kRead | Access::kWrite);
  const auto hidden = Allocate(*server_, 8192, Access::kNone);
  ASSERT_TRUE(read_only && no_atomics && hidden);
  const auto share = [this](MemoryRegion& region, Access access) {
    return server_->Share(region, 0, 4096, access).status();
  };
  for (const Access access :
       {Access::kWrite, Access::kAtomic, Access::kRead | Access::kWrite, Access::kAll}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(share(*read_only, access))) << int(access);
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(share(*no_atomics, Access::kAtomic)));
  EXPECT_TRUE(absl::IsFailedPrecondition(share(*no_atomics, Access::kAll)));
  for (const Access access : {Access::kNone, Access::kRead}) {
    EXPECT_TRUE(share(*read_only, access).ok()) << int(access);
    EXPECT_TRUE(share(*no_atomics, access | Access::kWrite).ok()) << int(access);
    EXPECT_TRUE(share(*hidden, access | Access::kWrite | Access::kAtomic).ok()) << "of private memory all";
  }
}

TEST_F(SharedKeyConformance, AWordIsTheSameThroughEveryKey) {
  const auto one = Share(0, 4096);
  const auto other = Share(64, 64);
  for (uint64_t i = 0; i < 30; i += 3) {
    ExpectOk(WorkRequest::FetchAdd(1, local_->Slice(0, 8), {one->rkey(), 72}, 1));
    EXPECT_EQ(LocalWord(0), i);
    ExpectOk(WorkRequest::FetchAdd(1, local_->Slice(0, 8), {other->rkey(), 8}, 1));
    EXPECT_EQ(LocalWord(0), i + 1);
    ExpectOk(WorkRequest::CompareAndSwap(1, local_->Slice(0, 8), At(72), i + 2, i + 3));
    EXPECT_EQ(LocalWord(0), i + 2);
  }
}

TEST_F(SharedKeyConformance, RevokingOneKeyLeavesTheOthers) {
  auto revoked = Share(4096, 8192);
  const auto other = Share(4096, 8192);
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

TEST_F(SharedKeyConformance, RevokingTheRegionsKeyLeavesItsParts) {
  const auto part = Share(4096, 4096);
  EXPECT_TRUE(RevokeInTime(*region_));
  ExpectRefused(Make(Opcode::kWrite, At(4096)));
  ExpectOk(Make(Opcode::kWrite, {part->rkey(), 0}));
  const auto later = Share(4096, 4096);
  ASSERT_NE(later, nullptr);
  ExpectOk(Make(Opcode::kWrite, {later->rkey(), 0}));
}

TEST_F(SharedKeyConformance, KeysNeverReturn) {
  std::set<uint32_t> seen = {region_->rkey().value};
  for (int i = 0; i < 300; ++i) {
    const auto one = Share(0, 4096, Access::kRead);
    const auto other = Share(8, 8, Access::kWrite);
    ASSERT_TRUE(one && other);
    EXPECT_TRUE(seen.insert(one->rkey().value).second);
    EXPECT_TRUE(seen.insert(other->rkey().value).second);
    EXPECT_TRUE(other->Revoke());
  }
}

TEST_F(SharedKeyConformance, EveryThreadsRevokeWaitsForTheKeysEnd) {
  const auto part = Share(0, 4096);
  ExpectOk(Make(Opcode::kWrite, {part->rkey(), 0}));
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 0; i < 4; ++i) {
      threads.push_back(server_->StartThread("revoke", [&part] { EXPECT_TRUE(part->Revoke()); }));
    }
  }
  ExpectRefused(Make(Opcode::kWrite, {part->rkey(), 0}));
}

/// Posts operations under one key, as many as the queue pair takes, until one fails; then takes what is
/// left. On a thread of its own with everything that belongs to it.
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
    // Where packets are lost the connection may be, before the refusal.
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

class RevocationConformance : public SharedKeyConformance, public testing::WithParamInterface<Opcode> {
 protected:
  std::vector<std::byte> Memory() {
    ExpectOk(WorkRequest::Read(1, local_->Slice(0, Poster::kPartBytes), At(4096)));
    return {local_->data(), local_->data() + Poster::kPartBytes};
  }
};

TEST_P(RevocationConformance, WhatWasPostedBeforeChangesNothingAfterIt) {
  auto part = Share(4096, Poster::kPartBytes);
  std::vector<std::unique_ptr<Poster>> posters;
  for (int i = 0; i < 2; ++i) {
    posters.push_back(std::make_unique<Poster>(*client_, listener_->address(), GetParam(), part->rkey()));
  }
  for (const auto& poster : posters) ASSERT_TRUE(poster->AwaitUnderWay(Soon()));
  ASSERT_TRUE(RevokeInTime(*part));
  const std::vector<std::byte> at_once = Memory();
  while (!posters[0]->done() || !posters[1]->done()) ASSERT_EQ(Memory(), at_once);
  for (const auto& poster : posters) poster->ExpectOneRefused();
  EXPECT_EQ(Memory(), at_once) << "memory is whose the next key says, not the former one's";
}

TEST_P(RevocationConformance, KeysAndMemoryMayGoUnderOperations) {
  auto region = Allocate(*server_, 4096 + Poster::kPartBytes);
  auto part = Take(server_->Share(*region, 4096, Poster::kPartBytes, Access::kAll));
  Poster poster(*client_, listener_->address(), GetParam(), part->rkey());
  ASSERT_TRUE(poster.AwaitUnderWay(Soon()));
  part.reset();
  region.reset();
  poster.ExpectOneRefused();
}

INSTANTIATE_TEST_SUITE_P(Opcodes, RevocationConformance,
                         testing::Values(Opcode::kRead, Opcode::kWrite, Opcode::kFetchAdd),
                         [](const auto& info) { return std::string(OpcodeName(info.param)); });

}  // namespace
}  // namespace nam::fabric::conformance
