#include "txn/rsi/client_log.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "storage/channel.h"
#include "storage/verb_batch.h"
#include "tests/txn/record_cluster.h"
#include "txn/extent_space.h"
#include "txn/timestamps/client_slot.h"

namespace nam::txn {
namespace {

constexpr uint64_t kSegmentsOfAnExtent = kLogSegments - 1;

/// A client with a slot, and its log.
class LogClient {
 public:
  LogClient(RecordCluster& cluster, uint32_t id)
      : member_(cluster, cluster.client(), id),
        channel_(*storage::Channel::Open(member_.fabric(), member_.directory(), {})),
        batch_(*channel_, uint64_t{64} << 20),
        state_(*ExtentSpace::Open(*channel_, member_.State()->extents, kStateBytes)),
        space_(member_.State()->logs, *channel_),
        slot_(ClaimSlot()),
        log_(space_, state_, kGeometry, batch_, slot_, /*log=*/id) {}

  /// The work requests that it takes to begin a log of so many segments.
  uint64_t StartRequests(uint64_t segments) {
    const uint64_t before = batch_.requests_added();
    const auto started = log_.Start(segments * kLogPieceBytesMax);
    EXPECT_TRUE(started.ok()) << started.status();
    batch_.Reset();
    return batch_.requests_added() - before;
  }
  /// All segments that any client has.
  uint64_t SegmentsUsed() {
    uint64_t used = 0;
    ExtentSpace& extents = **space_.Open();
    EXPECT_TRUE(extents.FindNew().ok());
    for (uint64_t extent = 0; extent < extents.extents(); ++extent) {
      auto* const words = reinterpret_cast<uint64_t*>(batch_.Scratch(kLogSegments * 8));
      batch_.Read(*extents.Resolve(extent * kLogExtentBytes), reinterpret_cast<std::byte*>(words),
                  kLogSegments * 8);
      EXPECT_TRUE(batch_.Execute().ok());
      for (uint64_t i = 1; i < kLogSegments; ++i) used += LogSegmentWord(words[i]).used();
    }
    batch_.Reset();
    return used;
  }

 private:
  static constexpr StateGeometry kGeometry{TimestampKind::kLeased};
  ClientSlot ClaimSlot() {
    ClientSlot slot;
    const SlotOwner owner{.member = member_.member().value(), .session = 1};
    EXPECT_TRUE(ClientSlot::Claim(state_, kGeometry, batch_, owner, 0, &slot).ok());
    return slot;
  }

  RecordCluster::Member member_;
  const std::unique_ptr<storage::Channel> channel_;
  storage::VerbBatch batch_;
  ExtentSpace state_;
  LogSpace space_;
  const ClientSlot slot_;
  ClientLog log_;
};

/// A large log looks at each extent of logs once, not once for each of its segments.
TEST(ClientLog, SegmentsOfALargeLogAreTakenTogether) {
  RecordCluster cluster({});
  LogClient one(cluster, 1), other(cluster, 2);
  EXPECT_LE(one.StartRequests(1), 10u);
  constexpr uint64_t kSegments = 3 * kSegmentsOfAnExtent;
  constexpr uint64_t kFew = 20;  // looks at extents, and the slot's word
  EXPECT_LE(one.StartRequests(kSegments), kSegments + kFew);
  EXPECT_EQ(one.SegmentsUsed(), kSegments);
  EXPECT_LE(other.StartRequests(kSegments / 2), kSegments / 2 + kFew);
  EXPECT_EQ(one.SegmentsUsed(), kSegments + kSegments / 2) << "none is two clients'";
  EXPECT_EQ(one.StartRequests(kSegments), 0u) << "it has them";
}

}  // namespace
}  // namespace nam::txn
