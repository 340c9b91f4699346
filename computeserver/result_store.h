#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Keeps partial results in registered memory until their coordinator has read them. Small ones share one
/// region, so that most queries register nothing; large ones have a region of their own. A result that is not
/// released is dropped with its client's membership. Each client numbers its own attempts, so no client
/// reaches another's results. Thread-safe.
class ResultStore {
 public:
  struct Place {
    fabric::RemoteKey rkey;
    uint64_t offset = 0;
  };
  static absl::StatusOr<std::unique_ptr<ResultStore>> Create(fabric::Fabric& fabric);

  /// Stores the pages consecutively for this client, instead of the attempt's earlier ones, which have been
  /// read. Calls for one attempt come one after the other.
  absl::StatusOr<Place> Put(uint64_t attempt, MemberId client,
                            std::span<const std::span<const std::byte>> pages);
  void Release(uint64_t attempt, MemberId client);
  /// The clients with results here.
  std::set<MemberId> Clients();
  /// Drops those of a client that is gone.
  void DropOf(MemberId client);
  bool empty() {
    const MutexLock lock(mutex_);
    return entries_.empty();
  }

 private:
  struct Entry {
    uint64_t offset = 0;  // in the shared region
    uint64_t bytes = 0;
    std::shared_ptr<fabric::MemoryRegion> own;  // instead of the shared region
  };
  using Key = std::pair<MemberId, uint64_t>;  // client, attempt
  explicit ResultStore(fabric::Fabric& fabric) : fabric_(fabric) {}
  absl::StatusOr<Place> PutInOwn(const Key& key, Entry entry,
                                 std::span<const std::span<const std::byte>> pages);
  /// First fit among the entries of the shared region.
  std::optional<uint64_t> FindRoom(uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  fabric::Fabric& fabric_;
  std::unique_ptr<fabric::MemoryRegion> shared_;
  Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::computeserver
