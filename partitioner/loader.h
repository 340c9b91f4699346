#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "partitioner/column_batch.h"
#include "partitioner/table_schema.h"
#include "proto/table.pb.h"

namespace nam::catalog {
class Attachment;
}

namespace nam::partitioner {

struct LoadOptions {
  uint32_t block_bytes = 64 * 1024;
  uint32_t pointer_group = 32;  // G: pointers held by every G-th block
  bool replace = false;         // replace a table of the same name; otherwise ALREADY_EXISTS
  AllocationId replaces;        // the one table that it may replace; Commit is ABORTED if it has gone
  bool append = false;          // to the table of this name: one more group of chains
  uint64_t appends_to = 0;      // its creation (catalog/chain_groups.h), if it must be the one that is known
  /// Of an append: the allocations of the table's groups whose rows these are, and which it has no more.
  std::vector<uint64_t> replaced_groups;
  /// Of an append to a table that has kGroupsMax groups (partitioner/appended_table.h): returns once it may
  /// have fewer, or with what the append is to end with. Empty: 54000.
  std::function<absl::Status(const proto::Table& table, const absl::Status& full)> await_room;
  uint64_t expected_rows = 0;              // if known: memory is checked before the first row is kept
  uint64_t staged_bytes_max = UINT64_MAX;  // memory of this process for the rows until they are written
  int threads = 2;
};

/// Lays one table out in the memory servers: partition, cluster, encode, write, commit.
/// Nothing is visible, and nothing stays allocated, unless Commit returned OK.
class TableLoader {
 public:
  virtual ~TableLoader() = default;
  /// Takes a run of rows; any number of threads. RESOURCE_EXHAUSTED if the memory servers cannot hold
  /// the table, 53200 if this process may not hold the rows, INVALID_ARGUMENT if a value does not fit its
  /// column's type.
  virtual absl::Status Append(const ColumnBatch& rows) = 0;
  /// Encodes, allocates, writes every block and commits the table to the catalog; tells it as it is then.
  virtual absl::StatusOr<proto::Table> Commit() = 0;
  /// Likewise without the catalog and the memory servers' disks: tells of a table, of version 0, that is
  /// there as long as the loader is, for members that are told of it.
  virtual absl::StatusOr<proto::Table> WriteOnly() = 0;
};

/// The load lives on the attachment's lease: if this process dies, its memory is given back.
absl::StatusOr<std::unique_ptr<TableLoader>> BeginLoad(catalog::Attachment& attachment,
                                                       const TableSchema& schema, const LoadOptions& options);

}  // namespace nam::partitioner
