#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/shared_objects.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "fabric/region_directory.h"
#include "txn/extent_space.h"
#include "txn/failed_fences.h"
#include "txn/lost_clients.h"
#include "txn/shared_timestamps.h"
#include "txn/table_numbers.h"
#include "txn/transaction_state.h"

namespace nam::txn {

/// An ordered index of a record table, as the catalog describes it. Its key is a concatenation of fields of
/// the row.
struct IndexDescription {
  struct KeyField {
    uint32_t offset = 0;
    uint32_t bytes = 0;
    bool nullable = false;  // a byte precedes it: 0, or 1 if it is NULL
    uint32_t null_bit = 0;  // counted from the row's first bit
  };
  std::string name;
  AllocationId allocation;  // its first extent's; distinguishes it from others of its name
  std::vector<KeyField> fields;
  uint32_t key_bytes = 0;
  bool unique = false;       // except keys with NULL in them
  uint64_t usable_from = 0;  // complete for snapshots from this on; 0: it is being filled
  uint64_t extent_bytes = 0;
  std::shared_ptr<ExtentSource> extents;
};

/// A foreign key to a table, the parent, as the catalog describes it. `fields` lie in the parent's row; the
/// key of the child's index begins with them, in their order.
struct ReferenceDescription {
  std::string name;
  std::string child;
  AllocationId child_allocation;
  std::string index;
  std::vector<IndexDescription::KeyField> fields;
};

/// A record table, as the catalog describes it. A process's sessions share the sources.
struct TableDescription {
  std::string name;
  AllocationId allocation;  // names this table in logs; never used again
  uint32_t row_bytes = 0;
  uint32_t key_bytes = 0;  // a row begins with its key
  uint32_t versions = 1;
  uint64_t extent_bytes = 0;
  std::shared_ptr<ExtentSource> records;
  uint64_t index_extent_bytes = 0;
  int index_root_bits = 0;
  std::shared_ptr<ExtentSource> index;
  std::vector<IndexDescription> indexes;  // those that commits keep in step with the rows
  /// A load is about to give it another storage: commits that write to it must not decide.
  bool closed = false;
  std::vector<ReferenceDescription>
      referenced_by;  // foreign keys that commits check before they delete one of its rows
};

/// The transaction state (txn/transaction_state.h), and the extents of clients' logs (txn/rsi/client_log.h).
struct TransactionState {
  std::shared_ptr<ExtentSource> extents;
  std::shared_ptr<ExtentSource> logs;
  TimestampKind timestamps = TimestampKind::kLeased;
  std::shared_ptr<SharedTimestamps> shared;  // by the process's sessions
};

/// Transactions' view of the cluster outside the data path. Thread-safe, one per process.
class Tables {
 public:
  virtual ~Tables() = default;
  virtual fabric::Fabric& fabric() = 0;
  virtual fabric::RegionDirectory& directory() = 0;
  virtual MemberId member() = 0;

  /// NOT_FOUND: there is no such record table.
  virtual absl::StatusOr<TableDescription> Find(const std::string& name) = 0;
  /// Those of the names that there are, by one call, as of one moment.
  virtual absl::StatusOr<std::vector<TableDescription>> FindAll(std::span<const std::string> names) = 0;
  /// Every record table of the cluster.
  virtual absl::StatusOr<std::vector<TableDescription>> All() = 0;
  /// The cluster's transaction state. The first call makes it.
  virtual absl::StatusOr<TransactionState> State() = 0;
  /// Forgets a state that was lost with its memory server. State then finds its successor, if any.
  virtual void ForgetState(const TransactionState& /*lost*/) {}
  /// OK once nothing that this member has posted, or will post, changes a record any more.
  /// FAILED_PRECONDITION: it is alive.
  virtual absl::Status Fence(MemberId member) = 0;
  /// Joins the cluster again if the membership is over. member() then changes, and new channels belong to the
  /// new member.
  virtual absl::Status KeepMembership() { return absl::OkStatus(); }

  /// Repeats `attempt` on another thread until no lost client is left to recover. One attempt at a time. The
  /// default leaves lost clients to the next session.
  virtual void RecoverLater(std::function<void()> /*attempt*/) {}
  /// Reports a sentence to this process's user. Any thread.
  virtual void Report(const std::string& what) = 0;

  LostClients& lost_clients() { return lost_clients_; }
  FailedFences& failed_fences() { return failed_fences_; }
  TableNumbers& table_numbers() { return table_numbers_; }
  /// Objects that the process's sessions share. They outlive all uses but not this.
  SharedObjects& shared() { return shared_; }

 private:
  LostClients lost_clients_;
  FailedFences failed_fences_;
  TableNumbers table_numbers_;
  SharedObjects shared_;
};

}  // namespace nam::txn
