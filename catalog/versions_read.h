#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <utility>

#include "base/mutex.h"

namespace nam::catalog {

/// The catalog versions at which a process's statements see tables. Chain groups retired at a later version
/// are kept for them (catalog/service.h). Thread-safe.
///
///     Enter(known version) ─▶ the catalog is asked for tables ─▶ they are read ─▶ the pin goes
///                              at that version or a later one
class VersionsRead {
 public:
  class Pin {
   public:
    Pin(Pin&& other) noexcept : of_(std::exchange(other.of_, nullptr)), at_(other.at_) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin() {
      if (of_ != nullptr) of_->Leave(at_);
    }

   private:
    friend class VersionsRead;
    Pin(VersionsRead& of, std::multiset<uint64_t>::iterator at) : of_(&of), at_(at) {}
    VersionsRead* of_;
    std::multiset<uint64_t>::iterator at_;
  };

  /// Pins a statement that has not asked the catalog for a table yet. `known_version`: Client::KnownVersion.
  [[nodiscard]] Pin Enter(uint64_t known_version) {
    const MutexLock lock(mutex_);
    return {*this, versions_.insert(known_version)};
  }
  /// The greatest number if no statement runs.
  uint64_t Oldest() const {
    const MutexLock lock(mutex_);
    return versions_.empty() ? std::numeric_limits<uint64_t>::max() : *versions_.begin();
  }

 private:
  void Leave(std::multiset<uint64_t>::iterator at) {
    const MutexLock lock(mutex_);
    versions_.erase(at);
  }

  mutable Mutex mutex_;
  std::multiset<uint64_t> versions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::catalog
