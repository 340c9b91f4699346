#include "bench/card_use.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/fabric/sim_cluster.h"

/// The accounting of simulated cards, by operations whose use of each unit is known.
namespace nam::bench {
namespace {

using fabric::WorkRequest;
using fabric::sim::Client;
using fabric::sim::MemoryServer;
using fabric::sim::NicModel;
using fabric::sim::World;

constexpr int kPostedOperations = 10;
constexpr uint32_t kBytes = 1'000;

class CardUseTest : public ::testing::Test {
 protected:
  CardUseTest() : world_({}), server_(world_, "m0"), client_(world_, "c0", server_) {}

  std::vector<CardUse> Measure(const WorkRequest& request) {
    const CardWatch watch(world_, NicModel(), {{"m0", CardRole::kRows}, {"c0", CardRole::kClients}});
    for (int i = 0; i < kPostedOperations; ++i) EXPECT_TRUE(client_.Run(request).ok());
    elapsed_us_ = static_cast<double>(watch.elapsed_ns()) / 1e3;
    return watch.Uses();
  }
  double BytesUse(double bytes) const {
    return kPostedOperations * bytes /
           (elapsed_us_ * static_cast<double>(model_.port_bytes_per_us) * model_.ports);
  }
  double MessagesUse() const {
    return kPostedOperations / (elapsed_us_ * static_cast<double>(model_.messages_per_us));
  }
  double WordUse(double atomics) const {
    return atomics * static_cast<double>(model_.atomic_ns) / 1e3 / elapsed_us_;
  }

  const NicModel model_;
  World world_;
  MemoryServer server_;
  Client client_;
  double elapsed_us_ = 0;
};

TEST_F(CardUseTest, AReadFillsTheServersWayOutAndTheClientsWayIn) {
  const auto uses = Measure(WorkRequest::Read(1, client_.local->Slice(0, kBytes), client_.At(0)));
  const double header = model_.packet_overhead_bytes;
  EXPECT_NEAR(uses[0].bytes_out, BytesUse(kBytes + header), 1e-9);
  EXPECT_NEAR(uses[0].bytes_in, BytesUse(header), 1e-9);
  EXPECT_NEAR(uses[1].bytes_in, BytesUse(kBytes + header), 1e-9);
  EXPECT_NEAR(uses[1].bytes_out, BytesUse(header), 1e-9);
  for (const CardUse& use : uses) {
    EXPECT_NEAR(use.messages_out, MessagesUse(), 1e-9);
    EXPECT_NEAR(use.messages_in, MessagesUse(), 1e-9);
    EXPECT_EQ(use.word, 0) << "no atomics";
    EXPECT_EQ(use.messages, 2 * kPostedOperations);
  }
  EXPECT_EQ(uses[0].Busiest().what, "m0, bytes out");
  EXPECT_EQ(BusiestOf(uses)->card.host, "m0") << "of equally busy cards the first";
}

TEST_F(CardUseTest, AtomicsKeepTheirWordAndItIsNamed) {
  const CardWatch before(world_, model_, {{"m0", CardRole::kState}});
  for (int i = 0; i < 3 * kPostedOperations; ++i) EXPECT_TRUE(client_.Add(8).ok());
  const CardWatch watch(world_, model_, {{"m0", CardRole::kState}, {"c0", CardRole::kClients}});
  for (int i = 0; i < kPostedOperations; ++i) {
    EXPECT_TRUE(client_.Add(16).ok());
    EXPECT_TRUE(client_.Add(24).ok());
  }
  EXPECT_TRUE(client_.Add(24).ok());
  elapsed_us_ = static_cast<double>(watch.elapsed_ns()) / 1e3;
  const std::vector<CardUse> uses = watch.Uses();
  EXPECT_NEAR(uses[0].word, WordUse(kPostedOperations + 1), 1e-9) << "of one word, since the watch began";
  EXPECT_EQ(uses[0].where.offset, 24u);
  EXPECT_EQ(uses[0].where.rkey, client_.rkey);
  EXPECT_EQ(uses[1].word, 0) << "a word belongs to the responder's card";
  EXPECT_EQ(BusiestOf(uses)->Busiest().what, "m0, atomics on one word");
}

}  // namespace
}  // namespace nam::bench
