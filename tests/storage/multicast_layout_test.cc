#include "storage/multicast_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "storage/multicast_window.h"

namespace nam::storage {
namespace {

std::vector<std::byte> Datagram(FragmentHeader header) {
  std::vector<std::byte> bytes(sizeof(header) + header.bytes);
  EncodeFragmentHeader(header, bytes.data());
  return bytes;
}

/// Fragment `fragment` of a block of 1,000 bytes in steps of 300.
FragmentHeader Third(uint32_t fragment) {
  return {.magic = FragmentHeader::kMagic,
          .datagram = 7 + fragment,
          .stream = 99,
          .block = 5,
          .block_bytes = 1000,
          .offset = 300 * fragment,
          .bytes = std::min(300u, 1000 - 300 * fragment),
          .fragment = fragment,
          .fragments = 4};
}

TEST(FragmentTest, ComesBackAsItWasSent) {
  for (uint32_t fragment = 0; fragment < 4; ++fragment) {
    const FragmentHeader header = Third(fragment);
    const auto bytes = Datagram(header);
    const auto decoded = DecodeFragment(bytes);
    ASSERT_TRUE(decoded.has_value()) << fragment;
    EXPECT_EQ(std::memcmp(&decoded->header, &header, sizeof(header)), 0);
    EXPECT_EQ(decoded->payload.size(), header.bytes);
    EXPECT_EQ(decoded->payload.data(), bytes.data() + sizeof(header));
  }
}

TEST(FragmentTest, RefusesWhatContradictsItself) {
  const auto refused = [](auto change, uint32_t fragment = 1) {
    FragmentHeader header = Third(fragment);
    const size_t bytes = sizeof(header) + header.bytes;
    change(header);
    std::vector<std::byte> datagram(bytes);
    EncodeFragmentHeader(header, datagram.data());
    return !DecodeFragment(datagram).has_value();
  };
  EXPECT_FALSE(refused([](FragmentHeader&) {}));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.magic ^= 1; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.block = kMulticastBlocksMax; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.datagram = kMulticastDatagramsMax; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.block_bytes = (1u << 20) + 1; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.block_bytes = 599; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.offset = 301; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.offset = 0xffffffff; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.bytes = 299; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.bytes = 0; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.fragment = 4; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.fragments = 3; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.fragments = 0; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.fragments = 1; }));
  EXPECT_TRUE(refused([](FragmentHeader& h) { h.offset = 899; }, 3));
  EXPECT_TRUE(refused(
      [](FragmentHeader& h) {
        h.fragments = 1u << 31;
        h.fragment = (1u << 31) - 1;
      },
      3));
}

TEST(FragmentTest, NoBytesAreTrusted) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200'000; ++round) {
    auto bytes = Datagram(Third(random() % 4));
    bytes.resize(random() % 8 == 0 ? random() % 400 : bytes.size());
    for (int i = 0; i < 3 && !bytes.empty(); ++i) {
      const size_t at = random() % std::min<size_t>(bytes.size(), sizeof(FragmentHeader));
      bytes[at] = static_cast<std::byte>(random());
    }
    const auto decoded = DecodeFragment(bytes);
    if (!decoded) continue;
    const FragmentHeader& h = decoded->header;
    EXPECT_LE(uint64_t{h.offset} + h.bytes, h.block_bytes);
    EXPECT_LT(h.fragment, h.fragments);
    EXPECT_LT(h.block, kMulticastBlocksMax);
    EXPECT_LT(h.datagram, kMulticastDatagramsMax);
    EXPECT_EQ(decoded->payload.size(), h.bytes);
  }
}

/// Blocks of 2, 1, 3 and 1 datagrams of 100 bytes: the first datagrams are 0, 2, 3, 6.
class WindowTest : public ::testing::Test {
 protected:
  const std::vector<uint32_t> bytes_{150, 100, 201, 1};
  MulticastWindow window_{bytes_, 100, /*datagrams_max=*/4, /*blocks_max=*/2};
};

TEST_F(WindowTest, KnowsItsSendersHeaders) {
  EXPECT_EQ(window_.datagrams(), 7u);
  FragmentHeader header{.magic = FragmentHeader::kMagic,
                        .datagram = 5,
                        .stream = 1,
                        .block = 2,
                        .block_bytes = 201,
                        .offset = 200,
                        .bytes = 1,
                        .fragment = 2,
                        .fragments = 3};
  EXPECT_TRUE(window_.Matches(header));
  FragmentHeader other = header;
  other.datagram = 4;
  EXPECT_FALSE(window_.Matches(other));
  other = header;
  other.block = 4;
  EXPECT_FALSE(window_.Matches(other));
  other = header;
  other.block_bytes = 200;
  EXPECT_FALSE(window_.Matches(other));
  other = header;
  other.fragments = 4;
  EXPECT_FALSE(window_.Matches(other));
  // Shorter, although as many of that length would make up the block.
  other = header;
  other.datagram = 3;
  other.offset = other.fragment = 0;
  other.bytes = 100;
  EXPECT_TRUE(window_.Matches(other));
  other.bytes = 90;
  EXPECT_FALSE(window_.Matches(other));
}

TEST_F(WindowTest, ABlockIsLostOnceEnoughLaterDatagramsCame) {
  EXPECT_EQ(window_.NextLost(2), std::nullopt);
  window_.Passed(3);
  EXPECT_EQ(window_.NextLost(2), std::nullopt);
  window_.Passed(5);  // block 0 ends before 2, block 1 before 3
  window_.SetHas(0);
  EXPECT_EQ(window_.NextLost(2), 1u);
  EXPECT_EQ(window_.NextLost(2), std::nullopt);
  window_.Passed(2);  // never back
  EXPECT_EQ(window_.next(), 5u);
  window_.Passed(1000);
  EXPECT_EQ(window_.next(), 7u);
  EXPECT_EQ(window_.NextLost(0), 2u);
  EXPECT_FALSE(window_.judged());
  EXPECT_EQ(window_.NextLost(0), 3u);
  EXPECT_TRUE(window_.judged());
  EXPECT_EQ(window_.NextLost(0), std::nullopt);
}

TEST_F(WindowTest, CreditIsBoundedByReceivesAndByBlocksNotTaken) {
  EXPECT_EQ(window_.Credit(), 3u);  // two blocks
  window_.Taken();
  EXPECT_EQ(window_.Credit(), 4u);  // four datagrams
  window_.Passed(3);
  EXPECT_EQ(window_.Credit(), 6u);  // three blocks
  window_.Taken(), window_.Taken(), window_.Taken();
  EXPECT_EQ(window_.Credit(), 7u);
}

}  // namespace
}  // namespace nam::storage
