#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "fabric/verbs/datagram_address.h"
#include "fabric/verbs/device_choice.h"
#include "fabric/verbs/memlock.h"
#include "fabric/verbs/verbs_fabric.h"
#include "fabric/verbs/wire.h"

/// The part of the verbs fabric that can be tested without a device. The rest is `./run test verbs`.
namespace nam::fabric::verbs {
namespace {

template <typename T>
auto BytesOf(const T& object) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &object, sizeof(T));
  return bytes;
}

TEST(DeviceChoiceTest, ReadsWhatItDocuments) {
  const auto all = ParseDeviceChoice("mlx5_0:2,gid=13");
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  EXPECT_EQ(all->device, "mlx5_0");
  EXPECT_EQ(all->port, 2);
  EXPECT_EQ(all->gid_index, 13);
  const auto device = ParseDeviceChoice("rxe0");
  ASSERT_TRUE(device.ok());
  EXPECT_FALSE(device->port || device->gid_index);
  EXPECT_EQ(ParseDeviceChoice("rxe0,gid=0")->gid_index, 0);
  EXPECT_EQ(ParseDeviceChoice("")->device, "");
}

TEST(DeviceChoiceTest, RefusesTheRest) {
  for (const char* text : {":1", ",gid=1", "rxe0:", "rxe0:0", "rxe0:256", "rxe0:x", "rxe0,gid=",
                           "rxe0,gid=256", "rxe0,gid=-1", "rxe0,port=1", "rxe0:1:2", "rxe0,gid=1,gid=2"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseDeviceChoice(text).status())) << text;
  }
}

TEST(MemlockTest, NamesNeedLimitAndCommand) {
  const MemlockState state{.limit_bytes = 1 << 20, .pinned_bytes = 512 << 10};
  EXPECT_TRUE(CheckMemlock(state, 512 << 10).ok());
  const absl::Status refused = CheckMemlock(state, (512 << 10) + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  for (const char* part : {"524289", "1048576", "524288", "ulimit -l 1025"}) {
    EXPECT_NE(refused.message().find(part), absl::string_view::npos) << refused.message();
  }
  EXPECT_TRUE(CheckMemlock({.unlimited = true}, uint64_t{1} << 60).ok());
  EXPECT_FALSE(CheckMemlock({.limit_bytes = 1, .pinned_bytes = 2}, 1).ok()) << "pinned more than the limit";
}

TEST(VerbsWireTest, OffersAreCheckedInEveryField) {
  const Offer good{.mtu = 5, .queue_pair = kQueuePairNumberMax, .psn = kPsnMax, .reads_max = 16};
  ASSERT_TRUE(DecodeOffer(BytesOf(good)).has_value());
  for (const Refusal refused : {Refusal::kNoQueuePair, Refusal::kNoSuchMember})
    EXPECT_EQ(DecodeOffer(BytesOf(Offer{.refused = refused}))->refused, refused);
  std::vector<Offer> bad(9, good);
  bad[0].magic ^= 1;
  bad[1].version += 1;
  bad[2].mtu = 0;
  bad[3].mtu = 6;
  bad[4].refused = static_cast<Refusal>(3);
  bad[5].queue_pair = 0;
  bad[6].queue_pair = kQueuePairNumberMax + 1;
  bad[7].psn = kPsnMax + 1;
  bad[8].zero = 1;
  for (size_t i = 0; i < bad.size(); ++i) EXPECT_FALSE(DecodeOffer(BytesOf(bad[i])).has_value()) << i;
}

TEST(VerbsWireTest, FramesAreCheckedInEveryField) {
  const Frame good{.kind = FrameKind::kEnded, .status = CompletionStatus::kFlushed, .access = Access::kAll};
  ASSERT_TRUE(DecodeFrame(BytesOf(good)).has_value());
  for (const size_t at : {offsetof(Frame, magic), offsetof(Frame, kind), offsetof(Frame, status),
                          offsetof(Frame, access), offsetof(Frame, zero), offsetof(Frame, reserved)}) {
    auto bytes = BytesOf(good);
    bytes[at] = std::byte{0xff};
    EXPECT_FALSE(DecodeFrame(bytes).has_value()) << at;
  }
  auto none = BytesOf(good);
  none[offsetof(Frame, kind)] = std::byte{0};
  EXPECT_FALSE(DecodeFrame(none).has_value());
}

TEST(DatagramAddressTest, SurvivesTheWay) {
  ibv_gid v6{};
  v6.raw[0] = 0x20;
  v6.raw[15] = 7;
  for (const ibv_gid& gid : {v6, ParseDatagramAddress("10.1.2.3#5#0")->gid}) {
    const std::string text = FormatDatagramAddress({gid, 1234, 9});
    const auto parsed = ParseDatagramAddress(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(std::memcmp(parsed->gid.raw, gid.raw, 16), 0);
    EXPECT_EQ(parsed->queue_pair, 1234u);
    EXPECT_EQ(parsed->lid, 9);
  }
  const auto group = ParseGroupAddress(FormatGroupAddress({GroupGid(0x010203), v6, 77}));
  ASSERT_TRUE(group.ok());
  EXPECT_EQ(GidText(group->group), "239.1.2.3");
  EXPECT_EQ(group->queue_pair, 77u);
}

TEST(DatagramAddressTest, NonsenseIsRefused) {
  for (const char* text :
       {"", "#", "##", "10.0.0.1#1", "10.0.0.1#0#0", "10.0.0.1#16777216#0", "10.0.0.1#1#65536",
        "10.0.0.1#1#0x", "10.0.0#1#0", "239.0.0.1#5#0", "10.0.0.1#-1#0"}) {
    EXPECT_FALSE(ParseDatagramAddress(text).ok()) << text;
  }
  for (const char* text :
       {"", "10.0.0.1#10.0.0.2#5", "239.0.0.1#10.0.0.2", "239.0.0.1#10.0.0.2#0", "239.0.0.1#x#5"}) {
    EXPECT_FALSE(ParseGroupAddress(text).ok()) << text;
  }
}

TEST(OpenVerbsTest, SaysWhatIsMissing) {
  EXPECT_TRUE(absl::IsInvalidArgument(OpenVerbs({.kind = Kind::kVerbs}).status())) << "no secret";
  const auto nonsense = OpenVerbs({.kind = Kind::kVerbs, .secret = "s", .rdma = "rxe0:x"});
  EXPECT_TRUE(absl::IsInvalidArgument(nonsense.status())) << nonsense.status().ToString();
  const absl::Status none =
      OpenVerbs({.kind = Kind::kVerbs, .secret = "s", .rdma = "no_such_device"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none.ToString();
  EXPECT_NE(none.message().find("device"), absl::string_view::npos) << none.ToString();
}

}  // namespace
}  // namespace nam::fabric::verbs
