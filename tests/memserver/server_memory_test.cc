#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/memory.pb.h"
#include "tests/memserver/server_fixture.h"

/// When a memory server frees memory, and what its members wait for.
namespace nam::memserver {
namespace {

using ServerMemoryTest = MemoryServerTest;

TEST_F(ServerMemoryTest, TellsOfItsScratchMemory) {
  const auto memory = StartMemory({.scratch_bytes = 2 * kMiB});
  const auto attachment = Attach();
  const auto load = attachment->catalog().BeginLoad(attachment->member(), "date", false);
  for (const uint64_t attempt : {1, 2})
    ASSERT_TRUE(attachment->AllocateScratch(memory->id(), *load, attempt, kMiB / 2, kGoesOn).ok());
  ASSERT_TRUE(attachment->ReleaseScratch(memory->id(), *load, 1).ok());
  attachment->CloseScratch(*load, 1);
  EXPECT_TRUE(BecomesUsed(*attachment, memory->id(), kMiB / 2));
  const auto usage = attachment->MemoryUsage(memory->id());
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->scratch_used_bytes(), kMiB / 2);
  EXPECT_EQ(usage->scratch_highest_bytes(), kMiB);
  EXPECT_EQ(usage->scratch_bytes(), 2 * kMiB);
  EXPECT_EQ(memory->scratch_used_bytes(), kMiB / 2);
}

TEST_F(ServerMemoryTest, MemoryIsFreedOnlyWhenItsAllocationIsOver) {
  const auto memory = StartMemory();
  const auto attachment = Attach();
  catalog::Client& catalog = attachment->catalog();
  const auto first = catalog.BeginLoad(attachment->member(), "date", false);
  ASSERT_TRUE(attachment->Allocate(memory->id(), *first, kMiB).ok());
  EXPECT_EQ(attachment->Release(memory->id(), *first).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(memory->used_bytes(), kMiB);
  ASSERT_TRUE(catalog.AbortLoad(*first).ok());
  EXPECT_TRUE(attachment->Release(memory->id(), *first).ok());  // without waiting for a renewal
  EXPECT_TRUE(BecomesFree(*attachment, memory->id()));

  const auto second = catalog.BeginLoad(attachment->member(), "date", false);
  ASSERT_TRUE(attachment->Allocate(memory->id(), *second, kMiB).ok());
  proto::Table table;
  table.set_name("date");
  table.set_allocation(second->value());
  ASSERT_TRUE(catalog.CommitLoad(table).ok());
  EXPECT_EQ(attachment->Release(memory->id(), *second).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(catalog.DropTable("date").ok());
  EXPECT_TRUE(BecomesFree(*attachment, memory->id()));  // on the catalog's word at a renewal
}

TEST_F(ServerMemoryTest, ALoaderThatDiesGivesItsMemoryBack) {
  const auto memory = StartMemory();
  auto attachment = Attach();
  const auto load = attachment->catalog().BeginLoad(attachment->member(), "date", false);
  ASSERT_TRUE(attachment->Allocate(memory->id(), *load, kMiB).ok());
  attachment.reset();
  EXPECT_TRUE(BecomesFree(*Attach(), memory->id()));
}

// An attempt that has not heard that its query is over.
TEST_F(ServerMemoryTest, ScratchMemoryThatIsAskedForTooLateIsReaped) {
  MemoryServerOptions options;
  options.scratch_bytes = 2 * kMiB;
  const auto memory = StartMemory(options);
  const auto session = Attach(), server = Attach();
  const std::string name = absl::StrCat("nam.scratch.", session->member().value());
  const auto allocation = session->catalog().BeginLoad(session->member(), name, false);
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  const auto slab = server->AllocateScratch(memory->id(), *allocation, /*attempt=*/1, kMiB / 2, kGoesOn);
  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_EQ(slab->bytes, kMiB / 2);
  EXPECT_EQ(
      server->AllocateScratch(memory->id(), *allocation, /*attempt=*/1, 2 * kMiB, kGoesOn).status().code(),
      absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(session->catalog().AbortLoad(*allocation).ok());
  EXPECT_TRUE(session->Release(memory->id(), *allocation).ok());
  EXPECT_TRUE(BecomesFree(*session, memory->id())) << "the attempt's server hears of it, and closes it";
  // Granted, or refused if a renewal has told the attempt's server of the end meanwhile.
  const auto late = server->AllocateScratch(memory->id(), *allocation, /*attempt=*/1, kMiB / 2, kGoesOn);
  EXPECT_TRUE(late.ok() || absl::IsUnavailable(late.status())) << late.status();
  EXPECT_TRUE(BecomesFree(*session, memory->id())) << "the catalog knows no such allocation";
  // All of the share is free again.
  const auto next = session->catalog().BeginLoad(session->member(), name, false);
  ASSERT_TRUE(next.ok()) << next.status();
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(server->AllocateScratch(memory->id(), *next, /*attempt=*/1, kMiB / 2, kGoesOn).ok()) << i;
}

// Its client considers its server lost, and others take over its work.
TEST_F(ServerMemoryTest, ScratchMemoryOfAnAttemptComesBackBeforeTheAllocationIsOver) {
  MemoryServerOptions options;
  options.scratch_bytes = 2 * kMiB;
  const auto memory = StartMemory(options);
  const auto session = Attach(), server = Attach();
  const std::string name = absl::StrCat("nam.scratch.", session->member().value());
  const auto allocation = session->catalog().BeginLoad(session->member(), name, false);
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  const auto slab = [&](uint64_t attempt) {
    return server->AllocateScratch(memory->id(), *allocation, attempt, kMiB, kGoesOn).status();
  };
  ASSERT_TRUE(slab(1).ok());
  ASSERT_TRUE(slab(2).ok());
  EXPECT_EQ(slab(3).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(session->ReleaseScratch(memory->id(), *allocation, 1).ok());
  EXPECT_EQ(memory->used_bytes(), 2 * kMiB) << "the attempt may have WRITEs under way";
  server->CloseScratch(*allocation, 1);
  EXPECT_TRUE(BecomesUsed(*session, memory->id(), kMiB));
  EXPECT_EQ(slab(1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(slab(3).ok());
  // Without a membership there is no memory, and nothing to say about others'.
  catalog::AttachOptions looks_on;
  looks_on.role = proto::ROLE_UNKNOWN;
  EXPECT_FALSE(Attach(looks_on)->ReleaseScratch(memory->id(), *allocation, 2).ok());
  EXPECT_EQ(memory->used_bytes(), 2 * kMiB);
}

TEST_F(ServerMemoryTest, MemoryThatADeadMemberHadOpenIsFreeOnceItIsFenced) {
  const auto memory = StartMemory();
  auto attachment = Attach(), dead = Attach();
  catalog::Client& catalog = attachment->catalog();
  const auto load = catalog.BeginLoad(attachment->member(), "date", false);
  ASSERT_TRUE(attachment->Allocate(memory->id(), *load, kMiB).ok());
  ASSERT_TRUE(dead->OpenExtents(memory->id(), {*load}).ok());
  memory_fabric_->peers_stand_still = true;
  dead.reset();
  ASSERT_TRUE(catalog.AbortLoad(*load).ok());
  EXPECT_TRUE(attachment->Release(memory->id(), *load).ok());
  // It has closed its memory; the dead member stalls inside a WRITE.
  while (!attachment->grants().Allocations().empty())
    ASSERT_TRUE(attachment->MemoryUsage(memory->id(), true).ok());
  EXPECT_EQ(attachment->MemoryUsage(memory->id(), true)->leaving_bytes(), kMiB);
  memory_fabric_->peers_stand_still = false;
  EXPECT_EQ(attachment->MemoryUsage(memory->id(), true)->used_bytes(), 0u);
}

TEST_F(ServerMemoryTest, AFullServerWaitsForWhatIsLeaving) {
  const auto memory = StartMemory();
  const auto attachment = Attach(), other = Attach();
  catalog::Client& catalog = attachment->catalog();
  for (int i = 0; i < 5; ++i) {
    const auto load = catalog.BeginLoad(attachment->member(), "date", false);
    ASSERT_TRUE(load.ok());
    const auto extents = attachment->Allocate(memory->id(), *load, 8 * kMiB - 4'096);
    ASSERT_TRUE(extents.ok()) << extents.status();
    ASSERT_TRUE(other->OpenExtents(memory->id(), {*load}).ok());
    ASSERT_TRUE(catalog.AbortLoad(*load).ok());
  }
}

TEST_F(ServerMemoryTest, ARequestUnderWayKeepsMemoryFromOthers) {
  const auto memory = StartMemory();
  const auto attachment = Attach(), other = Attach();
  catalog::Client& catalog = attachment->catalog();
  const auto load = catalog.BeginLoad(attachment->member(), "date", false);
  ASSERT_TRUE(attachment->Allocate(memory->id(), *load, kMiB).ok());
  const auto opened = other->OpenExtents(memory->id(), {*load});
  ASSERT_TRUE(opened.ok());
  auto use = fabric::Grant::Use::Of((*opened)[0].grant);
  ASSERT_TRUE(use.has_value());
  ASSERT_TRUE(catalog.AbortLoad(*load).ok());
  EXPECT_TRUE(attachment->Release(memory->id(), *load).ok());
  while (!(*opened)[0].grant->over()) ASSERT_TRUE(attachment->MemoryUsage(memory->id(), true).ok());
  EXPECT_EQ(memory->used_bytes(), kMiB);
  use.reset();
  EXPECT_TRUE(BecomesFree(*attachment, memory->id()));
}

// The server gets to the request when the client has given up, has closed the memory and has forgotten it.
TEST_F(ServerMemoryTest, ARequestThatItsClientGaveUpOnOpensNothing) {
  MemoryServerOptions options;
  options.scratch_bytes = 2 * kMiB;
  const auto memory = StartMemory(options);
  const auto owner = Attach();
  HookedControlPlane control_plane;
  catalog::AttachOptions of_client;
  of_client.catalog.control_plane = &control_plane;
  const auto client = Attach(of_client);
  const auto load = owner->catalog().BeginLoad(owner->member(), "date", false);
  ASSERT_TRUE(owner->Allocate(memory->id(), *load, kMiB).ok());
  const auto peer = owner->OpenPeer("memory server", memory->control_address());
  const auto forgotten = [&] {
    const Deadline deadline = RealClock().After(60'000'000);
    while (!client->grants().Allocations().empty() && !RealClock().Passed(deadline))
      EXPECT_TRUE(owner->MemoryUsage(memory->id(), true).ok());
    return client->grants().Allocations().empty();
  };

  control_plane.late_path = catalog::kAllocate.path;
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client->AllocateScratch(memory->id(), *load, /*attempt=*/1, kMiB, kGoesOn).status()));
  client->CloseScratch(*load, 1);
  ASSERT_TRUE(forgotten());
  proto::AllocateRequest allocate;
  ASSERT_EQ(control_plane.late.size(), 1u);
  ASSERT_TRUE(allocate.ParseFromString(control_plane.late[0]));
  EXPECT_TRUE(absl::IsCancelled(peer->Call(catalog::kAllocate, allocate, 60'000'000).status()));
  EXPECT_EQ(memory->used_bytes(), kMiB);

  control_plane.late_path = catalog::kOpenExtents.path;
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->OpenExtents(memory->id(), {*load}).status()));
  client->grants().End({&*load, 1});
  client->CloseScratch(*load, 1);  // wakes the closing thread
  ASSERT_TRUE(forgotten());
  proto::OpenExtentsRequest open;
  ASSERT_EQ(control_plane.late.size(), 2u);
  ASSERT_TRUE(open.ParseFromString(control_plane.late[1]));
  EXPECT_TRUE(absl::IsCancelled(peer->Call(catalog::kOpenExtents, open, 60'000'000).status()));
  ASSERT_TRUE(owner->catalog().AbortLoad(*load).ok());
  EXPECT_TRUE(BecomesFree(*owner, memory->id()));
}

}  // namespace
}  // namespace nam::memserver
