#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "fabric/grants.h"

namespace nam::fabric {

/// The regions behind a memory server's address space (the 48-bit offsets of remote pointers).
struct ServerRegions {
  struct Region {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    RemoteKey rkey;
  };
  /// The memory server that has them, by its member id. It is the server id that was looked up, or has its
  /// storage.
  MemoryServerId member;
  std::string fabric_address;
  std::string name;             // for messages: `memory server 2 (127.0.0.1:4711)`
  std::vector<Region> regions;  // by offset, without overlaps
};

/// Finds memory servers. Thread-safe.
class RegionDirectory {
 public:
  virtual ~RegionDirectory() = default;
  /// With `refresh` the server is asked again: a pointer into a region that is not listed may only be
  /// newer than the copy. UNAVAILABLE names a server that is gone, NOT_FOUND one that never was.
  virtual absl::StatusOr<std::shared_ptr<const ServerRegions>> Lookup(MemoryServerId server,
                                                                      bool refresh) = 0;
  /// Whether the catalog has buried the server of this member id, so that its memory is nobody's, even if it
  /// answers. With `ask` the catalog is asked, else only what has been heard counts.
  virtual bool Buried(MemoryServerId, bool /*ask*/) { return false; }
  /// As which member this process connects to memory servers now. It is another one once it has joined again.
  virtual MemberProof Self() { return {}; }
  /// What this process may change in memory servers.
  Grants& grants() { return grants_; }
  /// How many burials have been heard of. Who is connected to servers looks, when it changes, whether they
  /// are among them.
  uint64_t burials() const { return burials_.load(std::memory_order_acquire); }

 protected:
  void CountBurial() { burials_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<uint64_t> burials_{0};
  Grants grants_;
};

}  // namespace nam::fabric
