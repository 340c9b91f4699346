#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "partitioner/column_batch.h"
#include "partitioner/table_schema.h"
#include "types/value.h"

struct sqlite3;
struct sqlite3_stmt;

namespace nam {

/// A second opinion: the same rows in an SQLite database in memory. Tables have the columns that are
/// asked for; integers and strings only, dates as ISO text.
class SqliteOracle {
 public:
  using Rows = std::vector<std::vector<Value>>;

  /// `cancelled`, if given, ends what runs with CANCELLED when it becomes true.
  static absl::StatusOr<std::unique_ptr<SqliteOracle>> Open(const std::atomic<bool>* cancelled = nullptr);
  ~SqliteOracle();
  SqliteOracle(const SqliteOracle&) = delete;
  SqliteOracle& operator=(const SqliteOracle&) = delete;

  /// Only the columns whose names occur as a word in one of `queries`. `key` (empty: none) names an integer
  /// column without duplicates; SQLite joins by it many times as fast.
  absl::Status CreateTable(const partitioner::TableSchema& schema, const std::vector<std::string>& queries,
                           const std::string& key);
  /// A batch with all columns of the schema. Any number of threads, one after the other.
  absl::Status Append(const std::string& table, const partitioner::ColumnBatch& batch);
  /// Ends loading, and gathers the statistics that make SQLite choose well.
  absl::Status Commit();
  absl::StatusOr<Rows> Run(const std::string& sql);

 private:
  struct Table {
    std::vector<size_t> columns;  // of the schema
    std::vector<bool> dates;      // of them
    sqlite3_stmt* insert = nullptr;
  };
  explicit SqliteOracle(sqlite3* database) : database_(database) {}
  absl::Status Execute(const std::string& sql);
  absl::Status Error(const std::string& what) const;
  void Bind(const Table& table, const partitioner::ColumnBatch& batch, size_t row) const;

  sqlite3* const database_;
  std::mutex mutex_;
  std::map<std::string, Table> tables_;
};

/// The same rows, in any order?
bool SameRows(const SqliteOracle::Rows& a, const SqliteOracle::Rows& b);

}  // namespace nam
