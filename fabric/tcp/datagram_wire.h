#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "fabric/fabric.h"

/// A datagram of the tcp fabric: one UDP datagram, to a queue pair's socket or to an IP multicast group.
/// All integers little-endian:
///
///      0  magic:4     "NAMU"
///      4  version:2
///      6  bytes:2     of the payload, 0 to 4096
///      8  sender:8    the sending queue pair, random: picks the key of `tag`
///     16  target:8    the receiving queue pair or the group, random, from its address
///     24  sequence:8  of the sender, never twice: the nonce of `tag`
///     32  tag:16      AES-128-GMAC of bytes 0 to 31 and the payload (see datagram_key.h)
///     48  payload
///
/// 4,096 payload bytes take 4,172 bytes on an Ethernet: IP fragments them, and losing a fragment loses the
/// datagram. The target prevents a datagram recorded on its way to one receiver from being replayed to
/// another. A replay to the same receiver is a duplicate, which datagrams allow. If the data plane is
/// encrypted, payload and tag are AES-128-GCM's; otherwise nothing is encrypted.
///
/// An address is a text `ADDRESS:PORT/TARGET` with 16 hexadecimal digits:
///
///     10.0.0.2:41234/00c0ffee00c0ffee     a queue pair: its socket
///     239.192.0.7:20815/0123456789abcdef  group 7: its number inside the organisation-local 239.192.0.0/14,
///                                         a random port of 20000 to 28191, the group's id
///
/// Group numbers that differ by a multiple of 2^18 share an IP address; port and target tell them apart.
namespace nam::fabric::tcp {

static_assert(std::endian::native == std::endian::little, "headers are used in place");

inline constexpr uint32_t kDatagramMagic = 0x554d414e;  // "NAMU"
inline constexpr uint16_t kDatagramVersion = 1;

using DatagramTag = std::array<uint8_t, 16>;

struct DatagramHeader {
  uint32_t magic = kDatagramMagic;
  uint16_t version = kDatagramVersion;
  uint16_t bytes = 0;
  uint64_t sender = 0;
  uint64_t target = 0;
  uint64_t sequence = 0;
  DatagramTag tag{};
};
static_assert(sizeof(DatagramHeader) == 48 && offsetof(DatagramHeader, sender) == 8 &&
              offsetof(DatagramHeader, sequence) == 24 && offsetof(DatagramHeader, tag) == 32);
static_assert(kMaxDatagramBytes <= UINT16_MAX);

/// Accepts arbitrary bytes from the network; `payload_bytes` follow the header. Nothing: not this protocol.
/// The result is well-formed but not yet authenticated.
std::optional<DatagramHeader> DecodeDatagram(std::span<const std::byte, sizeof(DatagramHeader)> header_bytes,
                                             size_t payload_bytes);

/// A datagram's destination, in host byte order.
struct DatagramAddress {
  uint32_t ip = 0;
  uint16_t port = 0;
  uint64_t target = 0;
  bool is_group() const { return ip >> 28 == 0xe; }  // 224.0.0.0/4
};
std::string FormatDatagramAddress(const DatagramAddress& address);
/// Nothing unless FormatDatagramAddress produces `text`.
std::optional<DatagramAddress> ParseDatagramAddress(const std::string& text);

/// The address of group `number`, at a port derived from `random_port`.
DatagramAddress MakeGroupAddress(uint32_t number, uint64_t random_port, uint64_t target);

}  // namespace nam::fabric::tcp
