#pragma once

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "storage/remote_ptr.h"

namespace nam::storage {

/// The keys that memory servers handed out with an allocation's extents: without them remote memory can
/// only be read. They end with the allocation, whatever was posted before. Filled by one thread, then
/// used by any.
class AllocationKeys {
 public:
  void Add(RemotePtr<void> begin, uint64_t bytes, fabric::RemoteKey rkey);
  /// Where [pointer, pointer + bytes) is to be written. OUT_OF_RANGE unless it lies in one extent.
  absl::StatusOr<fabric::RemoteAddress> Resolve(RemotePtr<void> pointer, uint64_t bytes) const;

 private:
  struct Extent {
    uint64_t bytes = 0;
    fabric::RemoteKey rkey;
  };
  std::map<RemotePtr<void>, Extent> extents_;  // by their begin; without overlaps
};

}  // namespace nam::storage
