#include "txn/table_extents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
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
  catalog::ClientOptions Client() const { return {.address = catalog_->address(), .secret = "secret"}; }
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
  uint64_t UsedBytes() const { return memory_[0]->used_bytes() + memory_[1]->used_bytes(); }
  /// Asks until renewals have freed the memory: each question is a whole call, bounded by a deadline.
  bool BecomesUsed(catalog::Attachment& attachment, uint64_t bytes) const {
    const Deadline deadline = RealClock().After(20'000'000);
    while (UsedBytes() != bytes) {
      if (RealClock().Passed(deadline) || !attachment.MemoryUsage(memory_[0]->id()).ok()) return false;
    }
    return true;
  }

  const TempFolder folder_;
  std::unique_ptr<catalog::CatalogServer> catalog_;
  std::vector<std::unique_ptr<memserver::MemoryServer>> memory_;
};

/// A fabric of its own, so that it goes on after its attachment has left, as a client that was cut off.
class Writer {
 public:
  Writer(fabric::Kind kind, const std::string& address, std::byte value)
      : fabric_(Take(fabric::Open({.kind = kind, .secret = "secret"}))),
        local_(Take(fabric_->Allocate(4096, {.access = fabric::Access::kNone, .huge_pages = false}))),
        completions_(Take(fabric_->CreateCompletionQueue(1024))),
        address_(address) {
    std::fill_n(local_->data(), 8, value);
  }
  fabric::CompletionStatus Run(fabric::Opcode opcode, fabric::RemoteAddress remote) {
    const Deadline soon = fabric_->clock().After(10'000'000);
    const auto pair = Take(fabric_->Connect(address_, *completions_, {}, soon));
    const fabric::WorkRequest request{.id = 1,
                                      .opcode = opcode,
                                      .local = local_->Slice(opcode == fabric::Opcode::kWrite ? 0 : 8, 8),
                                      .remote = remote,
                                      .swap_or_add = 77};
    fabric::Completion completion{.status = fabric::CompletionStatus::kFlushed};
    EXPECT_TRUE(pair->Post({&request, 1}).ok());
    EXPECT_EQ(completions_->Wait({&completion, 1}, soon), 1u);
    return completion.status;
  }
  std::byte Read(fabric::RemoteAddress remote) {
    EXPECT_EQ(Run(fabric::Opcode::kRead, remote), kOk);
    return local_->data()[8];
  }

 private:
  std::unique_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::MemoryRegion> local_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  const std::string address_;
};

TEST_P(TableExtentsTest, AFencedClientChangesNothing) {
  auto creator = Attach();
  ASSERT_TRUE(CreateRecordTable(*creator, Stock(), {1, 1}).ok());
  EXPECT_EQ(UsedBytes(), 2 * kExtentBytes);
  auto dead = Attach(), alive = Attach();
  const SpaceExtent of_creator = Take(Take(TableExtents::Open(*creator, "stock", "rows"))->Extents()).at(0);
  const SpaceExtent of_dead = Take(Take(TableExtents::Open(*dead, "stock", "rows"))->Extents()).at(0);
  const auto source = Take(TableExtents::Open(*alive, "stock", "rows"));
  const SpaceExtent of_alive = Take(source->Extents()).at(0);
  EXPECT_EQ(of_dead.offset, of_alive.offset);
  EXPECT_NE(of_dead.rkey, of_alive.rkey);
  EXPECT_EQ(Take(source->Extents()).at(0).rkey, of_alive.rkey);
  const auto& server = memory_[0]->id() == of_dead.server ? memory_[0] : memory_[1];
  Writer one(GetParam(), server->fabric_address(), std::byte{1});
  Writer other(GetParam(), server->fabric_address(), std::byte{2});
  EXPECT_EQ(one.Run(fabric::Opcode::kWrite, {of_dead.rkey, 8}), kOk);
  EXPECT_EQ(one.Run(fabric::Opcode::kCompareAndSwap, {of_dead.rkey, 16}), kOk);

  const MemberId gone = dead->member();
  EXPECT_EQ(alive->Fence(gone).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(one.Run(fabric::Opcode::kWrite, {of_dead.rkey, 8}), kOk) << "and it goes on";
  dead.reset();
  const absl::Status fenced = alive->Fence(gone);
  EXPECT_TRUE(fenced.ok()) << fenced;
  EXPECT_TRUE(alive->Fence(gone).ok()) << "once more does no harm";
  for (const auto opcode :
       {fabric::Opcode::kWrite, fabric::Opcode::kCompareAndSwap, fabric::Opcode::kFetchAdd})
    EXPECT_EQ(one.Run(opcode, {of_dead.rkey, 24}), kRefused);
  EXPECT_EQ(other.Read({of_alive.rkey, 24}), std::byte{0});
  EXPECT_EQ(other.Read({of_alive.rkey, 8}), std::byte{1}) << "what it wrote before stays";
  EXPECT_EQ(other.Run(fabric::Opcode::kWrite, {of_alive.rkey, 8}), kOk);

  // The key that came with the memory is its creator's, and ends with it.
  const MemberId first = creator->member();
  creator.reset();
  EXPECT_TRUE(alive->Fence(first).ok());
  EXPECT_EQ(one.Run(fabric::Opcode::kWrite, {of_creator.rkey, 8}), kRefused);
  EXPECT_EQ(other.Read({of_alive.rkey, 8}), std::byte{2});

  ASSERT_TRUE(alive->catalog().DropTable("stock").ok());
  EXPECT_TRUE(BecomesUsed(*alive, 0));
  EXPECT_EQ(other.Run(fabric::Opcode::kWrite, {of_alive.rkey, 8}), kRefused);
  EXPECT_EQ(source->Extents().status().code(), absl::StatusCode::kNotFound);
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
  // A client that knows less than there is gets what there is.
  const auto source = Take(TableExtents::Open(*attachment, "stock", "rows"));
  EXPECT_EQ(Take(source->Grow(1)).size(), 2u);
  // Until nothing is left in one piece.
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
  // A client that dies while it extends.
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
