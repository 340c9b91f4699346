#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "memserver/memory_pool.h"

/// The access of peers to a pool's memory, over real fabrics.
namespace nam::memserver {
namespace {

constexpr uint64_t kPoolRegionBytes = 64 << 10;

template <typename T>
T Take(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  ADD_FAILURE() << result.status().ToString();
  return T();
}

class MemoryPoolFabricTest : public testing::TestWithParam<fabric::Kind> {
 protected:
  static std::unique_ptr<fabric::Fabric> Open() {
    return Take(fabric::Open({.kind = GetParam(), .secret = "secret"}));
  }
  /// On a queue pair of its own.
  fabric::CompletionStatus Run(fabric::Opcode opcode, fabric::RemoteAddress remote) {
    const Deadline soon = client_->clock().After(60'000'000);
    const auto pair = Take(client_->Connect(listener_->address(), *completions_, {}, soon));
    const fabric::WorkRequest request{
        .id = 1, .opcode = opcode, .local = local_->Slice(0, 8), .remote = remote};
    fabric::Completion completion{.status = fabric::CompletionStatus::kFlushed};
    if (pair == nullptr || !pair->Post({&request, 1}).ok()) return completion.status;
    EXPECT_EQ(completions_->Wait({&completion, 1}, soon), 1u);
    return completion.status;
  }
  /// The address of an offset in the pool's address space.
  fabric::RemoteAddress At(uint64_t offset) {
    const auto regions = pool_->Regions();
    const auto region = std::find_if(regions.begin(), regions.end(), [&](const MemoryPool::Region& r) {
      return offset >= r.offset && offset - r.offset < r.bytes;
    });
    if (region == regions.end()) return {};
    return {region->rkey, offset - region->offset};
  }

  std::unique_ptr<fabric::Fabric> server_ = Open(), client_ = Open();
  std::unique_ptr<MemoryPool> pool_ = Take(MemoryPool::Create(
      *server_,
      {.memory_bytes = 4 * kPoolRegionBytes, .region_bytes = kPoolRegionBytes, .huge_pages = false}));
  std::unique_ptr<fabric::Listener> listener_ =
      Take(server_->Listen({.address = fabric::AnyAddress(GetParam(), "127.0.0.1")}));
  std::unique_ptr<fabric::MemoryRegion> local_ =
      Take(client_->Allocate(4096, {.access = fabric::Access::kNone, .huge_pages = false}));
  std::unique_ptr<fabric::CompletionQueue> completions_ = Take(client_->CreateCompletionQueue(1024));
};

TEST_P(MemoryPoolFabricTest, ARegionsKeyIsGoodForAllOfIt) {
  constexpr auto kOk = fabric::CompletionStatus::kOk;
  constexpr MemberId kMember(1);
  const auto extents = Take(pool_->Allocate(AllocationId(1), kPoolRegionBytes, kMember));
  ASSERT_FALSE(extents.empty());
  const fabric::RemoteAddress at = At(extents[0].offset + 8);
  std::fill_n(local_->data(), 8, std::byte{7});
  EXPECT_EQ(Run(fabric::Opcode::kWrite, at), kOk);
  std::fill_n(local_->data(), 8, std::byte{0});
  EXPECT_EQ(Run(fabric::Opcode::kRead, at), kOk);
  EXPECT_EQ(local_->data()[0], std::byte{7});
  pool_->Close(AllocationId(1), /*attempt=*/0, kMember);
  EXPECT_EQ(pool_->Release(AllocationId(1)).leaving_bytes, 0u);
  const auto next = Take(pool_->Allocate(AllocationId(2), kPoolRegionBytes, kMember));
  ASSERT_EQ(next, extents) << "the same memory";
  EXPECT_EQ(Run(fabric::Opcode::kRead, at), kOk) << "regions stay";
  EXPECT_EQ(local_->data()[0], std::byte{0});
}

INSTANTIATE_TEST_SUITE_P(Fabrics, MemoryPoolFabricTest,
                         testing::Values(fabric::Kind::kShm, fabric::Kind::kTcp),
                         [](const auto& info) { return std::string(fabric::KindName(info.param)); });

}  // namespace
}  // namespace nam::memserver
