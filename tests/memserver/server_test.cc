#include "memserver/server.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catalog/address.h"
#include "catalog/attach_over_fabric.h"
#include "catalog/grpc_control_plane.h"
#include "catalog/methods.h"
#include "catalog/server.h"
#include "memserver/start_over_fabric.h"
#include "proto/memory.pb.h"
#include "tests/catalog/fake_fabric.h"
#include "tests/catalog/raw_socket.h"
#include "tests/catalog/temp_folder.h"

namespace nam::memserver {
namespace {

constexpr char kSecret[] = "correct horse battery staple";
const std::atomic<bool> kGoesOn = false;
constexpr uint64_t kMiB = 1 << 20;

/// gRPC, with a hook between a memory server's answer to ListRegions and its arrival, and with requests that
/// are late.
class HookedControlPlane final : public catalog::ControlPlane {
 public:
  std::function<void()> between = [] {};
  std::string served;  // the address served last
  /// Requests with this path stay here, and their callers give up.
  std::string late_path;
  std::vector<std::string> late;

  std::string host_name() const override { return catalog::GrpcControlPlane().host_name(); }
  absl::StatusOr<std::unique_ptr<catalog::ControlServer>> Serve(
      const catalog::ControlServerOptions& options) override {
    auto server = catalog::GrpcControlPlane().Serve(options);
    if (server.ok()) served = (*server)->address();
    return server;
  }
  std::unique_ptr<catalog::ControlChannel> Open(const std::string& address,
                                                const std::string& secret) override {
    return std::make_unique<Channel>(catalog::GrpcControlPlane().Open(address, secret), *this);
  }
  bool Refused(const std::string& address, int64_t timeout_us) override {
    return catalog::GrpcControlPlane().Refused(address, timeout_us);
  }

 private:
  class Channel final : public catalog::ControlChannel {
   public:
    Channel(std::unique_ptr<catalog::ControlChannel> channel, HookedControlPlane& plane)
        : channel_(std::move(channel)), plane_(plane) {}
    Outcome Call(const std::string& path, const std::string& request, int64_t timeout_us,
                 catalog::CallCancellation* cancellation) override {
      if (path == plane_.late_path) {
        plane_.late.push_back(request);
        return {absl::DeadlineExceededError("no answer"), false, ""};
      }
      Outcome outcome = channel_->Call(path, request, timeout_us, cancellation);
      if (path == catalog::kListRegions.path) plane_.between();
      return outcome;
    }

   private:
    const std::unique_ptr<catalog::ControlChannel> channel_;
    HookedControlPlane& plane_;
  };
};

// A catalog, memory servers and an attached client in one process, over fake fabrics.
class MemoryServerTest : public testing::Test {
 protected:
  MemoryServerTest() {
    catalog_options_.store_path = folder_.File("catalog.db");
    catalog_options_.fabric = fabric::Kind::kTcp;
    catalog_options_.secret = kSecret;
    catalog_options_.lease_ms = 1'500;
    auto catalog = catalog::CatalogServer::Start(catalog_options_);
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    catalog_ = *std::move(catalog);
  }

  absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenFake(const fabric::FabricOptions& options) {
    EXPECT_EQ(options.secret, kSecret);
    fabric_options_ = options;
    return std::make_unique<fabric::FakeFabric>(options.kind);
  }
  /// Like OpenFake; the test keeps a pointer to the memory server's fabric.
  absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenWatched(const fabric::FabricOptions& options) {
    auto opened = std::make_unique<fabric::FakeFabric>(options.kind);
    memory_fabric_ = opened.get();
    opened->before_listen = before_listen_;
    fabric_options_ = options;
    return opened;
  }
  absl::StatusOr<std::unique_ptr<MemoryServer>> TryStart(MemoryServerOptions options) {
    options.catalog.address = catalog_->address();
    options.catalog.secret = kSecret;
    return StartOverFabric(options, [this](const auto& fabric) { return OpenWatched(fabric); });
  }
  std::unique_ptr<MemoryServer> StartMemory(MemoryServerOptions options = {}) {
    if (options.memory_bytes == 0) options.memory_bytes = 8 * kMiB;
    options.region_bytes = kMiB;
    auto server = TryStart(options);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  std::unique_ptr<catalog::Attachment> Attach(catalog::AttachOptions options = {}) {
    options.catalog.address = catalog_->address();
    options.catalog.secret = kSecret;
    auto attachment =
        catalog::AttachOverFabric(options, [this](const auto& fabric) { return OpenFake(fabric); });
    EXPECT_TRUE(attachment.ok()) << attachment.status();
    return attachment.ok() ? *std::move(attachment) : nullptr;
  }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }
  // Asks until renewals have freed the memory: each question is a whole call, bounded by a deadline.
  static bool BecomesFree(catalog::Attachment& attachment, MemoryServerId server) {
    return BecomesUsed(attachment, server, 0);
  }
  static bool BecomesUsed(catalog::Attachment& attachment, MemoryServerId server, uint64_t bytes) {
    const Deadline deadline = RealClock().After(20'000'000);
    while (attachment.MemoryUsage(server)->used_bytes() != bytes) {
      if (RealClock().Passed(deadline)) return false;
    }
    return true;
  }

