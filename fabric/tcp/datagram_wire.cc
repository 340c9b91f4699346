#include "fabric/tcp/datagram_wire.h"

#include <cstdio>
#include <cstring>

#include "absl/strings/str_format.h"

namespace nam::fabric::tcp {
namespace {

constexpr uint32_t kGroupNetwork = 239u << 24 | 192u << 16;  // RFC 2365: organisation-local, a /14
constexpr uint32_t kGroupNumbers = 1u << 18;
constexpr uint16_t kGroupPortFirst = 20'000;
constexpr uint16_t kGroupPorts = 8192;
constexpr size_t kAddressTextMax = 64;

}  // namespace

std::optional<DatagramHeader> DecodeDatagram(std::span<const std::byte, sizeof(DatagramHeader)> header_bytes,
                                             size_t payload_bytes) {
  DatagramHeader header;
  std::memcpy(&header, header_bytes.data(), sizeof(header));
  if (header.magic != kDatagramMagic || header.version != kDatagramVersion) return std::nullopt;
  if (header.bytes > kMaxDatagramBytes || header.bytes != payload_bytes) return std::nullopt;
  return header;
}

std::string FormatDatagramAddress(const DatagramAddress& address) {
  return absl::StrFormat("%d.%d.%d.%d:%d/%016x", address.ip >> 24, address.ip >> 16 & 255,
                         address.ip >> 8 & 255, address.ip & 255, address.port, address.target);
}

std::optional<DatagramAddress> ParseDatagramAddress(const std::string& text) {
  if (text.size() > kAddressTextMax) return std::nullopt;
  unsigned a, b, c, d, port;
  unsigned long long target;
  if (std::sscanf(text.c_str(), "%3u.%3u.%3u.%3u:%5u/%16llx", &a, &b, &c, &d, &port, &target) != 6) {
    return std::nullopt;
  }
  if (a > 255 || b > 255 || c > 255 || d > 255 || port == 0 || port > 65'535) return std::nullopt;
  const DatagramAddress address{a << 24 | b << 16 | c << 8 | d, static_cast<uint16_t>(port), target};
  // sscanf also accepts blanks, signs and trailing text.
  if (FormatDatagramAddress(address) != text) return std::nullopt;
  return address;
}

DatagramAddress MakeGroupAddress(uint32_t number, uint64_t random_port, uint64_t target) {
  return {kGroupNetwork | number % kGroupNumbers,
          static_cast<uint16_t>(kGroupPortFirst + random_port % kGroupPorts), target};
}

}  // namespace nam::fabric::tcp
