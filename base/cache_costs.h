#pragma once

#include <cstdint>

namespace nam {

/// A Clock of virtual time whose processors have caches says so by implementing this beside Clock.
class CacheCosts {
 public:
  virtual ~CacheCosts() = default;
  /// One thread's time to access a random place of its working set, beside the same access to its first-level
  /// cache, in picoseconds.
  virtual int64_t AccessPs(uint64_t working_set_bytes) const = 0;
};

}  // namespace nam
