#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "catalog/attachment.h"
#include "proto/table.pb.h"
#include "txn/extent_space.h"

namespace nam::txn {

/// The extents that a part begins with. Short ones are followed by larger ones (txn/extent_space.h).
struct FirstExtents {
  FirstExtents(uint32_t count, uint64_t bytes = 0) : count(count), bytes(bytes) {}
  uint32_t count;
  uint64_t bytes;  // of each; 0: whole extents
};
/// Creates a record table: extents_of_parts[i] zeroed extents for part i of table.record(), spread over the
/// living memory servers. The caller fills in `table` except allocation, version, usage and extents.
/// ALREADY_EXISTS; RESOURCE_EXHAUSTED if no memory server has room. An error leaves nothing behind.
absl::Status CreateRecordTable(catalog::Attachment& attachment, proto::Table table,
                               const std::vector<FirstExtents>& extents_of_parts);

/// Gives a record table one more part, with one short extent. `part` has none yet. ALREADY_EXISTS: its name
/// is taken. An error leaves nothing behind.
absl::StatusOr<AllocationId> AddPart(catalog::Attachment& attachment, const std::string& table,
                                     const proto::RecordPart& part);

/// The extents of one part of a record table, opened by the attachment's member.
///
///     Grow:  BeginExtend ─▶ Allocate in one piece ─▶ CommitExtend(known) ─▶ one more extent
///               └─ no room there: AbortLoad, the next server  └─ ABORTED, another was faster: AbortLoad
///
/// An interrupted Grow gives back memory that did not become the table's. Thread-safe: sessions of several
/// threads share one. No lock is held during a call.
class TableExtents final : public ExtentSource {
 public:
  /// NOT_FOUND: there is no such table or part. The attachment outlives it.
  static absl::StatusOr<std::shared_ptr<TableExtents>> Open(catalog::Attachment& attachment,
                                                            const std::string& table,
                                                            const std::string& part);

  /// NOT_FOUND once the table or the part is dropped, even if another has its name by now.
  absl::StatusOr<std::vector<SpaceExtent>> Extents() override;
  absl::StatusOr<std::vector<SpaceExtent>> Grow(size_t known) override;

 private:
  TableExtents(catalog::Attachment& attachment, AllocationId allocation, std::string table, std::string part,
               uint64_t part_allocation)
      : attachment_(attachment),
        allocation_(allocation),
        table_(std::move(table)),
        part_(std::move(part)),
        part_allocation_(part_allocation) {}

  absl::StatusOr<std::shared_ptr<const proto::Table>> Table();
  absl::Status TryGrow(MemoryServerId server, uint64_t bytes, uint64_t whole, size_t known);

  catalog::Attachment& attachment_;
  const AllocationId allocation_;  // the table's first; distinguishes it from others of its name
  const std::string table_;
  const std::string part_;
  const uint64_t part_allocation_;  // its first extent's, likewise

  Mutex mutex_;
  std::vector<SpaceExtent> opened_ ABSL_GUARDED_BY(mutex_);  // the first extents of the part; `lost` stays
};

}  // namespace nam::txn
