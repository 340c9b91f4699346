#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::computeserver {

/// Partial results in registered memory until their coordinator has read them. Small ones share one
/// region, so that most queries register nothing; large ones have a region of their own. A result that
/// nobody releases is dropped after a while. Thread-safe.
class ResultStore {
 public:
  struct Place {
    fabric::RemoteKey rkey;
    uint64_t offset = 0;
  };
  static absl::StatusOr<std::unique_ptr<ResultStore>> Create(fabric::Fabric& fabric);

  /// The pages one behind the other.
  absl::StatusOr<Place> Put(uint64_t attempt, std::span<const std::span<const std::byte>> pages);
  void Release(uint64_t attempt);
  bool empty() {
    std::scoped_lock lock(mutex_);
    return entries_.empty();
  }

 private:
  struct Entry {
    uint64_t offset = 0;  // in the shared region
    uint64_t bytes = 0;
    std::unique_ptr<fabric::MemoryRegion> own;  // instead of the shared region
    int64_t expires_ns = 0;
  };
  explicit ResultStore(fabric::Fabric& fabric) : fabric_(fabric) {}
  void DropExpired();
  /// First fit among the entries of the shared region.
  std::optional<uint64_t> FindRoom(uint64_t bytes) const;

  fabric::Fabric& fabric_;
  std::unique_ptr<fabric::MemoryRegion> shared_;
  std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;  // by attempt
};

}  // namespace nam::computeserver
