#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/tcp/datagram_key.h"
#include "fabric/tcp/datagram_wire.h"
#include "fabric/tcp/tcp_fabric.h"
#include "tests/fabric/tcp_connection.h"

/// Attacks on UDP datagrams, and tcp's own features: keys, sockets, interfaces.
namespace nam::fabric {
namespace {

using tcp::DatagramHeader;

constexpr uint32_t kSlotBytes = kDatagramHeadroomBytes + kMaxDatagramBytes;

/// A UDP socket for hand-made datagrams.
class RawSocket {
 public:
  RawSocket() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = At(INADDR_LOOPBACK, 0);
    socklen_t length = sizeof(own);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    EXPECT_EQ(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&own), &length), 0);
    port_ = ntohs(own.sin_port);
    const timeval timeout{60, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  }
  uint16_t port() const { return port_; }
  void Send(const std::string& address, const std::vector<std::byte>& bytes) {
    const auto parsed = tcp::ParseDatagramAddress(address);
    ASSERT_TRUE(parsed.has_value());
    const sockaddr_in to = At(parsed->ip, parsed->port);
    ASSERT_EQ(
        sendto(fd_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
        static_cast<ssize_t>(bytes.size()));
  }
  std::vector<std::byte> Receive() {
    std::vector<std::byte> bytes(1 << 16);
    const ssize_t received = recv(fd_.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(received < 0 ? 0 : static_cast<size_t>(received));
    return bytes;
  }

 private:
  static sockaddr_in At(uint32_t ip, uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(ip);
    return address;
  }
  UniqueFd fd_;
  uint16_t port_ = 0;
};

/// A queue pair with 64 receives, and room for sends behind them.
struct Peer {
  static constexpr uint32_t kReceives = 64;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<MemoryRegion> memory;
  std::unique_ptr<DatagramQueuePair> pair;

  explicit Peer(Fabric& fabric)
      : completions(fabric.CreateCompletionQueue(2 * kReceives).value()),
        memory(fabric.Allocate((kReceives + 1) * kSlotBytes, {.huge_pages = false}).value()),
        pair(fabric
                 .CreateDatagramQueuePair(*completions, {.send_depth = kReceives, .receive_depth = kReceives})
                 .value()) {
    for (uint32_t i = 0; i < kReceives; ++i) PostReceive(i);
  }
  void PostReceive(uint64_t id) {
    const ReceiveRequest receive{.id = id, .into = memory->Slice(id * kSlotBytes, kSlotBytes)};
    ASSERT_TRUE(pair->PostReceive({&receive, 1}).ok());
  }
  void Send(DatagramTarget to, uint32_t bytes, uint8_t fill) {
    const LocalBuffer buffer = memory->Slice(kReceives * kSlotBytes, bytes);
    std::memset(buffer.data, fill, bytes);
    const DatagramRequest request{.id = 1, .local = buffer, .to = to};
    ASSERT_TRUE(pair->Post({&request, 1}).ok());
    Completion completion;
    ASSERT_EQ(completions->Wait({&completion, 1}, RealClock().After(60'000'000)), 1u);
    ASSERT_EQ(completion.opcode, Opcode::kSend);
  }
  /// The bytes of the next datagram, all of which are `fill`. The loopback does not lose it.
  void Expect(uint32_t bytes, uint8_t fill) {
    Completion completion;
    ASSERT_EQ(completions->Wait({&completion, 1}, RealClock().After(60'000'000)), 1u);
    ASSERT_EQ(completion.opcode, Opcode::kReceive);
    EXPECT_EQ(completion.bytes, bytes);
    const std::byte* const payload = memory->data() + completion.id * kSlotBytes + kDatagramHeadroomBytes;
    for (uint32_t i = 0; i < completion.bytes; ++i) ASSERT_EQ(payload[i], std::byte{fill});
    PostReceive(completion.id);
  }
  void ExpectNothing() {
    Completion completion;
    EXPECT_EQ(completions->Wait({&completion, 1}, RealClock().After(5000)), 0u);
  }
};

class TcpDatagramTest : public testing::Test {
 protected:
  static std::unique_ptr<Fabric> OpenFabric() {
    return OpenTcp({.kind = Kind::kTcp, .secret = kSecret}).value();
  }
  /// `victim`'s address, with the port of a man in the middle.
  static std::string AddressVia(const RawSocket& between, const Peer& victim) {
    auto address = *tcp::ParseDatagramAddress(victim.pair->address());
    address.port = between.port();
    return tcp::FormatDatagramAddress(address);
  }

  std::unique_ptr<Fabric> fabric_ = OpenFabric();
  std::unique_ptr<Fabric> other_ = OpenFabric();
  Peer receiver_{*fabric_};
  Peer sender_{*other_};
};

TEST_F(TcpDatagramTest, GarbageCostsNobodyAnything) {
  RawSocket stranger;
  const DatagramTarget group = sender_.pair->OpenGroup(1).value();
  const std::string group_address = sender_.pair->GroupAddress(group).value();
  ASSERT_TRUE(receiver_.pair->Join(group_address).ok());
  std::vector<std::vector<std::byte>> garbage = {{}};
  for (const size_t bytes : {1, 47, 48, 49, 4096, 4144, 4145, 65'507}) {
    garbage.emplace_back(bytes, std::byte{0});
    garbage.emplace_back(bytes, std::byte{0xff});
    // A genuine header in front that states these bytes, or another number.
    for (const size_t said : {bytes - 48, bytes, size_t{0}}) {
      const DatagramHeader header{.bytes = static_cast<uint16_t>(said),
                                  .target = tcp::ParseDatagramAddress(receiver_.pair->address())->target};
      auto& forged = garbage.emplace_back(bytes, std::byte{7});
      std::memcpy(forged.data(), &header, std::min(bytes, sizeof(header)));
    }
  }
  const DatagramTarget there = sender_.pair->Resolve(receiver_.pair->address()).value();
  for (const auto& bytes : garbage) {
    for (const std::string& address : {receiver_.pair->address(), group_address})
      stranger.Send(address, bytes);
    sender_.Send(there, 100, 1);
    receiver_.Expect(100, 1);
    sender_.Send(group, 200, 2);
    receiver_.Expect(200, 2);
  }
  receiver_.ExpectNothing();
  EXPECT_EQ(fabric_->datagram_drops().refused, 2 * garbage.size());
  EXPECT_EQ(fabric_->datagram_drops().no_receive, 0u);
}

TEST_F(TcpDatagramTest, OneWhoStandsBetweenChangesNothingUnnoticed) {
  RawSocket between;
  Peer third(*fabric_);
  const DatagramTarget there = sender_.pair->Resolve(AddressVia(between, receiver_)).value();
  sender_.Send(there, 64, 5);
  const auto genuine = between.Receive();
  ASSERT_EQ(genuine.size(), sizeof(DatagramHeader) + 64);
  for (size_t at = 0; at < genuine.size(); ++at) {
    auto changed = genuine;
    changed[at] ^= std::byte{static_cast<uint8_t>(1 << at % 8)};
    between.Send(receiver_.pair->address(), changed);
  }
  auto shorter = genuine;
  shorter.pop_back();
  between.Send(receiver_.pair->address(), shorter);
  receiver_.ExpectNothing();
  between.Send(third.pair->address(), genuine);
  third.ExpectNothing();
  EXPECT_EQ(fabric_->datagram_drops().refused, genuine.size() + 2);
  // Unchanged it arrives, and once more: a duplicate.
  for (int i = 0; i < 2; ++i) {
    between.Send(receiver_.pair->address(), genuine);
    receiver_.Expect(64, 5);
  }
}

TEST_F(TcpDatagramTest, NoNonceIsUsedTwice) {
  RawSocket between;
  const DatagramTarget there = sender_.pair->Resolve(AddressVia(between, receiver_)).value();
  DatagramHeader last{.sequence = ~uint64_t{0}};
  for (int i = 0; i < 100; ++i) {
    sender_.Send(there, 8, 1);
    const auto bytes = between.Receive();
    DatagramHeader header;
    ASSERT_EQ(bytes.size(), sizeof(header) + 8);
    std::memcpy(&header, bytes.data(), sizeof(header));
    EXPECT_EQ(header.sequence, last.sequence + 1);
    EXPECT_NE(header.tag, last.tag) << "of the same payload";
    last = header;
  }
}

TEST_F(TcpDatagramTest, OverrunsAreCounted) {
  const DatagramTarget there = sender_.pair->Resolve(receiver_.pair->address()).value();
  constexpr uint64_t kSent = 40'000;  // far more than any socket holds
  for (uint64_t i = 0; i < kSent; ++i) sender_.Send(there, kMaxDatagramBytes, 3);
  uint64_t received = 0;
  std::array<Completion, 64> some;
  while (const size_t count = receiver_.completions->Poll(some)) {
    for (size_t i = 0; i < count; ++i) receiver_.PostReceive(some[i].id);
    received += count;
  }
  const DatagramDrops drops = fabric_->datagram_drops();
  EXPECT_GT(received, 0u);
  EXPECT_GT(drops.overrun, 0u);
  EXPECT_EQ(received + drops.overrun + drops.no_receive, kSent);
  receiver_.pair.reset();
  EXPECT_EQ(fabric_->datagram_drops().overrun, drops.overrun) << "also when the socket is gone";
}

TEST_F(TcpDatagramTest, TheInterfaceIsAnOption) {
  const auto create = [](const FabricOptions& options) -> absl::Status {
    const auto fabric = OpenTcp(options);
    if (!fabric.ok()) return fabric.status();
    const auto completions = (*fabric)->CreateCompletionQueue(16).value();
    const auto pair = (*fabric)->CreateDatagramQueuePair(*completions, {.send_depth = 8, .receive_depth = 8});
    if (!pair.ok()) return pair.status();
    return (*pair)->OpenGroup(1).status();
  };
  FabricOptions options{.kind = Kind::kTcp, .secret = kSecret};
  for (const char* loopback : {"", "127.0.0.1", "127.0.0.2", "localhost", "lo"}) {
    options.multicast_interface = loopback;
    EXPECT_TRUE(create(options).ok()) << loopback << ": " << create(options);
  }
  options.multicast_interface = "nosuch0";
  const absl::Status nosuch = OpenTcp(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(nosuch)) << "not only when the first datagram is sent: " << nosuch;
  for (const char* part : {"nosuch0", "--multicast-interface", "ip -4 addr"}) {
    EXPECT_NE(nosuch.message().find(part), absl::string_view::npos) << nosuch;
  }
  options.multicast_interface = "203.0.113.77";
  EXPECT_TRUE(absl::IsFailedPrecondition(create(options))) << create(options);
  options.multicast_interface = "";
  options.host = "localhost";
  EXPECT_TRUE(create(options).ok());
  options.multicast_ttl = 256;
  EXPECT_TRUE(absl::IsInvalidArgument(create(options)));
}

TEST(TcpDatagramWire, WhatIsDecodedIsWithinBounds) {
  EXPECT_TRUE(rc::check("a datagram decodes to what was sent, within bounds, or not at all", [] {
    const auto said = *rc::gen::inRange<uint16_t>(0, 5000);
    const DatagramHeader start{.bytes = said};
    std::array<std::byte, sizeof(start)> bytes;
    std::memcpy(bytes.data(), &start, sizeof(start));
    const auto spoiled =
        *rc::gen::resize(2, rc::gen::container<std::vector<std::pair<uint8_t, uint8_t>>>(rc::gen::pair(
                                rc::gen::inRange<uint8_t>(0, sizeof(start)), rc::gen::arbitrary<uint8_t>())));
    for (const auto& [at, value] : spoiled) bytes[at] = std::byte{value};
    const size_t payload_bytes = *rc::gen::element<size_t>(said, 0, 4096, 4097, 65'535);
    const auto decoded = tcp::DecodeDatagram(bytes, payload_bytes);
    RC_CLASSIFY(decoded.has_value());
    if (!decoded) return;
    RC_ASSERT(decoded->bytes == payload_bytes && payload_bytes <= kMaxDatagramBytes);
    RC_ASSERT(std::memcmp(&*decoded, bytes.data(), bytes.size()) == 0);
  }));
}

TEST(TcpDatagramWire, AddressesAreReadAsTheyAreWritten) {
  EXPECT_TRUE(rc::check("an address is read as it was written", [] {
    const tcp::DatagramAddress address{*rc::gen::arbitrary<uint32_t>(),
                                       *rc::gen::inRange<uint16_t>(1, 65'535),
                                       *rc::gen::arbitrary<uint64_t>()};
    const std::string text = tcp::FormatDatagramAddress(address);
    const auto read = tcp::ParseDatagramAddress(text);
    RC_ASSERT(read.has_value() && read->ip == address.ip && read->port == address.port &&
              read->target == address.target);
    RC_ASSERT(!tcp::ParseDatagramAddress(" " + text).has_value());
    RC_ASSERT(!tcp::ParseDatagramAddress(text.substr(0, text.size() - 1)).has_value());
  }));
  for (const char* text :
       {"1.2.3.4:0/0000000000000001", "1.2.3.4:65536/0000000000000001", "256.2.3.4:1/0000000000000001",
        "01.2.3.4:1/0000000000000001", "1.2.3.4:1/000000000000000G", "1.2.3.4:1/0x00000000000001",
        "1.2.3:1/0000000000000001"}) {
    EXPECT_FALSE(tcp::ParseDatagramAddress(text).has_value()) << text;
  }
  EXPECT_TRUE(tcp::MakeGroupAddress(7, 3, 1).is_group());
  EXPECT_EQ(tcp::FormatDatagramAddress(tcp::MakeGroupAddress(7, 815, 1)),
            "239.192.0.7:20815/0000000000000001");
  EXPECT_EQ(tcp::FormatDatagramAddress(tcp::MakeGroupAddress(~0u, 8191, 1)),
            "239.195.255.255:28191/0000000000000001");
}

TEST(TcpDatagramKey, IsOfSecretAndSender) {
  const std::vector<std::byte> payload(100, std::byte{1});
  DatagramHeader header{.bytes = 100, .sender = 1, .sequence = 1};
  header.tag = tcp::DatagramKey("secret", 1).Sign(header, payload);
  EXPECT_TRUE(tcp::DatagramKey("secret", 1).Verify(header, payload));
  EXPECT_FALSE(tcp::DatagramKey("secret", 2).Verify(header, payload));
  EXPECT_FALSE(tcp::DatagramKey("Secret", 1).Verify(header, payload));
  header.sequence = 2;
  EXPECT_FALSE(tcp::DatagramKey("secret", 1).Verify(header, payload));
}

TEST(TcpDatagramKey, ManySendersAreVerifiedInBoundedMemory) {
  tcp::DatagramVerifier verifier("secret");
  for (uint64_t round = 0; round < 2; ++round) {
    for (uint64_t sender = 0; sender < 3000; ++sender) {
      DatagramHeader header{.sender = sender, .sequence = round};
      header.tag = tcp::DatagramKey("secret", sender).Sign(header, {});
      ASSERT_TRUE(verifier.Verify(header, {}));
      header.tag[3] ^= 1;
      ASSERT_FALSE(verifier.Verify(header, {}));
    }
  }
}

}  // namespace
}  // namespace nam::fabric
