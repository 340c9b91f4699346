#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Partial results in registered memory until their coordinator has read them. Small ones share one
/// region, so that most queries register nothing; large ones have a region of their own. A result that
/// nobody releases is dropped some time after its client's lease. Thread-safe.
class ResultStore {
 public:
  struct Place {
    fabric::RemoteKey rkey;
    uint64_t offset = 0;
  };
  /// Clients of results that are older than that are asked for.
  static constexpr int64_t kOldUs = 60'000'000;
  static absl::StatusOr<std::unique_ptr<ResultStore>> Create(fabric::Fabric& fabric, int64_t old_us = kOldUs);

  /// The pages one behind the other, for this client; instead of what lies here of this attempt, which has
  /// been read. Calls for one attempt come one after the other.
  absl::StatusOr<Place> Put(uint64_t attempt, MemberId client,
                            std::span<const std::span<const std::byte>> pages);
  void Release(uint64_t attempt);
  /// Those that have lain here for long, if their client is none of the living ones: who these are is asked
  /// only if there are any, and without a lock. If it cannot be told nothing is dropped.
  void DropAbandoned(const std::function<absl::StatusOr<std::set<MemberId>>()>& living_clients);
  bool empty() {
    std::scoped_lock lock(mutex_);
    return entries_.empty();
  }

 private:
  struct Entry {
    uint64_t offset = 0;  // in the shared region
    uint64_t bytes = 0;
    std::shared_ptr<fabric::MemoryRegion> own;  // instead of the shared region
    MemberId client;
    int64_t looked_at_ns = 0;  // when it came, or when its client was last known to live
  };
  ResultStore(fabric::Fabric& fabric, int64_t old_us) : fabric_(fabric), old_ns_(1000 * old_us) {}
  absl::StatusOr<Place> PutInOwn(uint64_t attempt, Entry entry,
                                 std::span<const std::span<const std::byte>> pages);
  /// First fit among the entries of the shared region.
  std::optional<uint64_t> FindRoom(uint64_t bytes) const;

  fabric::Fabric& fabric_;
  const int64_t old_ns_;
  std::unique_ptr<fabric::MemoryRegion> shared_;
  std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;  // by attempt
};

}  // namespace nam::computeserver
