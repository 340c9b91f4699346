#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "partitioner/column_batch.h"
#include "partitioner/table_schema.h"
#include "types/value.h"

struct sqlite3;
struct sqlite3_stmt;

namespace nam {

/// A reference database: the same rows in an SQLite database in memory. Tables have only the requested
/// columns; dates are ISO text, decimals real numbers.
class SqliteOracle {
 public:
  using Rows = std::vector<std::vector<Value>>;

  /// `cancelled`, if given, ends running calls with CANCELLED once it is true.
  static absl::StatusOr<std::unique_ptr<SqliteOracle>> Open(const std::atomic<bool>* cancelled = nullptr);
  ~SqliteOracle();
  SqliteOracle(const SqliteOracle&) = delete;
  SqliteOracle& operator=(const SqliteOracle&) = delete;

  /// Creates only columns whose names occur as a word in one of `queries`. `key` (empty: none) names an
  /// integer column without duplicates, by which SQLite joins much faster.
  absl::Status CreateTable(const partitioner::TableSchema& schema, const std::vector<std::string>& queries,
                           const std::string& key);
  /// Adds an index, if some query uses the column. Before Commit.
  absl::Status CreateIndex(const std::string& table, const std::string& column);
  /// Appends a batch with all columns of the schema. Any number of threads, one at a time.
  absl::Status Append(const std::string& table, const partitioner::ColumnBatch& batch);
  /// Ends loading, and gathers the statistics that SQLite's planner needs.
  absl::Status Commit();
  absl::StatusOr<Rows> Run(const std::string& sql);

 private:
  struct Table {
    std::vector<size_t> columns;  // indexes in the schema
    std::vector<Type> types;      // theirs
    std::vector<std::string> names;
    sqlite3_stmt* insert = nullptr;
  };
  explicit SqliteOracle(sqlite3* database) : database_(database) {}
  absl::Status Execute(const std::string& sql);
  absl::Status Error(const std::string& what) const;
  void Bind(const Table& table, const partitioner::ColumnBatch& batch, size_t row) const;

  sqlite3* const database_;
  Mutex mutex_;
  std::map<std::string, Table> tables_ ABSL_GUARDED_BY(mutex_);
};

/// True if the rows are the same, in any order.
bool SameRows(const SqliteOracle::Rows& a, const SqliteOracle::Rows& b);
/// Like SameRows, but numbers are equal if they differ by less than one in their first `digits` digits,
/// whatever their types, or by less than one in the last digit of the shorter one if that has six decimals or
/// more: systems round quotients and averages to different scales.
bool SameRowsTo(int digits, const SqliteOracle::Rows& a, const SqliteOracle::Rows& b);

}  // namespace nam
