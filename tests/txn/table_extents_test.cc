#include "txn/table_extents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catalog/attachment.h"
#include "catalog/server.h"
#include "fabric/fabric.h"
#include "memserver/server.h"
#include "tests/catalog/temp_folder.h"

namespace nam::txn {
namespace {

constexpr uint64_t kExtentBytes = 64 << 10;
constexpr uint64_t kRegionBytes = 256 << 10;
constexpr auto kOk = fabric::CompletionStatus::kOk;
constexpr auto kRefused = fabric::CompletionStatus::kRemoteAccessError;

template <typename T>
T Take(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  ADD_FAILURE() << result.status().ToString();
  return T();
}

/// A catalog, two memory servers and clients, over a real fabric.
class TableExtentsTest : public testing::TestWithParam<fabric::Kind> {
 protected:
  TableExtentsTest()
      : catalog_(Take(catalog::CatalogServer::Start({.listen_address = "127.0.0.1:0",
                                                     .store_path = folder_.File("catalog.db"),
                                                     .cluster_name = "test",
                                                     .fabric = GetParam(),
                                                     .secret = "secret",
                                                     .lease_ms = 1'500}))) {
    for (int i = 0; i < 2; ++i) {
      memserver::MemoryServerOptions options;
      options.catalog = Client();
      options.memory_bytes = 4 * kRegionBytes;
      options.region_bytes = kRegionBytes;
      options.huge_pages = false;
      memory_.push_back(Take(memserver::MemoryServer::Start(options)));
    }
  }
  /// Only a call that hangs takes its whole timeout.
  catalog::ClientOptions Client() const {
    return {.address = catalog_->address(), .secret = "secret", .timeout_us = 60'000'000};
  }
  std::unique_ptr<catalog::Attachment> Attach() const {
    return Take(catalog::Attachment::Attach({.catalog = Client()}));
  }
  static proto::Table Stock() {
    proto::Table table;
    table.set_name("stock");
    proto::RecordStorage& record = *table.mutable_record();
    record.set_row_bytes(64);
    record.set_key_bytes(8);
    record.set_versions(1);
    record.set_extent_bytes(kExtentBytes);
    for (const char* name : {"rows", "key"}) record.add_parts()->set_name(name);
    return table;
  }
  static fabric::RemoteAddress AddressOf(catalog::Attachment& attachment, const SpaceExtent& extent,
                                         uint64_t offset) {
    const auto regions = Take(attachment.Lookup(extent.server, /*refresh=*/true));
    for (const auto& region : regions->regions) {
      if (extent.offset - region.offset < region.bytes)
        return {region.rkey, extent.offset - region.offset + offset};
    }
    ADD_FAILURE() << "no region has the extent";
    return {};
  }
  uint64_t UsedBytes() const { return memory_[0]->used_bytes() + memory_[1]->used_bytes(); }
  /// Asks until renewals have freed the memory: each question is a whole call, bounded by a deadline.
  bool BecomesUsed(catalog::Attachment& attachment, uint64_t bytes) const {
    const Deadline deadline = RealClock().After(60'000'000);
    while (UsedBytes() != bytes) {
      if (RealClock().Passed(deadline) || !attachment.MemoryUsage(memory_[0]->id()).ok()) return false;
    }
    return true;
  }

  const TempFolder folder_;
  std::unique_ptr<catalog::CatalogServer> catalog_;
  std::vector<std::unique_ptr<memserver::MemoryServer>> memory_;
};

/// The fabric belongs to this client alone, so it goes on after its attachment has left, like a client that
/// was cut off.
class Writer {
 public:
  Writer(fabric::Kind kind, const memserver::MemoryServer& server, catalog::Attachment& member,
         std::byte value)
      : fabric_(Take(fabric::Open({.kind = kind, .secret = "secret"}))),
        local_(Take(fabric_->Allocate(4096, {.access = fabric::Access::kNone, .huge_pages = false}))),
        completions_(Take(fabric_->CreateCompletionQueue(1024))),
        address_(server.fabric_address()),
        credentials_(fabric::CredentialsFor(member.Self(), server.id())) {
    std::fill_n(local_->data(), 8, value);
    EXPECT_TRUE(Connect().ok());
  }
  absl::Status Connect() {
    auto pair = fabric_->Connect(address_, *completions_, {.member = credentials_}, Soon());
    if (pair.ok()) pair_ = *std::move(pair);
    return pair.status();
  }
  void SetKey(const fabric::MemberKey& key) { credentials_.key = key; }
  fabric::CompletionStatus Run(fabric::Opcode opcode, fabric::RemoteAddress remote) {
    const fabric::WorkRequest request{.id = 1,
                                      .opcode = opcode,
                                      .local = local_->Slice(opcode == fabric::Opcode::kWrite ? 0 : 8, 8),
                                      .remote = remote,
                                      .swap_or_add = 77};
    fabric::Completion completion{.status = fabric::CompletionStatus::kFlushed};
    EXPECT_TRUE(pair_->Post({&request, 1}).ok());
    EXPECT_EQ(completions_->Wait({&completion, 1}, Soon()), 1u);
    return completion.status;
  }
  std::byte Read(fabric::RemoteAddress remote) {
    EXPECT_EQ(Run(fabric::Opcode::kRead, remote), kOk);
    return local_->data()[8];
  }

 private:
  Deadline Soon() { return fabric_->clock().After(60'000'000); }

  std::unique_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::MemoryRegion> local_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  const std::string address_;
  fabric::MemberCredentials credentials_;
  std::unique_ptr<fabric::QueuePair> pair_;
};

TEST_P(TableExtentsTest, AFencedClientChangesNothing) {
  auto creator = Attach();
  ASSERT_TRUE(CreateRecordTable(*creator, Stock(), {1, 1}).ok());
  EXPECT_EQ(UsedBytes(), 2 * kExtentBytes);
  auto dead = Attach(), alive = Attach();
  const auto source = Take(TableExtents::Open(*alive, "stock", "rows"));
  const SpaceExtent extent = Take(source->Extents()).at(0);
  const auto at = [&](uint64_t offset) { return AddressOf(*alive, extent, offset); };
  const auto& server = memory_[0]->id() == extent.server ? memory_[0] : memory_[1];
  Writer one(GetParam(), *server, *dead, std::byte{1}), other(GetParam(), *server, *alive, std::byte{2});
  EXPECT_EQ(one.Run(fabric::Opcode::kWrite, at(8)), kOk);
  EXPECT_EQ(one.Run(fabric::Opcode::kCompareAndSwap, at(16)), kOk);

  const MemberId gone = dead->member();
  EXPECT_EQ(alive->Fence(gone).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(one.Run(fabric::Opcode::kWrite, at(8)), kOk) << "and it goes on";
  dead.reset();
  const absl::Status fenced = alive->Fence(gone);
  EXPECT_TRUE(fenced.ok()) << fenced;
  EXPECT_TRUE(alive->Fence(gone).ok()) << "once more does no harm";
  EXPECT_NE(one.Run(fabric::Opcode::kWrite, at(24)), kOk);
  EXPECT_TRUE(absl::IsPermissionDenied(one.Connect())) << "its membership is over";
  EXPECT_EQ(other.Read(at(24)), std::byte{0});
  EXPECT_EQ(other.Read(at(8)), std::byte{1}) << "what it wrote before stays";
  EXPECT_EQ(other.Run(fabric::Opcode::kWrite, at(8)), kOk);

  // The memory does not end with its creator.
  const MemberId first = creator->member();
  creator.reset();
  EXPECT_TRUE(alive->Fence(first).ok());
  EXPECT_EQ(other.Read(at(8)), std::byte{2});
  EXPECT_EQ(other.Run(fabric::Opcode::kWrite, at(8)), kOk);

  ASSERT_TRUE(alive->catalog().DropTable("stock").ok());
  EXPECT_TRUE(BecomesUsed(*alive, 0));
  EXPECT_TRUE(extent.grant->over());
  EXPECT_EQ(source->Extents().status().code(), absl::StatusCode::kNotFound);
}

TEST_P(TableExtentsTest, TheConnectionsOfTheDeadEndThoughNobodyFencesThem) {
  const auto creator = Attach();
  ASSERT_TRUE(CreateRecordTable(*creator, Stock(), {1, 1}).ok());
  const SpaceExtent extent = Take(Take(TableExtents::Open(*creator, "stock", "rows"))->Extents()).at(0);
  const auto at = [&](uint64_t offset) { return AddressOf(*creator, extent, offset); };
  const auto& server = memory_[0]->id() == extent.server ? memory_[0] : memory_[1];
  auto dead = Attach();
  Writer writer(GetParam(), *server, *dead, std::byte{1});
  dead.reset();
  // Until the server's next renewal: each WRITE is waited for.
  const Deadline deadline = RealClock().After(60'000'000);
  while (writer.Run(fabric::Opcode::kWrite, at(8)) == kOk) {
    ASSERT_FALSE(RealClock().Passed(deadline));
  }
}

TEST_P(TableExtentsTest, ConnectionsBelongToTheMembersThatProveThem) {
  const auto member = Attach(), another = Attach();
  ASSERT_TRUE(CreateRecordTable(*member, Stock(), {1, 1}).ok());
  const SpaceExtent extent = Take(Take(TableExtents::Open(*member, "stock", "rows"))->Extents()).at(0);
  const auto at = [&](uint64_t offset) { return AddressOf(*member, extent, offset); };
  const size_t number = memory_[0]->id() == extent.server ? 0 : 1;
  const memserver::MemoryServer &server = *memory_[number], &elsewhere = *memory_[1 - number];
  Writer writer(GetParam(), server, *member, std::byte{1});
  EXPECT_EQ(writer.Run(fabric::Opcode::kWrite, at(8)), kOk);
  // The keys are the right id with the key of another member, and with its own key of another memory server.
  for (const fabric::MemberCredentials& wrong : {fabric::CredentialsFor(another->Self(), server.id()),
                                                 fabric::CredentialsFor(member->Self(), elsewhere.id())}) {
    writer.SetKey(wrong.key);
    EXPECT_TRUE(absl::IsPermissionDenied(writer.Connect()));
  }
  EXPECT_EQ(writer.Run(fabric::Opcode::kWrite, at(8)), kOk) << "what there was goes on";
}

TEST_P(TableExtentsTest, WithoutAMembershipMemoryIsOnlyRead) {
  const auto member = Attach();
  ASSERT_TRUE(CreateRecordTable(*member, Stock(), {1, 1}).ok());
  const SpaceExtent extent = Take(Take(TableExtents::Open(*member, "stock", "rows"))->Extents()).at(0);
  const auto at = [&](uint64_t offset) { return AddressOf(*member, extent, offset); };
  const auto& server = memory_[0]->id() == extent.server ? memory_[0] : memory_[1];
  const auto onlooker = Take(catalog::Attachment::Attach({.catalog = Client(), .role = proto::ROLE_UNKNOWN}));
  Writer writer(GetParam(), *server, *onlooker, std::byte{1});
  EXPECT_EQ(writer.Read(at(8)), std::byte{0});
  EXPECT_EQ(writer.Run(fabric::Opcode::kFetchAdd, at(8)), kRefused);
  ASSERT_TRUE(writer.Connect().ok());
  EXPECT_EQ(writer.Run(fabric::Opcode::kWrite, at(8)), kRefused);
  ASSERT_TRUE(writer.Connect().ok());
  EXPECT_EQ(writer.Read(at(8)), std::byte{0});
}

TEST_P(TableExtentsTest, OfManyThatGrowOneAdds) {
  const auto attachment = Attach();
  ASSERT_TRUE(CreateRecordTable(*attachment, Stock(), {1, 1}).ok());
  constexpr size_t kClients = 4;
  std::vector<std::vector<SpaceExtent>> seen(kClients);
  {
    std::vector<std::unique_ptr<catalog::Attachment>> clients;
    for (size_t i = 0; i < kClients; ++i) clients.push_back(Attach());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kClients; ++i) {
      threads.emplace_back([&, i] {
        const auto source = Take(TableExtents::Open(*clients[i], "stock", "rows"));
        seen[i] = Take(source->Grow(1));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const auto& extents : seen) {
    ASSERT_EQ(extents.size(), 2u);
    EXPECT_NE(extents[0].server, extents[1].server) << "spread";
    EXPECT_EQ(extents[1].offset, seen[0][1].offset);
  }
  EXPECT_TRUE(BecomesUsed(*attachment, 3 * kExtentBytes));
  // A client that knows fewer extents than exist gets those that exist.
  const auto source = Take(TableExtents::Open(*attachment, "stock", "rows"));
  EXPECT_EQ(Take(source->Grow(1)).size(), 2u);
  // Takes memory until none is left in one piece.
  absl::StatusOr<std::vector<SpaceExtent>> extents = source->Extents();
  while (extents.ok()) {
    const size_t known = extents->size();
    extents = source->Grow(known);
    if (extents.ok()) {
      ASSERT_EQ(extents->size(), known + 1);
    }
  }
  EXPECT_EQ(extents.status().code(), absl::StatusCode::kResourceExhausted) << extents.status();
  ASSERT_TRUE(attachment->catalog().DropTable("stock").ok());
  EXPECT_TRUE(BecomesUsed(*attachment, 0));
}

TEST_P(TableExtentsTest, ShortFirstExtentsAreFollowedByLargerOnes) {
  const auto attachment = Attach();
  constexpr uint64_t kFirstBytes = kExtentBytes / 16;
  ASSERT_TRUE(CreateRecordTable(*attachment, Stock(), {{1, kFirstBytes}, {2, kFirstBytes}}).ok());
  EXPECT_EQ(UsedBytes(), 3 * kFirstBytes);
  proto::RecordPart index;
  index.set_name("stock_by_name");
  index.set_kind(proto::ORDERED_INDEX);
  index.set_key_bytes(8);
  ASSERT_TRUE(AddPart(*attachment, "stock", index).ok());
  EXPECT_EQ(UsedBytes(), 3 * kFirstBytes + kExtentBytes / 2);
  const auto rows = Take(TableExtents::Open(*attachment, "stock", "rows"));
  EXPECT_EQ(Take(rows->Extents())[0].bytes, kFirstBytes);
  EXPECT_EQ(Take(rows->Grow(1))[1].bytes, 3 * kFirstBytes);
  EXPECT_EQ(Take(rows->Grow(2))[2].bytes, 12 * kFirstBytes);
  EXPECT_EQ(Take(rows->Grow(3))[3].bytes, 0u) << "a whole one";
  const auto other_attachment = Attach();
  const auto by_other = Take(Take(TableExtents::Open(*other_attachment, "stock", "rows"))->Extents());
  ASSERT_EQ(by_other.size(), 4u);
  EXPECT_EQ(by_other[2].bytes, 12 * kFirstBytes);
  uint64_t told = 0;
  for (const auto& usage : Take(attachment->catalog().GetTable("stock"))->usage()) told += usage.bytes();
  EXPECT_EQ(told, UsedBytes());
}

TEST_P(TableExtentsTest, SmallTablesLieOnAllServers) {
  const auto attachment = Attach();
  std::set<MemoryServerId> servers;
  for (int t = 0; t < 4; ++t) {
    proto::Table table = Stock();
    table.set_name("stock" + std::to_string(t));
    ASSERT_TRUE(CreateRecordTable(*attachment, table, {{1, 4'096}, {1, 4'096}}).ok());
    const auto rows = Take(Take(TableExtents::Open(*attachment, table.name(), "rows"))->Extents());
    servers.insert(rows[0].server);
  }
  EXPECT_EQ(servers.size(), 2u);
}

TEST_P(TableExtentsTest, WhatFailsLeavesNothing) {
  const auto attachment = Attach();
  EXPECT_EQ(CreateRecordTable(*attachment, Stock(), {1'000, 1}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(BecomesUsed(*attachment, 0));
  proto::Table broken = Stock();
  broken.mutable_record()->set_versions(17);
  EXPECT_EQ(CreateRecordTable(*attachment, broken, {1, 1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(BecomesUsed(*attachment, 0));
  ASSERT_TRUE(CreateRecordTable(*attachment, Stock(), {1, 1}).ok());
  EXPECT_EQ(CreateRecordTable(*attachment, Stock(), {1, 1}).code(), absl::StatusCode::kAlreadyExists);
  // A client dies while it extends.
  auto dies = Attach();
  const AllocationId allocation = Take(dies->catalog().BeginExtend(dies->member(), "stock"));
  ASSERT_TRUE(dies->AllocateContiguous(memory_[1]->id(), allocation, kExtentBytes).ok());
  EXPECT_EQ(UsedBytes(), 3 * kExtentBytes);
  dies.reset();
  EXPECT_TRUE(BecomesUsed(*attachment, 2 * kExtentBytes));
}

INSTANTIATE_TEST_SUITE_P(Fabrics, TableExtentsTest, testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

}  // namespace
}  // namespace nam::txn
