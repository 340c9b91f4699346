#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// SQLite as the catalog's store uses it. Not thread-safe: the store serializes access.
namespace nam::catalog {

/// A connection to one file.
class Database {
 public:
  Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  ~Database() { sqlite3_close_v2(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  sqlite3* handle() const { return handle_; }
  const std::string& path() const { return path_; }

  /// Translates a failed call. Must be called directly after it, because the connection keeps only the last
  /// details.
  absl::Status Error(int code) const;
  /// DATA_LOSS, with possible remedies.
  absl::Status Damaged(const std::string& why) const;
  absl::Status Execute(const char* sql);

 private:
  sqlite3* handle_;
  const std::string path_;
};

/// A prepared statement for one use: the first error sticks until Run or Next reports it.
class Statement {
 public:
  Statement(Database& database, const char* sql) : database_(database) {
    code_ = sqlite3_prepare_v2(database.handle(), sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(uint64_t value);
  Statement& BindText(const std::string& text);
  Statement& BindBlob(const std::string& bytes);

  /// True if there is another row.
  absl::StatusOr<bool> Next();
  absl::Status Run();

  uint64_t Integer(int column) const {
    return static_cast<uint64_t>(sqlite3_column_int64(statement_, column));
  }
  std::string Bytes(int column) const;
  /// True if the value is stored as `kind`: i(nteger), t(ext) or b(lob).
  bool Is(char kind, int column) const;

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

/// The first column of the first row; 0 or empty if there is none.
absl::StatusOr<uint64_t> ReadInteger(Database& database, const char* sql);
absl::StatusOr<std::string> ReadText(Database& database, const char* sql);

/// Rolls back unless committed. A failed COMMIT may leave the transaction open or have ended it.
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

}  // namespace nam::catalog
