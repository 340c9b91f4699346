#include "fabric/verbs/datagram_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <optional>

#include "absl/strings/str_format.h"
#include "fabric/verbs/wire.h"

namespace nam::fabric::verbs {
namespace {

constexpr uint8_t kMulticastPrefix = 239;

using Parts = std::array<std::string, 3>;

std::optional<Parts> Split(const std::string& text) {
  const size_t first = text.find('#');
  const size_t second = first == std::string::npos ? first : text.find('#', first + 1);
  if (second == std::string::npos) return std::nullopt;
  return Parts{text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
}

std::optional<ibv_gid> ParseGid(const std::string& text) {
  ibv_gid gid{};
  if (inet_pton(AF_INET6, text.c_str(), gid.raw) == 1) return gid;
  gid.raw[10] = gid.raw[11] = 0xff;
  if (inet_pton(AF_INET, text.c_str(), gid.raw + 12) == 1) return gid;
  return std::nullopt;
}

/// -1: not a number up to `max`.
int64_t ParseNumber(const std::string& text, int64_t max) {
  if (text.empty() || text.size() > 8 || text.find_first_not_of("0123456789") != std::string::npos) return -1;
  const int64_t value = std::stoll(text);
  return value <= max ? value : -1;
}

}  // namespace

bool IsMappedV4(const ibv_gid& gid) {
  return IN6_IS_ADDR_V4MAPPED(reinterpret_cast<const in6_addr*>(gid.raw));
}

std::string GidText(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (IsMappedV4(gid)) {
    inet_ntop(AF_INET, gid.raw + 12, text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
  }
  return text.data();
}

std::string FormatDatagramAddress(const DatagramAddress& address) {
  return absl::StrFormat("%s#%d#%d", GidText(address.gid), address.queue_pair, address.lid);
}

absl::StatusOr<DatagramAddress> ParseDatagramAddress(const std::string& text) {
  const auto parts = Split(text);
  const auto gid = parts ? ParseGid((*parts)[0]) : std::nullopt;
  const int64_t queue_pair = parts ? ParseNumber((*parts)[1], kQueuePairNumberMax) : -1;
  const int64_t lid = parts ? ParseNumber((*parts)[2], UINT16_MAX) : -1;
  const bool multicast = gid && IsMappedV4(*gid) && IN_MULTICAST(uint32_t{gid->raw[12]} << 24);
  if (!gid || multicast || queue_pair <= 0 || lid < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is not the address of a verbs datagram queue pair", text));
  }
  return DatagramAddress{*gid, static_cast<uint32_t>(queue_pair), static_cast<uint16_t>(lid)};
}

std::string FormatGroupAddress(const GroupAddress& address) {
  return absl::StrFormat("%s#%s#%d", GidText(address.group), GidText(address.sender), address.queue_pair);
}

absl::StatusOr<GroupAddress> ParseGroupAddress(const std::string& text) {
  const auto parts = Split(text);
  const auto group = parts ? ParseGid((*parts)[0]) : std::nullopt;
  const auto sender = parts ? ParseGid((*parts)[1]) : std::nullopt;
  const int64_t queue_pair = parts ? ParseNumber((*parts)[2], kQueuePairNumberMax) : -1;
  if (!group || !IsMappedV4(*group) || group->raw[12] != kMulticastPrefix || !sender || queue_pair <= 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is not the address of a verbs multicast group", text));
  }
  return GroupAddress{*group, *sender, static_cast<uint32_t>(queue_pair)};
}

ibv_gid GroupGid(uint32_t number) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = kMulticastPrefix;
  gid.raw[13] = static_cast<uint8_t>(number >> 16);
  gid.raw[14] = static_cast<uint8_t>(number >> 8);
  gid.raw[15] = static_cast<uint8_t>(number);
  return gid;
}

}  // namespace nam::fabric::verbs
