#pragma once

#include <cstdint>

namespace nam {

/// Cache costs of a virtual-time Clock whose processors have caches. Such a clock implements this class
/// beside Clock.
class CacheCosts {
 public:
  virtual ~CacheCosts() = default;
  /// The extra picoseconds of one thread's access to a random place of its working set, compared to an access
  /// to its first-level cache.
  virtual int64_t AccessPs(uint64_t working_set_bytes) const = 0;
};

}  // namespace nam
