#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "catalog/attachment.h"
#include "partitioner/column_batch.h"
#include "proto/table.pb.h"

namespace nam::partitioner {

struct GroupReadOptions {
  std::vector<uint32_t> groups;  // numbers: catalog/chain_groups.h
  int threads = 1;
  const std::atomic<bool>* cancel = nullptr;  // CANCELLED soon after it is set
};

/// Reads and verifies all rows of groups of a columnar table. Calls `take` on the reading threads, with a
/// batch that belongs to the thread until the next call.
absl::Status ReadGroups(catalog::Attachment& attachment, const proto::Table& table,
                        const GroupReadOptions& options,
                        const std::function<absl::Status(const ColumnBatch& rows)>& take);

}  // namespace nam::partitioner
