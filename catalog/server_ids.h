#pragma once

#include <cstdint>

#include "base/strong_id.h"
#include "proto/catalog.pb.h"

/// A remote pointer names its server by one of two ids: memory that ends with its memory server by the
/// member's id; what is sealed by the storage id, which later memory servers adopt with the data directory.
/// No number is ever both (docs/design/data-on-disk.md).
namespace nam::catalog {

inline MemoryServerId MemberServerId(const proto::Member& member) {
  return MemoryServerId(static_cast<uint16_t>(member.id()));
}

/// One that a store of an older release knows has none of its own.
inline uint32_t StorageOf(const proto::Member& member) {
  return member.storage() == 0 ? member.id() : member.storage();
}
inline MemoryServerId StorageServerId(const proto::Member& member) {
  return MemoryServerId(static_cast<uint16_t>(StorageOf(member)));
}

/// Whether remote pointers of this server id may lead to the member.
inline bool GoesBy(const proto::Member& member, uint32_t server) {
  return member.role() == proto::ROLE_MEMORY && (member.id() == server || StorageOf(member) == server);
}

/// The memory server that has, or had last, what the server id stands for; nullptr if the catalog lists none.
const proto::Member* FindServer(const proto::Cluster& cluster, uint32_t server);
/// The id of that member, by which people know it; without one the server id itself.
uint32_t ShownId(const proto::Cluster& cluster, uint32_t server);

}  // namespace nam::catalog
