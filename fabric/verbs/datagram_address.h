#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

/// A datagram's destination, as text that peers pass to each other:
///
///     one peer   GID#QUEUE_PAIR#LID            10.0.0.2#17#0
///     a group    ADDRESS#GID#QUEUE_PAIR        239.0.0.5#10.0.0.1#23: the group, then its only sender
namespace nam::fabric::verbs {

struct DatagramAddress {
  ibv_gid gid{};
  uint32_t queue_pair = 0;
  uint16_t lid = 0;
};
std::string FormatDatagramAddress(const DatagramAddress& address);
absl::StatusOr<DatagramAddress> ParseDatagramAddress(const std::string& text);

struct GroupAddress {
  ibv_gid group{};
  ibv_gid sender{};
  uint32_t queue_pair = 0;
};
std::string FormatGroupAddress(const GroupAddress& address);
absl::StatusOr<GroupAddress> ParseGroupAddress(const std::string& text);

/// Groups are numbered by the catalog. The number fills 24 bits of 239.0.0.0/8, the addresses that each
/// network routes by its own rules.
inline constexpr uint32_t kGroupNumberMax = 0xff'ffff;
ibv_gid GroupGid(uint32_t number);

bool IsMappedV4(const ibv_gid& gid);
/// `10.0.0.2` for an IPv4-mapped GID, else the GID in IPv6 notation.
std::string GidText(const ibv_gid& gid);

}  // namespace nam::fabric::verbs
