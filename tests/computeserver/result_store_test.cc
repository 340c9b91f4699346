#include "computeserver/result_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "tests/catalog/fake_fabric.h"

namespace nam::computeserver {
namespace {

using Clients = std::set<MemberId>;
constexpr uint64_t kRegionBytes = 1 << 20;  // more than what the shared region is for

class ResultStoreTest : public testing::Test {
 protected:
  /// A result of a region of its own, so that memory tells whether it is still there.
  absl::Status Put(uint64_t attempt, uint32_t client) {
    const std::vector<std::byte> page(kRegionBytes);
    const std::span<const std::byte> pages[] = {page};
    return store_->Put(attempt, MemberId(client), pages).status();
  }

  fabric::FakeFabric fabric_;
  std::unique_ptr<ResultStore> store_ = ResultStore::Create(fabric_, /*old_us=*/-1'000'000).value();
};

TEST_F(ResultStoreTest, ResultsStayAsLongAsTheirClient) {
  ASSERT_TRUE(Put(1, 7).ok());
  ASSERT_TRUE(Put(2, 8).ok());
  store_->DropAbandoned([] { return Clients{MemberId(7), MemberId(8)}; });
  EXPECT_FALSE(store_->empty());
  store_->DropAbandoned([] { return Clients{MemberId(8)}; });
  store_->Release(2);
  EXPECT_TRUE(store_->empty());
}

TEST_F(ResultStoreTest, NothingIsDroppedUnheard) {
  ASSERT_TRUE(Put(1, 7).ok());
  store_->DropAbandoned([] { return absl::UnavailableError("no catalog"); });
  EXPECT_FALSE(store_->empty());
  store_->DropAbandoned([] { return Clients(); });
  EXPECT_TRUE(store_->empty());
}

TEST_F(ResultStoreTest, YoungResultsAskForNobody) {
  const auto store = ResultStore::Create(fabric_).value();
  const std::vector<std::byte> page(64);
  const std::span<const std::byte> pages[] = {page};
  ASSERT_TRUE(store->Put(1, MemberId(7), pages).ok());
  store->DropAbandoned([]() -> absl::StatusOr<Clients> {
    ADD_FAILURE() << "the catalog is asked for each query";
    return Clients();
  });
  EXPECT_FALSE(store->empty());
}

}  // namespace
}  // namespace nam::computeserver
