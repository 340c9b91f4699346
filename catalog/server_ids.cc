#include "catalog/server_ids.h"

namespace nam::catalog {

// The members of a storage id have ascending ids, and at most the last one is alive.
const proto::Member* FindServer(const proto::Cluster& cluster, uint32_t server) {
  const proto::Member* found = nullptr;
  for (const proto::Member& member : cluster.members()) {
    if (GoesBy(member, server) && (found == nullptr || found->id() < member.id())) found = &member;
  }
  return found;
}

uint32_t ShownId(const proto::Cluster& cluster, uint32_t server) {
  const proto::Member* const member = FindServer(cluster, server);
  return member == nullptr ? server : member->id();
}

}  // namespace nam::catalog
