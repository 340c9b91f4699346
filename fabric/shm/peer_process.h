#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory.h"
#include "fabric/shm/wire.h"

namespace nam::fabric::shm {

/// A peer's region or a part of one, mapped here. The pages live as long as any process maps them.
struct RemoteRegion {
  Mapping pages;
  std::byte* data = nullptr;  // in `pages`
  uint64_t bytes = 0;
  Access access = Access::kNone;
};

/// This process's mappings of a peer process, shared by all queue pairs between the two. Any thread.
class PeerProcess {
 public:
  PeerProcess(Mapping table, Mapping doorbells)
      : table_(std::move(table)), doorbells_(std::move(doorbells)) {}

  /// Holds the region's rkey while it is registered.
  const std::atomic<uint32_t>& live_key(uint32_t slot) const { return table().rkeys[slot]; }
  uint32_t deregistrations() const { return table().deregistrations.load(std::memory_order_relaxed); }
  /// False: initiators must run their own barriers (layout.h).
  bool runs_barriers() const { return table().runs_barriers.load(std::memory_order_relaxed) != 0; }
  /// nullptr for 0 and for an index out of range.
  Doorbell* doorbell(uint32_t index) const {
    if (index == 0 || index >= kCompletionQueuesMax) return nullptr;
    return &reinterpret_cast<DoorbellPage*>(doorbells_.data())->bells[index];
  }

  /// The region as a connection with `rights` may use it. nullptr if no such connection has mapped it.
  std::shared_ptr<const RemoteRegion> Find(uint32_t rkey, Access rights);
  /// Maps the region of a RegionReply to a connection with `rights`.
  absl::StatusOr<std::shared_ptr<const RemoteRegion>> Insert(uint32_t rkey, Access rights,
                                                             const Packet& reply);

 private:
  const RegionTable& table() const { return *reinterpret_cast<const RegionTable*>(table_.data()); }

  const Mapping table_;
  const Mapping doorbells_;
  Mutex mutex_;
  std::map<std::pair<uint32_t, Access>, std::weak_ptr<const RemoteRegion>> regions_ ABSL_GUARDED_BY(mutex_);
};

/// The peers that queue pairs of this process are connected to. Any thread.
class PeerDirectory {
 public:
  /// The peer. Maps its descriptors unless they are mapped already.
  absl::StatusOr<std::shared_ptr<PeerProcess>> Get(const ProcessId& id, int table, int doorbells);

 private:
  Mutex mutex_;
  std::map<ProcessId, std::weak_ptr<PeerProcess>> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::fabric::shm
