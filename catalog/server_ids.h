#pragma once

#include <cstdint>

#include "base/strong_id.h"
#include "proto/catalog.pb.h"

/// A remote pointer names its server by one of two ids. Memory that ends with its memory server uses the
/// member's id; sealed memory uses the storage id, which later memory servers adopt with the data directory.
/// No number is ever both (docs/design/data-on-disk.md).
namespace nam::catalog {

inline MemoryServerId MemberServerId(const proto::Member& member) {
  return MemoryServerId(static_cast<uint16_t>(member.id()));
}

/// A server in a store of an older release has no storage id of its own.
inline uint32_t StorageOf(const proto::Member& member) {
  return member.storage() == 0 ? member.id() : member.storage();
}
inline MemoryServerId StorageServerId(const proto::Member& member) {
  return MemoryServerId(static_cast<uint16_t>(StorageOf(member)));
}

/// True if remote pointers with this server id may lead to the member.
inline bool GoesBy(const proto::Member& member, uint32_t server) {
  return member.role() == proto::ROLE_MEMORY && (member.id() == server || StorageOf(member) == server);
}

/// The memory server that has, or last had, the memory of the server id; nullptr if the catalog lists none.
const proto::Member* FindServer(const proto::Cluster& cluster, uint32_t server);
/// That member's id, which users know; without one, the server id itself.
uint32_t ShownId(const proto::Cluster& cluster, uint32_t server);

}  // namespace nam::catalog
