#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backup/fresh_directory.h"
#include "backup/manifest.h"
#include "base/strong_id.h"
#include "catalog/attachment.h"
#include "fabric/grants.h"
#include "memserver/sealed_file.h"
#include "proto/catalog.pb.h"

namespace nam::backup {

/// Copies the memory of columnar tables by READ into sealed files, in the format of memory servers, even if
/// these write no such files themselves.
///
///     Pin ─▶ pinned: not given to another allocation, even if the table is dropped ─▶ CopyInto ─▶ files
///
/// Pins end with this object, or with this process's lease. The memory of a member that has ended is never
/// read from its successor.
class SealedCopies {
 public:
  explicit SealedCopies(catalog::Attachment& attachment) : attachment_(attachment) {}

  /// Pins the allocations' memory on the living server. Each allocation has some there.
  absl::Status Pin(const proto::Member& server, const std::vector<AllocationId>& allocations);
  /// How much is pinned.
  uint64_t bytes() const;
  /// One file for each allocation of each memory server, by some threads, each of which holds a few MiB. The
  /// files are on disk once this returned OK; `store` and `cluster` are what their headers say.
  absl::StatusOr<std::vector<SavedFile>> CopyInto(FreshDirectory& directory, uint64_t store,
                                                  const std::string& cluster, const OnProgress& progress);

 private:
  struct Pinned {
    MemoryServerId member;
    uint32_t storage = 0;
    AllocationId allocation;
    std::vector<memserver::Extent> extents;
    fabric::Grant::Use use;
  };
  class Copying;

  catalog::Attachment& attachment_;
  std::vector<Pinned> pinned_;
};

}  // namespace nam::backup
