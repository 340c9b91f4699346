#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  uint64_t store = 0;  // random, drawn when the store is created
};

/// A load or an extension in progress: memory may be held for `allocation` although no table has it yet.
struct LoadRecord {
  AllocationId allocation;
  MemberId owner;
  std::string table;
  bool replace = false;
  AllocationId extends;  // creation of the table to extend (proto/catalog.proto); 0: a load
};

/// A multicast group number and the member that owns it.
struct GroupRecord {
  uint32_t group = 0;
  MemberId owner;
};

/// One start of a catalog on the store, from its first mutation to that of the next epoch.
struct EpochRecord {
  uint64_t number = 0;
  uint64_t id_high = 0,
           id_low = 0;  // random: two catalogs that start on copies of a store begin different epochs
  uint64_t first_version = 0;
  /// An operator accepted that the store may be older than the cluster's state: marks of unknown epochs below
  /// this one belong to an abandoned branch.
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
  uint64_t saved_records = 0;       // proto::MarkSaved
  std::vector<proto::FabricConstants> constants;
};

/// One transaction, all or nothing. Puts come before deletes, except those of tables. A put replaces the
/// entry with its key (a member's id, a load's allocation, a group's number, a table's name, an epoch's
/// number, a fabric).
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
  std::optional<uint64_t> put_saved_records;  // 0: none
  std::vector<uint64_t> delete_loads;
  std::vector<uint32_t> delete_groups;
  std::vector<std::string> delete_tables;
  std::vector<uint32_t> delete_members;
  std::vector<uint64_t> delete_epochs;
  /// This change, or the next one of its member, frees disk space, so it may use the reserve when the disk is
  /// full.
  bool makes_room = false;
};

/// The catalog's durable state. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;
  /// DATA_LOSS unless everything is as it was written.
  virtual absl::StatusOr<StoredState> Load() = 0;
  /// Durable once it returns OK; otherwise nothing has changed, and the store stays usable. ABORTED if the
  /// stored version is not mutation.version - 1 (another process writes), RESOURCE_EXHAUSTED if the disk is
  /// full (makes_room has a reserve: catalog/disk_reserve.h), DATA_LOSS if the store is damaged.
  virtual absl::Status Apply(const Mutation& mutation) = 0;
};

/// The version of the layouts of the store's tables and of the rows that the store describes. A program
/// refuses a store of another version. Version 5 has NULL bits for nullable columns only
/// (partitioner/record_row.h), 6 has fabric_constants, 7 has saved_records.
inline constexpr uint64_t kStoreSchemaVersion = 7;

/// A path that stands for no file: the contents end with the store.
inline constexpr char kStoreInMemory[] = ":memory:";

/// The embedded store: one SQLite file at `path`, held exclusively. A new file gets `identity`; an existing
/// one keeps its own. FAILED_PRECONDITION if the file is no catalog store, has another schema, or is in use;
/// DATA_LOSS if it is damaged (catalog/checked_rows.h).
absl::StatusOr<std::unique_ptr<Store>> OpenEmbeddedStore(const std::string& path,
                                                         const ClusterIdentity& identity);

}  // namespace nam::catalog
