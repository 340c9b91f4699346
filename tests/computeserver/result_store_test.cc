#include "computeserver/result_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/random.h"
#include "tests/catalog/fake_fabric.h"

namespace nam::computeserver {
namespace {

using Clients = std::set<MemberId>;
constexpr uint64_t kRegionBytes = 1 << 20;  // more than the shared region is for

class ResultStoreTest : public testing::Test {
 protected:
  /// A result of a region of its own, so that memory tells whether it is still there.
  absl::Status Put(uint64_t attempt, uint32_t client) {
    const std::vector<std::byte> page(kRegionBytes);
    const std::span<const std::byte> pages[] = {page};
    return store_->Put(attempt, MemberId(client), pages).status();
  }

  fabric::FakeFabric fabric_;
  std::unique_ptr<ResultStore> store_ = ResultStore::Create(fabric_).value();
};

TEST_F(ResultStoreTest, ResultsStayAsLongAsTheirClient) {
  ASSERT_TRUE(Put(1, 7).ok());
  ASSERT_TRUE(Put(2, 8).ok());
  ASSERT_TRUE(Put(3, 7).ok());
  EXPECT_EQ(store_->Clients(), (Clients{MemberId(7), MemberId(8)}));
  store_->DropOf(MemberId(7));
  EXPECT_EQ(store_->Clients(), (Clients{MemberId(8)}));
  store_->Release(2, MemberId(8));
  EXPECT_TRUE(store_->empty());
}

/// Clients number their attempts themselves, so one can guess another's number.
TEST_F(ResultStoreTest, NobodyReachesAnothersResult) {
  ASSERT_TRUE(Put(1, 7).ok());
  store_->Release(1, MemberId(8));
  store_->Release(1, MemberId());
  EXPECT_EQ(store_->Clients(), (Clients{MemberId(7)}));
  ASSERT_TRUE(Put(1, 8).ok());
  EXPECT_EQ(store_->Clients(), (Clients{MemberId(7), MemberId(8)})) << "one takes the other's place";
  store_->Release(1, MemberId(7));
  EXPECT_EQ(store_->Clients(), (Clients{MemberId(8)}));
}

/// The window reuses that memory if it is large enough, so that the windows of a result register it once.
TEST_F(ResultStoreTest, AWindowTakesThePlaceOfTheOneBefore) {
  RandomStream random(1);
  std::optional<ResultStore::Place> first;
  for (const uint64_t bytes : {kRegionBytes - 100, kRegionBytes, kRegionBytes / 2 + 1, uint64_t{64},
                               kRegionBytes, 3 * kRegionBytes}) {
    std::vector<std::byte> page(bytes);
    for (std::byte& b : page) b = std::byte{static_cast<uint8_t>(random.Below(256))};
    const std::span<const std::byte> pages[] = {std::span(page).first(bytes / 3),
                                                std::span(page).subspan(bytes / 3)};
    const auto place = store_->Put(1, MemberId(7), pages);
    ASSERT_TRUE(place.ok()) << place.status();
    if (!first.has_value()) first = *place;
    if (bytes > kRegionBytes / 2 && bytes < kRegionBytes) {
      EXPECT_EQ(place->rkey.value, first->rkey.value);
    }
  }
  store_->Release(1, MemberId(7));
  EXPECT_TRUE(store_->empty());
}

}  // namespace
}  // namespace nam::computeserver
