#include "catalog/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace nam::catalog {
namespace {

constexpr int64_t kApplicationId = 0x4E414D43;  // "NAMC", in the file's header
constexpr int64_t kSchemaVersion = 3;

// Bodies are serialized messages; what is looked up or constrained has a column of its own.
constexpr char kSchema[] = R"(
  CREATE TABLE cluster (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL,
    fabric TEXT NOT NULL,
    version INTEGER NOT NULL,
    next_member INTEGER NOT NULL,
    next_allocation INTEGER NOT NULL);
  CREATE TABLE members (
    id INTEGER PRIMARY KEY,
    role INTEGER NOT NULL,
    alive INTEGER NOT NULL,
    body BLOB NOT NULL);
  CREATE TABLE loads (
    allocation INTEGER PRIMARY KEY,
    member INTEGER NOT NULL REFERENCES members (id),
    table_name TEXT NOT NULL,
    replaces INTEGER NOT NULL);
  CREATE INDEX loads_by_member ON loads (member);
  CREATE TABLE tables (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    allocation INTEGER NOT NULL UNIQUE,
    body BLOB NOT NULL) WITHOUT ROWID;
)";

// What version 2 adds to version 1.
constexpr char kGroupsSchema[] = R"(
  CREATE TABLE multicast_groups (
    number INTEGER PRIMARY KEY,
    member INTEGER NOT NULL REFERENCES members (id));
  CREATE INDEX multicast_groups_by_member ON multicast_groups (member);
)";

// What version 3 adds to version 2: the allocation of the table that a load extends, 0 for none.
constexpr char kExtendsSchema[] = "ALTER TABLE loads ADD COLUMN extends INTEGER NOT NULL DEFAULT 0";

