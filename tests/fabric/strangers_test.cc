#include "fabric/strangers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdint>
#include <set>
#include <vector>

#include "fabric/net/acceptor.h"

namespace nam::fabric {
namespace {

constexpr size_t kPlaces = 256;

TEST(StrangersTest, ACrowdLosesItsOwnPlaces) {
  std::vector<uint64_t> sources(kPlaces, 1);
  for (size_t i = 0; i < kPlaces / 2; ++i) sources[2 * i] = 1'000 + i;
  std::set<size_t> leavers;
  for (uint64_t random = 0; random < 10 * kPlaces; ++random) leavers.insert(ChooseLeaver(sources, random));
  for (const size_t leaver : leavers) EXPECT_EQ(sources[leaver], 1u);
  EXPECT_EQ(leavers.size(), kPlaces / 4) << "each of its older half";
}

TEST(StrangersTest, TheYoungerHalfIsSafeAndChanceDecidesAmongTheOlder) {
  std::vector<uint64_t> apart;
  for (size_t i = 0; i < kPlaces; ++i) apart.push_back(i);
  for (const std::vector<uint64_t>& sources : {apart, std::vector<uint64_t>(kPlaces, 1)}) {
    std::set<size_t> leavers;
    for (uint64_t random = 0; random < 10 * kPlaces; ++random) leavers.insert(ChooseLeaver(sources, random));
    EXPECT_EQ(leavers.size(), kPlaces / 2);
    EXPECT_EQ(*leavers.rbegin(), kPlaces / 2 - 1);
  }
  EXPECT_EQ(ChooseLeaver(std::vector<uint64_t>{7}, 12'345), 0u);
}

sockaddr_storage PeerAt(const char* address) {
  sockaddr_storage peer{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(peer);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(peer);
  const bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
  peer.ss_family = is_v4 ? AF_INET : AF_INET6;
  EXPECT_TRUE(is_v4 || inet_pton(AF_INET6, address, &v6.sin6_addr) == 1);
  return peer;
}

/// A listener on [::] sees IPv4 hosts in one network of IPv6.
TEST(StrangersTest, ASourceIsAHostHoweverItsAddressIsWritten) {
  using net::SourceOf;
  EXPECT_NE(SourceOf(PeerAt("::ffff:10.0.0.1")), SourceOf(PeerAt("::ffff:10.0.0.2")));
  EXPECT_EQ(SourceOf(PeerAt("::ffff:10.0.0.1")), SourceOf(PeerAt("10.0.0.1")));
  EXPECT_EQ(SourceOf(PeerAt("2001:db8::1")), SourceOf(PeerAt("2001:db8::2:1"))) << "a host has them all";
  EXPECT_NE(SourceOf(PeerAt("2001:db8::1")), SourceOf(PeerAt("2001:db8:0:1::1")));
}

TEST(StrangersTest, MostDescriptorsAreLeftForOthers) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 200;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(StrangersMax(), 25u);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LE(StrangersMax(), kPlaces);
}

}  // namespace
}  // namespace nam::fabric
