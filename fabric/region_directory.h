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
  /// The member id of the memory server. Equals the server id that was looked up, or owns its storage id.
  MemoryServerId member;
  std::string fabric_address;
  std::string name;             // for messages: `memory server 2 (127.0.0.1:4711)`
  std::vector<Region> regions;  // by offset, disjoint
};

/// Finds memory servers. Thread-safe.
class RegionDirectory {
 public:
  virtual ~RegionDirectory() = default;
  /// `refresh` asks the server again: a pointer into an unlisted region may be newer than the copy.
  /// UNAVAILABLE if the server is gone, NOT_FOUND if it never existed.
  virtual absl::StatusOr<std::shared_ptr<const ServerRegions>> Lookup(MemoryServerId server,
                                                                      bool refresh) = 0;
  /// True if the catalog has buried the server with this member id; its memory is then void even if it still
  /// answers. With `ask` the catalog is asked, else only burials heard so far count.
  virtual bool Buried(MemoryServerId, bool /*ask*/) { return false; }
  /// The member that this process connects as. Changes when the process joins again.
  virtual MemberProof Self() { return {}; }
  /// The memory that this process may change.
  Grants& grants() { return grants_; }
  /// The number of burials heard so far. When it changes, a channel checks whether its servers are among
  /// them.
  uint64_t burials() const { return burials_.load(std::memory_order_acquire); }

 protected:
  void CountBurial() { burials_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<uint64_t> burials_{0};
  Grants grants_;
};

}  // namespace nam::fabric