class Database {
 public:
  Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  ~Database() { sqlite3_close_v2(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }

  absl::Status Error(int code) const;
  absl::Status Execute(const char* sql) {
    const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? absl::OkStatus() : Error(code);
  }

 private:
  sqlite3* handle_;
  const std::string path_;
};

// To be called at once after the failure: the details are the connection's last ones.
absl::Status Database::Error(int code) const {
  const int system_error = sqlite3_system_errno(handle_);
  const std::string why =
      absl::StrFormat("%s (SQLite %d)", sqlite3_errmsg(handle_), sqlite3_extended_errcode(handle_));
  switch (code & 0xFF) {
    case SQLITE_NOTADB:
      return absl::FailedPreconditionError(absl::StrFormat(
          "`%s` is not a catalog store: %s; name another file, or remove this one if nobody needs it", path_,
          why));
    case SQLITE_CORRUPT:
      return absl::DataLossError(
          absl::StrFormat("the catalog store `%s` is damaged: %s; restore a copy of it, or start with a new "
                          "file and load again",
                          path_, why));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::FailedPreconditionError(absl::StrFormat(
          "the catalog store `%s` is in use by another process; is a catalog already running?", path_));
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::FailedPreconditionError(absl::StrFormat(
          "cannot open the catalog store `%s` for writing: %s; the folder must exist and be writable", path_,
          system_error != 0 ? std::strerror(system_error) : why.c_str()));
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(absl::StrFormat(
          "no room for the catalog store `%s`: %s; free disk space and try again, nothing was changed", path_,
          why));
    case SQLITE_IOERR:
      if (system_error == EIO) break;
      return absl::ResourceExhaustedError(absl::StrFormat(
          "cannot write the catalog store `%s`: %s%s; check disk space and quota and try again, nothing was "
          "changed",
          path_, why, system_error != 0 ? absl::StrCat(", ", std::strerror(system_error)) : std::string()));
    default:
      break;
  }
  return absl::InternalError(absl::StrFormat("the catalog store `%s` failed: %s", path_, why));
}

// A prepared statement for one use: the first error sticks until Run or Next reports it.
class Statement {
 public:
  Statement(Database& database, const char* sql) : database_(database) {
    code_ = sqlite3_prepare_v2(database.handle(), sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(uint64_t value) {
    if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_, ++bound_, static_cast<int64_t>(value));
    return *this;
  }
  Statement& BindText(const std::string& text) {
    if (code_ == SQLITE_OK) {
      code_ =
          sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    }
    return *this;
  }
  Statement& BindBlob(const std::string& bytes) {
    if (code_ == SQLITE_OK) {
      code_ = sqlite3_bind_blob64(statement_, ++bound_, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
    }
    return *this;
  }

  /// True while there is a row.
  absl::StatusOr<bool> Next() {
    if (code_ != SQLITE_OK) return database_.Error(code_);
    const int step = sqlite3_step(statement_);
    if (step == SQLITE_ROW) return true;
    if (step == SQLITE_DONE) return false;
    return database_.Error(step);
  }
  absl::Status Run() {
    NAM_ASSIGN_OR_RETURN(bool more, Next());
    while (more) {
      NAM_ASSIGN_OR_RETURN(more, Next());
    }
    return absl::OkStatus();
  }

  uint64_t Integer(int column) const {
    return static_cast<uint64_t>(sqlite3_column_int64(statement_, column));
  }
  std::string Bytes(int column) const {
    const void* data = sqlite3_column_blob(statement_, column);
    return data == nullptr ? std::string()
                           : std::string(static_cast<const char*>(data),
                                         static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
  }

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

absl::StatusOr<int64_t> ReadInteger(Database& database, const char* sql) {
  Statement statement(database, sql);
  NAM_ASSIGN_OR_RETURN(const bool found, statement.Next());
  return found ? static_cast<int64_t>(statement.Integer(0)) : 0;
}

absl::StatusOr<std::string> ReadText(Database& database, const char* sql) {
  Statement statement(database, sql);
  NAM_ASSIGN_OR_RETURN(const bool found, statement.Next());
  return found ? statement.Bytes(0) : std::string();
}

// Rolls back unless committed. A failed COMMIT may leave the transaction open or have ended it.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) {}
  ~Transaction() {
    if (sqlite3_get_autocommit(database_.handle()) == 0) {
      sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }
  absl::Status Begin() { return database_.Execute("BEGIN IMMEDIATE"); }
  absl::Status Commit() { return database_.Execute("COMMIT"); }

 private:
  Database& database_;
};

absl::Status CreateSchema(Database& database, const ClusterIdentity& identity) {
  Transaction transaction(database);
  NAM_RETURN_IF_ERROR(transaction.Begin());
  NAM_RETURN_IF_ERROR(database.Execute(kSchema));
  NAM_RETURN_IF_ERROR(database.Execute(kGroupsSchema));
  NAM_RETURN_IF_ERROR(database.Execute(kExtendsSchema));
  NAM_RETURN_IF_ERROR(database.Execute(
      absl::StrFormat("PRAGMA application_id = %d; PRAGMA user_version = %d;", kApplicationId, kSchemaVersion)
          .c_str()));
  NAM_RETURN_IF_ERROR(Statement(database, "INSERT INTO cluster VALUES (1, ?, ?, 1, 1, 1)")
                          .BindText(identity.name)
                          .BindText(identity.fabric)
                          .Run());
  return transaction.Commit();
}

absl::Status UpgradeSchema(Database& database) {
  NAM_ASSIGN_OR_RETURN(const int64_t schema, ReadInteger(database, "PRAGMA user_version"));
  if (schema == kSchemaVersion) return absl::OkStatus();
  Transaction transaction(database);
  NAM_RETURN_IF_ERROR(transaction.Begin());
  if (schema < 2) NAM_RETURN_IF_ERROR(database.Execute(kGroupsSchema));
  NAM_RETURN_IF_ERROR(database.Execute(kExtendsSchema));
  NAM_RETURN_IF_ERROR(database.Execute(absl::StrFormat("PRAGMA user_version = %d", kSchemaVersion).c_str()));
  return transaction.Commit();
}

// True for a file that is still to become a store. A foreign file is refused before anything is written.
absl::StatusOr<bool> IsNewStore(Database& database) {
  NAM_ASSIGN_OR_RETURN(const int64_t application, ReadInteger(database, "PRAGMA application_id"));
  NAM_ASSIGN_OR_RETURN(const int64_t schema, ReadInteger(database, "PRAGMA user_version"));
  if (application == 0 && schema == 0) {
    NAM_ASSIGN_OR_RETURN(const int64_t objects, ReadInteger(database, "SELECT count(*) FROM sqlite_master"));
    if (objects == 0) return true;
  }
  if (application != kApplicationId) {
    return absl::FailedPreconditionError(
        absl::StrFormat("`%s` is the SQLite database of another program; name another file for the catalog",
                        database.path()));
  }
  if (schema < 1 || schema > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the catalog store `%s` has schema %d, this program knows %d; use the version of nam that wrote it",
        database.path(), schema, kSchemaVersion));
  }
  return false;
}

class EmbeddedStore final : public Store {
 public:
  explicit EmbeddedStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  absl::StatusOr<StoredState> Load() override;
  absl::Status Apply(const Mutation& mutation) override;

 private:
  absl::Status ReadCluster(StoredState& state);
  absl::Status ReadMembersAndWhatTheyOwn(StoredState& state);
  absl::Status ReadTables(StoredState& state);
  absl::Status AdvanceVersion(const Mutation& mutation);
  absl::Status Put(const Mutation& mutation);
  absl::Status Delete(const Mutation& mutation);
  absl::Status Unreadable(const std::string& what) const {
    return absl::DataLossError(
        absl::StrFormat("the catalog store `%s` is damaged: %s cannot be read", database_->path(), what));
  }

  std::mutex mutex_;  // one statement at a time on the connection
  const std::unique_ptr<Database> database_;
};

absl::StatusOr<StoredState> EmbeddedStore::Load() {
  const std::lock_guard lock(mutex_);
  StoredState state;
  NAM_RETURN_IF_ERROR(ReadCluster(state));
  NAM_RETURN_IF_ERROR(ReadMembersAndWhatTheyOwn(state));
  NAM_RETURN_IF_ERROR(ReadTables(state));
  return state;
}

absl::Status EmbeddedStore::ReadCluster(StoredState& state) {
  Statement cluster(*database_, "SELECT name, fabric, version, next_member, next_allocation FROM cluster");
  NAM_ASSIGN_OR_RETURN(const bool found, cluster.Next());
  if (!found) return Unreadable("the cluster's row");
  state.identity = {cluster.Bytes(0), cluster.Bytes(1)};
  state.version = cluster.Integer(2);
  state.next_member = static_cast<uint32_t>(cluster.Integer(3));
  state.next_allocation = cluster.Integer(4);
  return absl::OkStatus();
}

absl::Status EmbeddedStore::ReadMembersAndWhatTheyOwn(StoredState& state) {
  Statement members(*database_, "SELECT id, body FROM members ORDER BY id");
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool more, members.Next());
    if (!more) break;
    proto::Member member;
    if (!member.ParseFromString(members.Bytes(1)) || member.id() != members.Integer(0)) {
      return Unreadable(absl::StrCat("member ", members.Integer(0)));
    }
    state.members.push_back(std::move(member));
  }
  Statement loads(*database_,
                  "SELECT allocation, member, table_name, replaces, extends FROM loads ORDER BY allocation");
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool more, loads.Next());
    if (!more) break;
    state.loads.push_back({AllocationId(loads.Integer(0)), MemberId(static_cast<uint32_t>(loads.Integer(1))),
                           loads.Bytes(2), loads.Integer(3) != 0, AllocationId(loads.Integer(4))});
  }
  Statement groups(*database_, "SELECT number, member FROM multicast_groups ORDER BY number");
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool more, groups.Next());
    if (!more) return absl::OkStatus();
    state.groups.push_back(
        {static_cast<uint32_t>(groups.Integer(0)), MemberId(static_cast<uint32_t>(groups.Integer(1)))});
  }
}