  const TempFolder folder_;
  catalog::CatalogServerOptions catalog_options_;
  std::unique_ptr<catalog::CatalogServer> catalog_;
  fabric::FakeFabric* memory_fabric_ = nullptr;  // of the memory server started last, which owns it
  std::function<void()> before_listen_;          // of memory servers started from now on
  fabric::FabricOptions fabric_options_;         // of the fabric opened last
};

TEST_F(MemoryServerTest, JoinsAndLeaves) {
  auto memory = StartMemory();
  const auto attachment = Attach();
  const auto members = attachment->Members(proto::ROLE_MEMORY);
  ASSERT_TRUE(members.ok());
  ASSERT_EQ(members->size(), 1u);
  EXPECT_EQ((*members)[0].id(), memory->id().value());
  EXPECT_EQ((*members)[0].control_address(), memory->control_address());
  EXPECT_EQ((*members)[0].fabric_address(), memory->fabric_address());
  EXPECT_EQ((*members)[0].memory_bytes(), memory->capacity_bytes());
  EXPECT_EQ(attachment->Members(proto::ROLE_CLIENT)->size(), 1u);
  EXPECT_EQ((*attachment->Members(proto::ROLE_CLIENT))[0].id(), attachment->member().value());
  memory->Shutdown(RealClock().After(1'000'000));
  EXPECT_TRUE(attachment->Members(proto::ROLE_MEMORY)->empty());
  memory->Shutdown(RealClock().After(1'000'000));  // once more does no harm
}

TEST_F(MemoryServerTest, OneThatIsBuriedWhileItIsAskedIsNotRemembered) {
  const auto memory = StartMemory();
  HookedControlPlane control_plane;
  catalog::AttachOptions options;
  options.catalog.control_plane = &control_plane;
  const auto attachment = Attach(options);
  control_plane.between = [&] {
    EXPECT_TRUE(attachment->catalog().Leave(MemberId(memory->id().value())).ok());
    EXPECT_TRUE(attachment->Buried(memory->id(), /*ask=*/true));
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(attachment->Lookup(memory->id(), /*refresh=*/false).status().code(),
              absl::StatusCode::kUnavailable);
  }
}

TEST_F(MemoryServerTest, TheFabricIsOpenedAsTheOptionsSay) {
  const auto memory = StartMemory({.rdma = "rxe0", .multicast_interface = "10.0.0.2", .multicast_ttl = 7});
  EXPECT_EQ(fabric_options_.rdma, "rxe0");
  EXPECT_EQ(fabric_options_.multicast_interface, "10.0.0.2");
  EXPECT_EQ(fabric_options_.multicast_ttl, 7);
  const auto attachment = Attach({.rdma = "rxe1", .multicast_interface = "eth1", .multicast_ttl = 9});
  EXPECT_EQ(fabric_options_.rdma, "rxe1");
  EXPECT_EQ(fabric_options_.multicast_interface, "eth1");
  EXPECT_EQ(fabric_options_.multicast_ttl, 9);
}

TEST_F(MemoryServerTest, MembersEncryptIfTheCatalogSaysSo) {
  StartMemory();
  EXPECT_FALSE(fabric_options_.encrypt);
  catalog_options_.store_path = folder_.File("another.db");
  catalog_options_.encrypt = true;
  auto catalog = catalog::CatalogServer::Start(catalog_options_);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  catalog_ = *std::move(catalog);
  const auto memory = StartMemory();
  EXPECT_TRUE(fabric_options_.encrypt);
  fabric_options_.encrypt = false;
  const auto attachment = Attach();
  EXPECT_TRUE(fabric_options_.encrypt);
  catalog_options_.store_path = folder_.File("third.db");
  catalog_options_.fabric = fabric::Kind::kShm;
  EXPECT_EQ(catalog::CatalogServer::Start(catalog_options_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(MemoryServerTest, AllocatesAndListsRegions) {
  const auto memory = StartMemory();
  const auto attachment = Attach();
  const auto load = attachment->catalog().BeginLoad(attachment->member(), "date", false);
  ASSERT_TRUE(load.ok());
  const auto extents = attachment->Allocate(memory->id(), *load, 2 * kMiB + 1);
  ASSERT_TRUE(extents.ok()) << extents.status();
  const auto regions = attachment->Lookup(memory->id(), false);
  ASSERT_TRUE(regions.ok());
  EXPECT_EQ((*regions)->fabric_address, memory->fabric_address());
  EXPECT_EQ((*regions)->name,
            "memory server " + std::to_string(memory->id().value()) + " (" + memory->control_address() + ")");
  for (const catalog::GrantedExtent& extent : *extents) {
    EXPECT_GE(extent.offset, 4'096u);
    bool inside = false;
    for (const auto& region : (*regions)->regions) {
      inside |=
          extent.offset >= region.offset && extent.offset + extent.bytes <= region.offset + region.bytes;
    }
    EXPECT_TRUE(inside);
  }
  // More regions than the copy: it stays as it is until it is refreshed.
  ASSERT_TRUE(attachment->Allocate(memory->id(), *load, 4 * kMiB).ok());
  EXPECT_EQ(attachment->Lookup(memory->id(), false)->get(), regions->get());
  EXPECT_GT((*attachment->Lookup(memory->id(), true))->regions.size(), (*regions)->regions.size());
  const auto usage = attachment->MemoryUsage(memory->id());
  ASSERT_TRUE(usage.ok());
  EXPECT_EQ(usage->used_bytes(), 6 * kMiB + 4'096);
  EXPECT_EQ(usage->memory_bytes(), 8 * kMiB - 4'096);
}

TEST_F(MemoryServerTest, TellsOfItsScratchMemory) {
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

TEST_F(MemoryServerTest, OneThatIsStartingRenewsNothing) {
  const auto looks_on = Attach();
  HookedControlPlane control_plane;
  MemoryServerOptions options;
  options.catalog.control_plane = &control_plane;
  absl::StatusOr<proto::ListRegionsReply> reply;
  before_listen_ = [&] {
    proto::ListRegionsRequest request;
    request.set_renew_first(true);
    reply = looks_on->OpenPeer("memory server", control_plane.served)
                ->Call(catalog::kListRegions, request, 5'000'000);
  };
  EXPECT_NE(StartMemory(options), nullptr);
  EXPECT_TRUE(reply.ok()) << reply.status();
}

TEST_F(MemoryServerTest, ErrorsNameTheServer) {
  auto memory = StartMemory();
  const auto attachment = Attach();
  const auto load = attachment->catalog().BeginLoad(attachment->member(), "date", false);
  const std::string name =
      "memory server " + std::to_string(memory->id().value()) + " (" + memory->control_address() + ")";
  const auto large = attachment->Allocate(memory->id(), *load, 64 * kMiB);
  EXPECT_EQ(large.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(large.status()).find(name + ": out of memory: 64.0 MiB are needed"), 0u)
      << large.status();
  EXPECT_EQ(attachment->Allocate(MemoryServerId(999), *load, 1).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(attachment->Lookup(MemoryServerId(999), true).status().code(), absl::StatusCode::kUnavailable);
  const MemoryServerId id = memory->id();
  memory.reset();
  const auto gone = attachment->Allocate(id, *load, 1);
  EXPECT_EQ(gone.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(Message(gone.status()).find(name), std::string::npos) << gone.status();
}

TEST_F(MemoryServerTest, ADeadServerWithBlocksIsUnavailable) {
  auto memory = StartMemory();
  const auto loader = Attach();
  const auto load = loader->catalog().BeginLoad(loader->member(), "date", false);
  proto::Table table;
  table.set_name("date");
  table.set_allocation(load->value());
  table.add_usage()->set_server(memory->id().value());
  table.mutable_usage(0)->set_blocks(1);
  ASSERT_TRUE(loader->catalog().CommitLoad(table).ok());
  const MemoryServerId id = memory->id();
  memory.reset();
  const auto reader = Attach();
  const auto regions = reader->Lookup(id, false);
  EXPECT_EQ(regions.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(Message(regions.status()).find("gone"), std::string::npos) << regions.status();
}

TEST_F(MemoryServerTest, MemoryIsFreedOnlyWhenItsAllocationIsOver) {
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

TEST_F(MemoryServerTest, ALoaderThatDiesGivesItsMemoryBack) {
  const auto memory = StartMemory();
  auto attachment = Attach();
  const auto load = attachment->catalog().BeginLoad(attachment->member(), "date", false);
  ASSERT_TRUE(attachment->Allocate(memory->id(), *load, kMiB).ok());
  attachment.reset();
  EXPECT_TRUE(BecomesFree(*Attach(), memory->id()));
}

// An attempt that has not heard that its query is over.
TEST_F(MemoryServerTest, ScratchMemoryThatIsAskedForTooLateIsReaped) {
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
TEST_F(MemoryServerTest, ScratchMemoryOfAnAttemptComesBackBeforeTheAllocationIsOver) {
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

// The claims of a process that calls a memory server directly.
struct Claim {
  uint32_t member = 0;
  std::string proof;
};

absl::StatusOr<proto::AllocateReply> AllocateAs(const catalog::Peer& server, const Claim& claim,
                                                AllocationId allocation) {
  proto::AllocateRequest request;
  request.set_allocation(allocation.value());
  request.set_bytes(8'192);
  request.set_member(claim.member);
  request.set_proof(claim.proof);
  return server.Call(catalog::kAllocate, request, 5'000'000);
}

TEST_F(MemoryServerTest, MemoryGoesToLivingMembersThatProveWhoTheyAre) {
  const auto memory = StartMemory();
  const auto attachment = Attach();
  catalog::Client& catalog = attachment->catalog();
  const auto load = catalog.BeginLoad(attachment->member(), "date", false);
  ASSERT_TRUE(load.ok());
  const auto extents = attachment->Allocate(memory->id(), *load, 8'192);
  ASSERT_TRUE(extents.ok()) << extents.status();
  const auto peer = attachment->OpenPeer("memory server", memory->control_address());

  const auto join = [&] {
    proto::Member self;
    self.set_role(proto::ROLE_CLIENT);
    const auto joined = catalog.Join(self);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return Claim{joined->id(), joined->proof()};
  };
  const Claim one = join(), other = join(), left = join();
  ASSERT_TRUE(catalog.Leave(MemberId(left.member)).ok());
  EXPECT_EQ(one.proof.size(), 16u);
  EXPECT_NE(one.proof, other.proof);

  const uint32_t strange = 4'000'000, itself = attachment->member().value();
  for (const Claim& wrong : {Claim{strange, ""}, Claim{strange, one.proof}, Claim{itself, ""},
                             Claim{itself, one.proof}, Claim{one.member, other.proof}, left}) {
    EXPECT_EQ(AllocateAs(*peer, wrong, *load).status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(memory->used_bytes(), 8'192u);
  const auto again = attachment->OpenExtents(memory->id(), {*load});
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->size(), 1u);
  EXPECT_EQ((*again)[0].offset, (*extents)[0].offset);
  EXPECT_EQ((*again)[0].grant, (*extents)[0].grant);

  EXPECT_TRUE(AllocateAs(*peer, one, *load).ok());
  EXPECT_EQ(Attach()->OpenExtents(memory->id(), {*load})->size(), 2u) << "any member opens it";
}

TEST_F(MemoryServerTest, AFenceIsDoneWhenAllServersSaySo) {
  const auto first = StartMemory();
  fabric::FakeFabric* const first_fabric = memory_fabric_;
  const auto second = StartMemory();
  fabric::FakeFabric* const second_fabric = memory_fabric_;
  const auto attachment = Attach();
  catalog::Client& catalog = attachment->catalog();
  const auto load = catalog.BeginLoad(attachment->member(), "date", false);
  ASSERT_TRUE(load.ok());
  proto::Member self;
  self.set_role(proto::ROLE_CLIENT);
  const auto joined = catalog.Join(self);
  ASSERT_TRUE(joined.ok());
  for (const MemoryServer* server : {first.get(), second.get()}) {
    const auto peer = attachment->OpenPeer("memory server", server->control_address());
    ASSERT_TRUE(AllocateAs(*peer, {joined->id(), joined->proof()}, *load).ok());
  }
  const MemberId member(joined->id());
  EXPECT_EQ(attachment->Fence(member).code(), absl::StatusCode::kFailedPrecondition) << "it lives";
  first_fabric->peers_stand_still = second_fabric->peers_stand_still = true;
  ASSERT_TRUE(catalog.Leave(member).ok());
  for (fabric::FakeFabric* goes_on : {first_fabric, second_fabric}) {
    const absl::Status fenced = attachment->Fence(member);
    EXPECT_EQ(fenced.code(), absl::StatusCode::kUnavailable) << fenced;
    goes_on->peers_stand_still = false;
  }
  EXPECT_TRUE(attachment->Fence(member).ok());
}

TEST_F(MemoryServerTest, MemoryThatADeadMemberHadOpenIsFreeOnceItIsFenced) {
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

TEST_F(MemoryServerTest, AFullServerWaitsForWhatIsLeaving) {
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

TEST_F(MemoryServerTest, ARequestUnderWayKeepsMemoryFromOthers) {
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
TEST_F(MemoryServerTest, ARequestThatItsClientGaveUpOnOpensNothing) {
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
    const Deadline deadline = RealClock().After(20'000'000);
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
  EXPECT_TRUE(absl::IsCancelled(peer->Call(catalog::kAllocate, allocate, 5'000'000).status()));
  EXPECT_EQ(memory->used_bytes(), kMiB);

  control_plane.late_path = catalog::kOpenExtents.path;
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->OpenExtents(memory->id(), {*load}).status()));
  client->grants().End({&*load, 1});
  client->CloseScratch(*load, 1);  // wakes the closing thread
  ASSERT_TRUE(forgotten());
  proto::OpenExtentsRequest open;
  ASSERT_EQ(control_plane.late.size(), 2u);
  ASSERT_TRUE(open.ParseFromString(control_plane.late[1]));
  EXPECT_TRUE(absl::IsCancelled(peer->Call(catalog::kOpenExtents, open, 5'000'000).status()));
  ASSERT_TRUE(owner->catalog().AbortLoad(*load).ok());
  EXPECT_TRUE(BecomesFree(*owner, memory->id()));
}

TEST_F(MemoryServerTest, TheEndOfTheMembershipIsReported) {
  fabric::Progress lost;
  MemoryServerOptions options;
  options.on_lost = [&](absl::Status status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    lost.Advance();
  };
  const auto memory = StartMemory(options);
  const auto attachment = Attach();
  ASSERT_TRUE(attachment->catalog().Leave(MemberId(memory->id().value())).ok());
  EXPECT_TRUE(lost.WaitFor(1));
}

TEST_F(MemoryServerTest, AnOnlookerTakesNoLease) {
  catalog::AttachOptions options;
  options.role = proto::ROLE_UNKNOWN;
  const auto attachment = Attach(options);
  EXPECT_EQ(attachment->member(), MemberId());
  EXPECT_EQ(attachment->catalog().GetCluster()->members_size(), 0);
}

TEST_F(MemoryServerTest, AMemberTellsItsAddresses) {
  catalog::AttachOptions options;
  options.role = proto::ROLE_COMPUTE;
  options.self.set_control_address("127.0.0.1:99");
  options.self.set_threads(7);
  const auto attachment = Attach(options);
  const auto members = attachment->Members(proto::ROLE_COMPUTE);
  ASSERT_EQ(members->size(), 1u);
  EXPECT_EQ((*members)[0].control_address(), "127.0.0.1:99");
  EXPECT_EQ((*members)[0].threads(), 7u);
}

TEST_F(MemoryServerTest, BadOptionsAreRefused) {
  MemoryServerOptions options;
  options.memory_bytes = 1'000;
  EXPECT_EQ(TryStart(options).status().code(), absl::StatusCode::kInvalidArgument);
  options.memory_bytes = kMiB;
  options.control_listen_address = "nowhere";
  EXPECT_EQ(TryStart(options).status().code(), absl::StatusCode::kInvalidArgument);
  const auto attachment = Attach();
  EXPECT_TRUE(attachment->Members(proto::ROLE_MEMORY)->empty());
}

TEST_F(MemoryServerTest, NoMethodAnswersWithoutACertificate) {
  const auto memory = StartMemory();
  const auto* service = proto::Extent::descriptor()->file()->FindServiceByName("Memory");
  ASSERT_NE(service, nullptr);
  auto channel = grpc::CreateChannel(memory->control_address(), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  for (int i = 0; i < service->method_count(); ++i) {
    grpc::ClientContext context;
    const grpc::ByteBuffer empty(nullptr, 0);
    grpc::ByteBuffer reply;
    const std::string method = "/nam.proto.Memory/" + service->method(i)->name();
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, method, empty, &queue);
    grpc::Status status;
    void* tag = nullptr;
    bool ok = false;
    call->StartCall();
    call->Finish(&reply, &status, nullptr);
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << method;
    EXPECT_EQ(status.error_details(), "") << "a handler answered " << method;
  }
}

TEST_F(MemoryServerTest, GarbageOnThePortDisturbsNobody) {
  const auto memory = StartMemory();
  const auto attachment = Attach();
  const uint16_t port = catalog::SplitAddress(memory->control_address())->second;
  std::thread sender([=] { SendGarbage(port, 42, 60); });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(attachment->MemoryUsage(memory->id()).ok());
  sender.join();
  EXPECT_TRUE(attachment->MemoryUsage(memory->id()).ok());
}

}  // namespace
}  // namespace nam::memserver
