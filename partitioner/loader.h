#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
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
  AllocationId replaces;        // the only table that it may replace; Commit is ABORTED if it is gone
  bool empties = false;         // no rows follow, and `replace` is set: needs no room on a full disk
  bool append = false;          // append to the table of this name: adds a chain group
  uint64_t appends_to = 0;      // creation of the expected table (catalog/chain_groups.h); 0: any
  /// For an append: allocations of the table's groups that these rows replace.
  std::set<uint64_t> replaced_groups;
  /// For an append to a table with kGroupsMax groups (partitioner/appended_table.h): returns OK once the
  /// table may have fewer, otherwise the append's error. Empty: 54000.
  std::function<absl::Status(const proto::Table& table, const absl::Status& full)> await_room;
  uint64_t expected_rows = 0;              // if known: memory is checked before the first row is kept
  uint64_t staged_bytes_max = UINT64_MAX;  // limit of this process's memory for unwritten rows
  int threads = 0;                         // 0: LoadThreads() of partitioner/group_writer.h
  /// Commit is CANCELLED soon after it is set, unless the catalog is taking the table already.
  const std::atomic<bool>* cancel = nullptr;
};

/// The groups that were written into one allocation.
struct WrittenGroups {
  std::vector<proto::Table> groups;          // each described as a table of its own
  std::map<MemoryServerId, uint64_t> bytes;  // by the member that gave the memory
};

/// Loads one table into the memory servers: partition, cluster, encode, write, commit. Nothing is visible,
/// and nothing stays allocated, unless Commit returned OK.
class TableLoader {
 public:
  virtual ~TableLoader() = default;
  /// Takes a run of rows; any number of threads. RESOURCE_EXHAUSTED if the memory servers cannot hold the
  /// table, 53200 if this process must not hold the rows, INVALID_ARGUMENT if a value does not fit its
  /// column's type.
  virtual absl::Status Append(const ColumnBatch& rows) = 0;
  /// Begins a further allocation of the load, for groups of these rows that other processes write
  /// (partitioner/group_writer.h). It ends with the loader, unless Commit takes it. No Interruption ends the
  /// calls that begin or end an allocation: a load whose id got lost lasts as long as the lease.
  virtual absl::StatusOr<AllocationId> BeginExtraAllocation() = 0;
  /// Makes the groups that such a process has written a part of the load.
  virtual void Take(AllocationId allocation, WrittenGroups written) = 0;
  /// Ends an allocation of BeginExtraAllocation whose groups do not count; its memory is free again.
  virtual void AbortExtraAllocation(AllocationId allocation) = 0;
  /// Aborts every allocation that was taken.
  virtual void DropTaken() = 0;
  /// Encodes, allocates, writes every block and commits the table to the catalog, with the groups taken;
  /// returns the committed table.
  virtual absl::StatusOr<proto::Table> Commit() = 0;
  /// Like Commit, without the catalog and the memory servers' disks: returns a table of version 0, which
  /// lives as long as the loader, for members that learn of it.
  virtual absl::StatusOr<proto::Table> WriteOnly() = 0;
};

/// The load depends on the attachment's lease: if this process dies, its memory is freed.
absl::StatusOr<std::unique_ptr<TableLoader>> BeginLoad(catalog::Attachment& attachment,
                                                       const TableSchema& schema, const LoadOptions& options);

}  // namespace nam::partitioner
