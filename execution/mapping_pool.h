#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/mutex.h"

namespace nam::execution {

/// Keeps memory mappings that tables leave for later ones: mapping, first touches and unmapping would be a
/// tenth of a short query's time. No budget counts these mappings, so they have bounds; beyond them the
/// oldest are unmapped. Any thread.
class MappingPool {
 public:
  struct Mapping {
    std::byte* data = nullptr;
    uint64_t bytes = 0;
    uint64_t writable_bytes = 0;  // from the beginning on
  };
  /// Bounds on the touched bytes kept; only those take memory.
  struct Bounds {
    uint64_t of_one = 0;
    uint64_t of_all = 0;
  };

  explicit MappingPool(const Bounds& bounds) : bounds_(bounds) {}
  MappingPool(const MappingPool&) = delete;
  MappingPool& operator=(const MappingPool&) = delete;
  ~MappingPool();

  /// Makes a new mapping, all of it writable or nothing. It takes no memory before it is touched, and is
  /// zero. nullopt if the system has no addresses: errno says why.
  static std::optional<Mapping> Map(uint64_t bytes, bool writable);
  /// Takes the youngest mapping with so many bytes; its contents are arbitrary.
  std::optional<Mapping> Acquire(uint64_t bytes_least, uint64_t bytes_most);
  /// Leaves a mapping of which all its users so far have touched at most `touched_bytes`.
  void Leave(const Mapping& mapping, uint64_t touched_bytes);

 private:
  struct Left {
    Mapping mapping;
    uint64_t touched_bytes = 0;
  };
  static void Unmap(const std::vector<Left>& left);

  const Bounds bounds_;
  Mutex mutex_;
  std::vector<Left> left_ ABSL_GUARDED_BY(mutex_);   // the oldest first
  uint64_t left_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // touched
};

}  // namespace nam::execution