absl::Status EmbeddedStore::ReadTables(StoredState& state) {
  Statement tables(*database_, "SELECT name, body FROM tables ORDER BY name");
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool more, tables.Next());
    if (!more) return absl::OkStatus();
    proto::Table table;
    if (!table.ParseFromString(tables.Bytes(1)) || table.name() != tables.Bytes(0)) {
      return Unreadable(absl::StrFormat("table `%s`", tables.Bytes(0)));
    }
    state.tables.push_back(std::move(table));
  }
}

absl::Status EmbeddedStore::Apply(const Mutation& mutation) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*database_);
  NAM_RETURN_IF_ERROR(transaction.Begin());
  NAM_RETURN_IF_ERROR(AdvanceVersion(mutation));
  NAM_RETURN_IF_ERROR(Put(mutation));
  NAM_RETURN_IF_ERROR(Delete(mutation));
  return transaction.Commit();
}

absl::Status EmbeddedStore::AdvanceVersion(const Mutation& mutation) {
  NAM_RETURN_IF_ERROR(
      Statement(
          *database_,
          "UPDATE cluster SET version = ?1, next_member = ?2, next_allocation = ?3 WHERE version = ?1 - 1")
          .Bind(mutation.version)
          .Bind(mutation.next_member)
          .Bind(mutation.next_allocation)
          .Run());
  if (sqlite3_changes(database_->handle()) == 1) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrFormat("the catalog store `%s` was changed by somebody else since version %d",
                      database_->path(), mutation.version - 1));
}

