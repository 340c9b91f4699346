#include "catalog/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "catalog/checked_rows.h"
#include "catalog/disk_reserve.h"
#include "catalog/sqlite_database.h"

namespace nam::catalog {
namespace {

constexpr uint64_t kApplicationId = 0x4E414D43;  // "NAMC", in the file's header

// Bodies are serialized messages; fields that are looked up or constrained have their own columns.
constexpr char kSchema[] = R"(
  CREATE TABLE cluster (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL,
    fabric TEXT NOT NULL,
    store INTEGER NOT NULL,
    version INTEGER NOT NULL,
    next_member INTEGER NOT NULL,
    next_allocation INTEGER NOT NULL,
    rows_checksum INTEGER NOT NULL,
    checksum INTEGER NOT NULL);
  CREATE TABLE members (
    id INTEGER PRIMARY KEY,
    role INTEGER NOT NULL,
    alive INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL);
  CREATE TABLE loads (
    allocation INTEGER PRIMARY KEY,
    member INTEGER NOT NULL REFERENCES members (id),
    table_name TEXT NOT NULL,
    replaces INTEGER NOT NULL,
    extends INTEGER NOT NULL,
    checksum INTEGER NOT NULL);
  CREATE INDEX loads_by_member ON loads (member);
  CREATE TABLE multicast_groups (
    number INTEGER PRIMARY KEY,
    member INTEGER NOT NULL REFERENCES members (id),
    checksum INTEGER NOT NULL);
  CREATE INDEX multicast_groups_by_member ON multicast_groups (member);
  CREATE TABLE tables (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    allocation INTEGER NOT NULL UNIQUE,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE epochs (
    number INTEGER PRIMARY KEY,
    id_high INTEGER NOT NULL,
    id_low INTEGER NOT NULL,
    first_version INTEGER NOT NULL,
    accepts_older INTEGER NOT NULL,
    checksum INTEGER NOT NULL);
  CREATE TABLE fabric_constants (
    fabric TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE saved_records (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,
    checksum INTEGER NOT NULL);
)";

const RowLayout kCluster{
    "cluster",
    {"one", "name", "fabric", "store", "version", "next_member", "next_allocation", "rows_checksum"},
    "ittiiiii"};
const RowLayout kMembers{"members", {"id", "role", "alive", "body"}, "iiib"};
const RowLayout kLoads{"loads", {"allocation", "member", "table_name", "replaces", "extends"}, "iitii"};
const RowLayout kGroups{"multicast_groups", {"number", "member"}, "ii"};
const RowLayout kTables{"tables", {"name", "version", "allocation", "body"}, "tiib"};
const RowLayout kEpochs{"epochs", {"number", "id_high", "id_low", "first_version", "accepts_older"}, "iiiii"};
const RowLayout kConstants{"fabric_constants", {"fabric", "body"}, "tb"};
const RowLayout kSavedRecords{"saved_records", {"one", "number"}, "ii"};

struct ClusterRow {
  ClusterIdentity identity;
  uint64_t version = 1;
  uint64_t next_member = 1;
  uint64_t next_allocation = 1;
  uint64_t rows_checksum = 0;
};

absl::Status PutCluster(Database& database, const ClusterRow& cluster) {
  return CheckedRows(database, 0)
      .Put(kCluster, {uint64_t{1}, cluster.identity.name, cluster.identity.fabric, cluster.identity.store,
                      cluster.version, cluster.next_member, cluster.next_allocation, cluster.rows_checksum});
}

absl::StatusOr<ClusterRow> ReadCluster(Database& database) {
  ClusterRow cluster;
  bool found = false;
  NAM_RETURN_IF_ERROR(CheckedRows(database, 0).Scan(kCluster, [&](const Row& row) {
    found = true;
    cluster = {{row.Bytes(1), row.Bytes(2), row.Number(3)},
               row.Number(4),
               row.Number(5),
               row.Number(6),
               row.Number(7)};
    return absl::OkStatus();
  }));
  if (!found) return database.Damaged("the cluster's row is missing");
  return cluster;
}

absl::Status CreateSchema(Database& database, const ClusterIdentity& identity) {
  Transaction transaction(database);
  NAM_RETURN_IF_ERROR(transaction.Begin());
  NAM_RETURN_IF_ERROR(database.Execute(kSchema));
  NAM_RETURN_IF_ERROR(
      database.Execute(absl::StrFormat("PRAGMA application_id = %d; PRAGMA user_version = %d;",
                                       kApplicationId, kStoreSchemaVersion)
                           .c_str()));
  NAM_RETURN_IF_ERROR(PutCluster(database, {.identity = identity}));
  return transaction.Commit();
}

absl::StatusOr<std::string> SchemaOf(Database& database) {
  return ReadText(database,
                  "SELECT group_concat(type || name || tbl_name || coalesce(sql, ''), ';') FROM "
                  "(SELECT * FROM sqlite_master ORDER BY type, name)");
}

absl::StatusOr<std::unique_ptr<Database>> OpenDatabase(const std::string& path) {
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open_v2(
      path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (handle == nullptr) return absl::ResourceExhaustedError("no memory to open the catalog store");
  auto database = std::make_unique<Database>(handle, path);
  if (opened != SQLITE_OK) return database->Error(opened);
  sqlite3_extended_result_codes(handle, 1);
  return database;
}

// Checks that the pages are consistent, and that the schema is that of a new store.
absl::Status CheckPagesAndSchema(Database& database) {
  NAM_ASSIGN_OR_RETURN(const std::string checked, ReadText(database, "PRAGMA integrity_check(1)"));
  if (checked != "ok") return database.Damaged(checked);
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<Database> fresh, OpenDatabase(kStoreInMemory));
  NAM_RETURN_IF_ERROR(CreateSchema(*fresh, {}));
  NAM_ASSIGN_OR_RETURN(const std::string expected, SchemaOf(*fresh));
  NAM_ASSIGN_OR_RETURN(const std::string found, SchemaOf(database));
  return found == expected ? absl::OkStatus() : database.Damaged("its schema is not that of a store");
}

// True if the file must still be initialized. Refuses a foreign file before anything is written.
absl::StatusOr<bool> IsNewStore(Database& database) {
  NAM_ASSIGN_OR_RETURN(const uint64_t application, ReadInteger(database, "PRAGMA application_id"));
  NAM_ASSIGN_OR_RETURN(const uint64_t schema, ReadInteger(database, "PRAGMA user_version"));
  if (application == 0 && schema == 0) {
    NAM_ASSIGN_OR_RETURN(const uint64_t objects, ReadInteger(database, "SELECT count(*) FROM sqlite_master"));
    if (objects == 0) return true;
  }
  if (application != kApplicationId) {
    return absl::FailedPreconditionError(
        absl::StrFormat("`%s` is the SQLite database of another program; name another file for the catalog",
                        database.path()));
  }
  if (schema != kStoreSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the catalog store `%s` has schema %d, this program knows %d; use the version of nam "
                        "that wrote it, or "
                        "start with a new file and load again",
                        database.path(), schema, kStoreSchemaVersion));
  }
  return false;
}

class EmbeddedStore final : public Store {
 public:
  explicit EmbeddedStore(std::unique_ptr<Database> database)
      : database_(std::move(database)),
        reserve_(database_->path() == kStoreInMemory ? std::string() : database_->path()) {
    reserve_.Fill();
  }
  absl::StatusOr<StoredState> Load() override;
  absl::Status Apply(const Mutation& mutation) override;

