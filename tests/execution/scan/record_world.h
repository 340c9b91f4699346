#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/scan/record_scan.h"
#include "partitioner/pieces.h"
#include "partitioner/record_row.h"
#include "storage/channel.h"
#include "tests/execution/scan/scan_rows.h"
#include "tests/txn/record_cluster.h"
#include "txn/session.h"

/// Record tables with rows, and threads that scan them.
namespace nam::execution {

inline std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// A record table of a cluster, and the rows that it should have: by primary key, as tables store them.
class RecordTable {
 public:
  using Rows = std::map<std::string, std::string>;

  /// The table's description, as CREATE TABLE makes it.
  RecordTable(txn::RecordCluster& cluster, const std::string& create, uint32_t versions = 1);

  const std::shared_ptr<const proto::Table>& meta() const { return meta_; }
  const partitioner::RecordLayout& layout() const { return layout_; }
  const Rows& rows() const { return rows_; }

  std::string RandomRow(std::mt19937_64& random) const;
  /// Inserts random rows until there are `count`, in transactions of their own.
  void Fill(txn::Session& session, std::mt19937_64& random, size_t count);
  /// Inserts, updates and deletes random rows in the session's transaction. `rows` follows them.
  void Change(txn::Session& session, std::mt19937_64& random, size_t count, Rows& rows) const;
  /// The same, in a transaction of its own.
  void ChangeAndCommit(txn::Session& session, std::mt19937_64& random, size_t count);
  /// Replaces one row; its key stays.
  void Replace(txn::Session& session, const std::string& row) const;

  /// The options of a scan of `columns`, all of which flow out, without filters.
  RecordScan::Options ScanOf(txn::RecordCluster::Member& member, uint64_t snapshot,
                             std::vector<uint32_t> columns) const;
  /// All chunks of all extents, in runs of `chunks_max`, after `own_rows` rows.
  std::vector<partitioner::Piece> Pieces(txn::RecordCluster::Member& member, uint32_t chunks_max,
                                         size_t own_rows = 0) const;

 private:
  std::shared_ptr<const proto::Table> meta_;
  const partitioner::RecordLayout layout_;
  Rows rows_;
};

/// Puts the transaction's writes to a table into the scan's options.
void AddWrites(txn::Session& session, const std::string& table, RecordScan::Options& options);

/// Threads that scan, each with its own channel and context.
class RecordScanner {
 public:
  RecordScanner(txn::RecordCluster& cluster, txn::RecordCluster::Member& member, int threads,
                uint64_t buffer_bytes = 1 << 20, uint64_t budget_bytes = uint64_t{64} << 20);

  /// Runs all threads to their ends and returns the rows, sorted. `each` sees every chunk; it returns false
  /// if the thread wants no more.
  absl::StatusOr<std::vector<TextRow>> Run(RecordScan& scan,
                                           const std::function<bool(const Chunk&)>& each = nullptr);
  std::atomic<bool>& cancel() { return cancel_; }

 private:
  absl::Status RunThread(RecordScan& scan, storage::Channel& channel,
                         const std::function<bool(const Chunk&)>& each, std::vector<TextRow>& rows);

  fabric::Fabric& fabric_;
  std::vector<std::unique_ptr<storage::Channel>> channels_;
  MemoryBudget budget_;
  std::atomic<bool> cancel_ = false;
};

}  // namespace nam::execution
