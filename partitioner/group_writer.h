#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "catalog/attachment.h"
#include "partitioner/chain_plan.h"
#include "partitioner/column_batch.h"
#include "partitioner/encoder.h"
#include "partitioner/placement.h"
#include "partitioner/staging.h"
#include "partitioner/table_schema.h"
#include "proto/catalog.pb.h"

namespace nam::storage {
class BlockSink;
class Channel;
}  // namespace nam::storage

namespace nam::partitioner {

struct GroupOptions {
  uint32_t block_bytes = 64 * 1024;
  uint32_t pointer_group = 32;                // G: pointers held by every G-th block
  uint64_t expected_rows = 0;                 // if known: memory is checked before the first row is kept
  uint64_t staged_bytes_max = UINT64_MAX;     // memory of this process for the rows until they are written
  int threads = 0;                            // 0: LoadThreads()
  const std::atomic<bool>* cancel = nullptr;  // CANCELLED soon after it is set
};

/// The threads of a load: one a processor of the host, up to a bound, as each has connections of its own.
int LoadThreads(const fabric::Fabric& fabric);

/// INVALID_ARGUMENT: no table can have this schema or these options.
absl::Status CheckGroup(const TableSchema& schema, const GroupOptions& options);

/// Writes rows into memory servers as one group of chains: partition, cluster, encode, write.
///
///     Append … Append, by any number of threads ─▶ staged, in this process ─ Write ─▶ blocks, dictionaries
///                                                                            └──────▶ their description
///
/// The allocation is a load or an extension in progress. The writer does not care who began it, nor whether
/// its groups ever become part of a table. Attachment and allocation outlive the writer.
class GroupWriter {
 public:
  /// The schema has passed CheckGroup.
  GroupWriter(catalog::Attachment& attachment, const TableSchema& schema, const GroupOptions& options,
              AllocationId allocation);

  /// Stages rows, as TableLoader::Append does. Any thread.
  absl::Status Append(const ColumnBatch& rows);
  /// Rows that were appended. After the last Append.
  uint64_t rows() const { return staged_->rows(); }
  /// Writes the group and returns its description as a table of version 0. Once, as the last call.
  absl::StatusOr<proto::Table> Write();
  /// After Write: bytes by the member that gave the memory.
  std::map<MemoryServerId, uint64_t> written_bytes() const { return placement_.written_bytes(); }
  /// Gives the memory back, once the allocation is over.
  void ReleaseAll() { placement_.ReleaseAll(); }

 private:
  absl::Status CheckRoom(const ColumnBatch& rows);
  absl::Status PlanColumns();
  absl::Status PlanChains();
  /// Requests memory for the pieces, of so many bytes in all. It may have to wait until some is free.
  absl::Status Reserve(const std::vector<uint32_t>& pieces, uint64_t bytes);
  absl::Status WriteDictionaries(proto::Table& table);
  absl::Status WriteAllBlocks();
  absl::Status PlanOne(uint32_t partition, PartitionEncoder& encoder);
  /// The unit that a thread writes at once: adjacent blocks of a chain.
  struct Share {
    uint32_t partition;
    uint32_t first_block;
    uint32_t end_block;
  };
  std::vector<Share> SharesOfWork() const;
  absl::Status WriteBlocks(const Share& share, PartitionEncoder& encoder, storage::BlockSink& sink);
  absl::Status WriteShares(const std::vector<Share>& shares, std::atomic<uint32_t>& next,
                           std::atomic<bool>& stop);
  PartitionEncoder NewEncoder() const;
  bool HasDictionary(size_t column) const { return codes_[column].text && !codes_[column].plain; }
  /// Runs `work` on all threads, each with the counter of claimed partitions and a stop flag.
  using Work = std::function<absl::Status(std::atomic<uint32_t>& next, std::atomic<bool>& stop)>;
  absl::Status OnThreads(const Work& work);
  uint32_t AverageTextBytes(size_t column) const;
  absl::Status Describe(proto::Table& table);
  void DescribeColumn(size_t c, proto::Column& column) const;
  absl::StatusOr<std::unique_ptr<storage::Channel>> OpenChannel();
  absl::Status Explain(const absl::Status& failed);

  bool cancelled() const { return options_.cancel != nullptr && *options_.cancel; }

  catalog::Attachment& attachment_;
  const GroupOptions options_;
  const AllocationId allocation_;
  std::unique_ptr<StagedTable> staged_;
  Placement placement_;
  std::vector<ColumnCode> codes_;
  std::vector<uint8_t> widths_;
  std::vector<ChainPlan> chains_;  // by partition
  std::atomic<bool> estimated_ = false;
};

}  // namespace nam::partitioner