absl::Status EmbeddedStore::Put(const Mutation& mutation) {
  // Not REPLACE, which deletes first and so trips over the foreign key.
  for (const proto::Member& member : mutation.put_members) {
    NAM_RETURN_IF_ERROR(Statement(*database_,
                                  "INSERT INTO members VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                                  "role = excluded.role, alive = excluded.alive, body = excluded.body")
                            .Bind(member.id())
                            .Bind(static_cast<uint64_t>(member.role()))
                            .Bind(member.alive())
                            .BindBlob(member.SerializeAsString())
                            .Run());
  }
  for (const LoadRecord& load : mutation.put_loads) {
    NAM_RETURN_IF_ERROR(Statement(*database_, "INSERT OR REPLACE INTO loads VALUES (?, ?, ?, ?, ?)")
                            .Bind(load.allocation.value())
                            .Bind(load.owner.value())
                            .BindText(load.table)
                            .Bind(load.replace)
                            .Bind(load.extends.value())
                            .Run());
  }
  for (const GroupRecord& group : mutation.put_groups) {
    NAM_RETURN_IF_ERROR(Statement(*database_, "INSERT OR REPLACE INTO multicast_groups VALUES (?, ?)")
                            .Bind(group.group)
                            .Bind(group.owner.value())
                            .Run());
  }
  for (const proto::Table& table : mutation.put_tables) {
    NAM_RETURN_IF_ERROR(
        Statement(*database_,
                  "INSERT INTO tables VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                  "version = excluded.version, allocation = excluded.allocation, body = excluded.body")
            .BindText(table.name())
            .Bind(table.version())
            .Bind(table.allocation())
            .BindBlob(table.SerializeAsString())
            .Run());
  }
  return absl::OkStatus();
}

absl::Status EmbeddedStore::Delete(const Mutation& mutation) {
  for (const uint64_t allocation : mutation.delete_loads) {
    NAM_RETURN_IF_ERROR(
        Statement(*database_, "DELETE FROM loads WHERE allocation = ?").Bind(allocation).Run());
  }
  for (const uint32_t group : mutation.delete_groups) {
    NAM_RETURN_IF_ERROR(
        Statement(*database_, "DELETE FROM multicast_groups WHERE number = ?").Bind(group).Run());
  }
  for (const std::string& name : mutation.delete_tables) {
    NAM_RETURN_IF_ERROR(Statement(*database_, "DELETE FROM tables WHERE name = ?").BindText(name).Run());
  }
  for (const uint32_t id : mutation.delete_members) {
    NAM_RETURN_IF_ERROR(Statement(*database_, "DELETE FROM members WHERE id = ?").Bind(id).Run());
  }
  return absl::OkStatus();
}

/// Mode 0600 before anything is in it; SQLite gives its log and its journal the same. What it cannot do,
/// opening the store tells.
void MakePrivate(const std::string& path) {
  if (path == kStoreInMemory) return;
  const UniqueFd fresh(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat info;
  // One that is there must not be opened here: closing it would drop the locks on it.
  if (!fresh.valid() && stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
      (info.st_mode & 077) != 0) {
    chmod(path.c_str(), 0600);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenEmbeddedStore(const std::string& path,
                                                         const ClusterIdentity& identity) {
  if (path.empty()) return absl::InvalidArgumentError("the catalog needs a file for its store");
  MakePrivate(path);
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open_v2(
      path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (handle == nullptr) return absl::ResourceExhaustedError("no memory to open the catalog store");
  auto database = std::make_unique<Database>(handle, path);
  if (opened != SQLITE_OK) return database->Error(opened);
  sqlite3_extended_result_codes(handle, 1);
  // Exclusive: a second catalog on the same file is refused, and no shared-memory file is needed.
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
    NAM_ASSIGN_OR_RETURN(const std::string checked, ReadText(*database, "PRAGMA quick_check(1)"));
    if (checked != "ok") {
      return absl::DataLossError(
          absl::StrFormat("the catalog store `%s` is damaged: %s; restore a copy of it, or start with a new "
                          "file and load again",
                          path, checked));
    }
    NAM_RETURN_IF_ERROR(UpgradeSchema(*database));
  }
  return std::make_unique<EmbeddedStore>(std::move(database));
}

}  // namespace nam::catalog
