#include "memserver/server.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catalog/address.h"
#include "catalog/methods.h"
#include "proto/memory.pb.h"
#include "tests/catalog/raw_socket.h"
#include "tests/memserver/server_fixture.h"

namespace nam::memserver {
namespace {

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
  HookedControlPlane control_plane, memory_control_plane;
  MemoryServerOptions memory_options;
  memory_options.catalog.control_plane = &memory_control_plane;
  const auto memory = StartMemory(memory_options);
  catalog::AttachOptions options;
  options.catalog.control_plane = &control_plane;
  const auto attachment = Attach(options);
  control_plane.between = [&] {
    const MemberId member(memory->id().value());
    EXPECT_TRUE(attachment->catalog().Leave(member, memory_control_plane.proof).ok());
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
                ->Call(catalog::kListRegions, request, 60'000'000);
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
  return server.Call(catalog::kAllocate, request, 60'000'000);
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
  ASSERT_TRUE(catalog.Leave(MemberId(left.member), left.proof).ok());
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
  ASSERT_TRUE(catalog.Leave(member, joined->proof()).ok());
  for (fabric::FakeFabric* goes_on : {first_fabric, second_fabric}) {
    const absl::Status fenced = attachment->Fence(member);
    EXPECT_EQ(fenced.code(), absl::StatusCode::kUnavailable) << fenced;
    goes_on->peers_stand_still = false;
  }
  EXPECT_TRUE(attachment->Fence(member).ok());
}

TEST_F(MemoryServerTest, TheEndOfTheMembershipIsReported) {
  fabric::Progress lost;
  HookedControlPlane control_plane;
  MemoryServerOptions options;
  options.catalog.control_plane = &control_plane;
  options.on_lost = [&](absl::Status status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    lost.Advance();
  };
  const auto memory = StartMemory(options);
  const auto attachment = Attach();
  const MemberId member(memory->id().value());
  ASSERT_TRUE(attachment->catalog().Leave(member, control_plane.proof).ok());
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
