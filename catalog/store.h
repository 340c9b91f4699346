#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "proto/catalog.pb.h"

namespace nam::catalog {

struct ClusterIdentity {
  std::string name;
  std::string fabric;  // shm | tcp | verbs | sim
  uint64_t store = 0;  // drawn when the store is made: tells it from another one
};

/// A load or an extension under way: memory may be held for `allocation` though no table has it yet.
struct LoadRecord {
  AllocationId allocation;
  MemberId owner;
  std::string table;
  bool replace = false;
  AllocationId
      extends;  // of the table that it is to extend: its creation (proto/catalog.proto); 0: it is a load
};

/// The number of a multicast group that a member has.
struct GroupRecord {
  uint32_t group = 0;
  MemberId owner;
};

/// One start of a catalog on the store, from its first mutation to that of the next epoch.
struct EpochRecord {
  uint64_t number = 0;
  uint64_t id_high = 0, id_low = 0;  // random: two catalogs that start on copies of a store begin two epochs
  uint64_t first_version = 0;
  /// An operator said that the store may be older than what the cluster knew: marks of unknown epochs below
  /// this one belong to a branch that was given up.
  bool accepts_older = false;
};

/// Everything that must outlive the catalog's process.
struct StoredState {
  ClusterIdentity identity;
  uint64_t version = 0;
  uint32_t next_member = 1;
  uint64_t next_allocation = 1;
  std::vector<proto::Member> members;
  std::vector<LoadRecord> loads;
  std::vector<GroupRecord> groups;
  std::vector<proto::Table> tables;
  std::vector<EpochRecord> epochs;  // by number
  std::vector<proto::FabricConstants> constants;
};

/// One transaction: all of it or nothing. Puts come before deletes, but those of tables; a put replaces what
/// has its key (a member's id, a load's allocation, a group's number, a table's name, an epoch's number, a
/// fabric).
struct Mutation {
  uint64_t version = 0;  // the stored one + 1
  uint32_t next_member = 1;
  uint64_t next_allocation = 1;
  std::vector<proto::Member> put_members;
  std::vector<LoadRecord> put_loads;
  std::vector<GroupRecord> put_groups;
  std::vector<proto::Table> put_tables;
  std::vector<EpochRecord> put_epochs;
  std::vector<proto::FabricConstants> put_constants;
  std::vector<uint64_t> delete_loads;
  std::vector<uint32_t> delete_groups;
  std::vector<std::string> delete_tables;
  std::vector<uint32_t> delete_members;
  std::vector<uint64_t> delete_epochs;
};

/// Where the catalog keeps its state. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  /// DATA_LOSS unless all of it is as it was written.
  virtual absl::StatusOr<StoredState> Load() = 0;
  /// Durable once it returned OK; nothing has changed otherwise, and the store stays usable.
  /// ABORTED when the stored version is not mutation.version - 1 (somebody else writes),
  /// RESOURCE_EXHAUSTED when the disk is full, DATA_LOSS when the store is damaged.
  virtual absl::Status Apply(const Mutation& mutation) = 0;
};

/// Counts layouts of the store's tables, and also those of rows that it only describes, so that no program
/// reads the rows of another layout: 5 has NULL bits of nullable columns alone (partitioner/record_row.h), 6
/// has fabric_constants.
inline constexpr uint64_t kStoreSchemaVersion = 6;

/// A path that means no file: what is stored ends with the store.
inline constexpr char kStoreInMemory[] = ":memory:";

/// The embedded store: one SQLite file at `path`, held exclusively. A new file gets `identity`; an
/// existing one keeps its own. FAILED_PRECONDITION for a file that is no catalog store, is of another
/// schema, or is in use; DATA_LOSS for a damaged one (catalog/checked_rows.h).
absl::StatusOr<std::unique_ptr<Store>> OpenEmbeddedStore(const std::string& path,
                                                         const ClusterIdentity& identity);

}  // namespace nam::catalog
