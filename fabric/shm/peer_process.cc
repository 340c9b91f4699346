#include "fabric/shm/peer_process.h"

#include <utility>

#include "base/status_macros.h"
#include "fabric/shm/region_registry.h"

namespace nam::fabric::shm {

std::shared_ptr<const RemoteRegion> PeerProcess::Find(uint32_t rkey, Access rights) {
  const MutexLock lock(mutex_);
  const auto found = regions_.find({rkey, rights});
  return found == regions_.end() ? nullptr : found->second.lock();
}

absl::StatusOr<std::shared_ptr<const RemoteRegion>> PeerProcess::Insert(uint32_t rkey, Access rights,
                                                                        const Packet& reply) {
  const auto access = static_cast<Access>(reply.message.access & static_cast<uint8_t>(Access::kAll));
  NAM_ASSIGN_OR_RETURN(Mapping pages,
                       MapFromPeer(reply.descriptors[0].get(), reply.message.bytes, PeerAccessFor(access)));
  std::byte* const data = pages.data();
  const MutexLock lock(mutex_);
  std::weak_ptr<const RemoteRegion>& entry = regions_[{rkey, rights}];
  // Another queue pair may have been faster.
  if (auto region = entry.lock()) return region;
  auto region =
      std::make_shared<const RemoteRegion>(RemoteRegion{std::move(pages), data, reply.message.bytes, access});
  entry = region;
  std::erase_if(regions_, [](const auto& other) { return other.second.expired(); });
  return region;
}

absl::StatusOr<std::shared_ptr<PeerProcess>> PeerDirectory::Get(const ProcessId& id, int table,
                                                                int doorbells) {
  const MutexLock lock(mutex_);
  std::weak_ptr<PeerProcess>& entry = peers_[id];
  if (auto peer = entry.lock()) return peer;
  NAM_ASSIGN_OR_RETURN(Mapping table_mapping, MapFromPeer(table, sizeof(RegionTable), PeerAccess::kReadOnly));
  NAM_ASSIGN_OR_RETURN(Mapping bells_mapping,
                       MapFromPeer(doorbells, sizeof(DoorbellPage), PeerAccess::kReadWrite));
  auto peer = std::make_shared<PeerProcess>(std::move(table_mapping), std::move(bells_mapping));
  entry = peer;
  std::erase_if(peers_, [](const auto& other) { return other.second.expired(); });
  return peer;
}

}  // namespace nam::fabric::shm