 private:
  absl::Status ReadMembersAndTables(CheckedRows& rows, StoredState& state);
  static absl::Status ReadWhatMembersOwn(CheckedRows& rows, StoredState& state);
  absl::Status ReadTheRest(CheckedRows& rows, StoredState& state);
  absl::Status Write(const Mutation& mutation);
  static absl::Status Put(CheckedRows& rows, const Mutation& mutation);
  static absl::Status Delete(CheckedRows& rows, const Mutation& mutation);

  Mutex mutex_;  // one statement at a time per connection
  const std::unique_ptr<Database> database_;
  DiskReserve reserve_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<StoredState> EmbeddedStore::Load() {
  const MutexLock lock(mutex_);
  NAM_ASSIGN_OR_RETURN(const ClusterRow cluster, ReadCluster(*database_));
  StoredState state;
  state.identity = cluster.identity;
  state.version = cluster.version;
  state.next_member = static_cast<uint32_t>(cluster.next_member);
  state.next_allocation = cluster.next_allocation;
  CheckedRows rows(*database_, 0);
  NAM_RETURN_IF_ERROR(ReadMembersAndTables(rows, state));
  NAM_RETURN_IF_ERROR(ReadWhatMembersOwn(rows, state));
  NAM_RETURN_IF_ERROR(ReadTheRest(rows, state));
  if (rows.sum() == cluster.rows_checksum) return state;
  return database_->Damaged("rows are missing, or are not those that were written last");
}

absl::Status EmbeddedStore::ReadMembersAndTables(CheckedRows& rows, StoredState& state) {
  NAM_RETURN_IF_ERROR(rows.Scan(kMembers, [&](const Row& row) {
    proto::Member& member = state.members.emplace_back();
    if (member.ParseFromString(row.Bytes(3)) && member.id() == row.Number(0)) return absl::OkStatus();
    return database_->Damaged(absl::StrCat("member ", row.Number(0), " cannot be read"));
  }));
  return rows.Scan(kTables, [&](const Row& row) {
    proto::Table& table = state.tables.emplace_back();
    if (table.ParseFromString(row.Bytes(3)) && table.name() == row.Bytes(0)) return absl::OkStatus();
    return database_->Damaged(absl::StrFormat("table `%s` cannot be read", row.Bytes(0)));
  });
}

absl::Status EmbeddedStore::ReadWhatMembersOwn(CheckedRows& rows, StoredState& state) {
  NAM_RETURN_IF_ERROR(rows.Scan(kLoads, [&](const Row& row) {
    state.loads.push_back({AllocationId(row.Number(0)), MemberId(static_cast<uint32_t>(row.Number(1))),
                           row.Bytes(2), row.Number(3) != 0, AllocationId(row.Number(4))});
    return absl::OkStatus();
  }));
  NAM_RETURN_IF_ERROR(rows.Scan(kGroups, [&](const Row& row) {
    state.groups.push_back(
        {static_cast<uint32_t>(row.Number(0)), MemberId(static_cast<uint32_t>(row.Number(1)))});
    return absl::OkStatus();
  }));
  return rows.Scan(kEpochs, [&](const Row& row) {
    state.epochs.push_back({row.Number(0), row.Number(1), row.Number(2), row.Number(3), row.Number(4) != 0});
    return absl::OkStatus();
  });
}

absl::Status EmbeddedStore::ReadTheRest(CheckedRows& rows, StoredState& state) {
  NAM_RETURN_IF_ERROR(rows.Scan(kSavedRecords, [&](const Row& row) {
    state.saved_records = row.Number(1);
    return absl::OkStatus();
  }));
  return rows.Scan(kConstants, [&](const Row& row) {
    proto::FabricConstants& constants = state.constants.emplace_back();
    if (constants.ParseFromString(row.Bytes(1)) && constants.fabric() == row.Bytes(0))
      return absl::OkStatus();
    return database_->Damaged("the constants of a fabric cannot be read");
  });
}

absl::Status EmbeddedStore::Apply(const Mutation& mutation) {
  const MutexLock lock(mutex_);
  absl::Status applied = Write(mutation);
  while (absl::IsResourceExhausted(applied) && mutation.makes_room && reserve_.Spend())
    applied = Write(mutation);
  if (applied.ok()) reserve_.Fill();
  return applied;
}

absl::Status EmbeddedStore::Write(const Mutation& mutation) {
  Transaction transaction(*database_);
  NAM_RETURN_IF_ERROR(transaction.Begin());
  NAM_ASSIGN_OR_RETURN(ClusterRow cluster, ReadCluster(*database_));
  if (cluster.version + 1 != mutation.version) {
    return absl::AbortedError(
        absl::StrFormat("the catalog store `%s` was changed by another process since version %d",
                        database_->path(), mutation.version - 1));
  }
  CheckedRows rows(*database_, cluster.rows_checksum);
  NAM_RETURN_IF_ERROR(Put(rows, mutation));
  NAM_RETURN_IF_ERROR(Delete(rows, mutation));
  cluster.version = mutation.version;
  cluster.next_member = mutation.next_member;
  cluster.next_allocation = mutation.next_allocation;
  cluster.rows_checksum = rows.sum();
  NAM_RETURN_IF_ERROR(PutCluster(*database_, cluster));
  return transaction.Commit();
}

absl::Status EmbeddedStore::Put(CheckedRows& rows, const Mutation& mutation) {
  for (const proto::Member& member : mutation.put_members) {
    NAM_RETURN_IF_ERROR(rows.Put(kMembers, {uint64_t{member.id()}, static_cast<uint64_t>(member.role()),
                                            uint64_t{member.alive()}, member.SerializeAsString()}));
  }
  for (const LoadRecord& load : mutation.put_loads) {
    NAM_RETURN_IF_ERROR(rows.Put(kLoads, {load.allocation.value(), uint64_t{load.owner.value()}, load.table,
                                          uint64_t{load.replace}, load.extends.value()}));
  }
  for (const GroupRecord& group : mutation.put_groups) {
    NAM_RETURN_IF_ERROR(rows.Put(kGroups, {uint64_t{group.group}, uint64_t{group.owner.value()}}));
  }
  // A renamed table keeps its allocation.
  for (const std::string& name : mutation.delete_tables) NAM_RETURN_IF_ERROR(rows.Delete(kTables, name));
  for (const proto::Table& table : mutation.put_tables) {
    NAM_RETURN_IF_ERROR(
        rows.Put(kTables, {table.name(), table.version(), table.allocation(), table.SerializeAsString()}));
  }
  for (const EpochRecord& epoch : mutation.put_epochs) {
    NAM_RETURN_IF_ERROR(rows.Put(kEpochs, {epoch.number, epoch.id_high, epoch.id_low, epoch.first_version,
                                           uint64_t{epoch.accepts_older}}));
  }
  for (const proto::FabricConstants& constants : mutation.put_constants)
    NAM_RETURN_IF_ERROR(rows.Put(kConstants, {constants.fabric(), constants.SerializeAsString()}));
  if (mutation.put_saved_records.has_value())
    NAM_RETURN_IF_ERROR(rows.Put(kSavedRecords, {uint64_t{1}, *mutation.put_saved_records}));
  return absl::OkStatus();
}

absl::Status EmbeddedStore::Delete(CheckedRows& rows, const Mutation& mutation) {
  for (const uint64_t allocation : mutation.delete_loads)
    NAM_RETURN_IF_ERROR(rows.Delete(kLoads, allocation));
  for (const uint32_t group : mutation.delete_groups)
    NAM_RETURN_IF_ERROR(rows.Delete(kGroups, uint64_t{group}));
  for (const uint32_t id : mutation.delete_members) NAM_RETURN_IF_ERROR(rows.Delete(kMembers, uint64_t{id}));
  for (const uint64_t number : mutation.delete_epochs) NAM_RETURN_IF_ERROR(rows.Delete(kEpochs, number));
  return absl::OkStatus();
}

/// Sets mode 0600 before anything is written; SQLite gives its log and journal the same mode.
/// FAILED_PRECONDITION for a link, another user's file, and a file that stays open to others. If the file
/// cannot be created, opening the store reports it.
absl::Status MakePrivate(const std::string& path) {
  if (path == kStoreInMemory) return absl::OkStatus();
  const UniqueFd fresh(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  // An existing file must not be opened here: closing it would drop the locks on it. Others cannot exchange
  // this user's file after the check, unless they may write to its directory.
  struct stat info;
  if (fresh.valid() || lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the catalog store `%s` must be a regular file of the user who runs the catalog, and no link", path));
  }
  if ((info.st_mode & 077) == 0 || chmod(path.c_str(), 0600) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "others may read the catalog store `%s`, and `chmod 600` fails: %s", path, std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenEmbeddedStore(const std::string& path,
                                                         const ClusterIdentity& identity) {
  if (path.empty()) return absl::InvalidArgumentError("the catalog needs a file for its store");
  NAM_RETURN_IF_ERROR(MakePrivate(path));
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, OpenDatabase(path));
  // Exclusive: refuses a second catalog on the same file, and needs no shared-memory file.
  NAM_RETURN_IF_ERROR(database->Execute("PRAGMA locking_mode = EXCLUSIVE"));
  NAM_ASSIGN_OR_RETURN(const bool is_new, IsNewStore(*database));
  NAM_ASSIGN_OR_RETURN(const std::string mode, ReadText(*database, "PRAGMA journal_mode = WAL"));
  if (mode != "wal" && path != kStoreInMemory) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the file system of `%s` does not support write-ahead logging; choose another", path));
  }
  NAM_RETURN_IF_ERROR(database->Execute(
      "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 256"));
  if (is_new) {
    NAM_RETURN_IF_ERROR(CreateSchema(*database, identity));
  } else {
    NAM_RETURN_IF_ERROR(CheckPagesAndSchema(*database));
  }
  return std::make_unique<EmbeddedStore>(std::move(database));
}

}  // namespace nam::catalog
