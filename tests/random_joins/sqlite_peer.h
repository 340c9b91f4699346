#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tests/cluster/oracle.h"

namespace nam::testing {

/// SQLite in memory, and the rules by which its rows are compared:
///
/// - integers are integers; decimals are doubles, exact since all are small multiples of a power of two;
/// - booleans are 0 and 1, dates ISO texts, a char(n) has no blanks at its end;
/// - texts are compared by bytes.
class SqlitePeer {
 public:
  SqlitePeer();
  ~SqlitePeer();
  SqlitePeer(const SqlitePeer&) = delete;
  SqlitePeer& operator=(const SqlitePeer&) = delete;

  /// Replaces the table, and indexes the columns that joins compare.
  void Load(const SmallTable& table);
  /// Rows as Canonical writes them. RESOURCE_EXHAUSTED after more than `steps_max` steps of SQLite's machine,
  /// or more than kRowsMax rows.
  absl::StatusOr<TextRows> Run(const std::string& sql, uint64_t steps_max);

  static constexpr size_t kRowsMax = 4'000;

 private:
  void Exec(const std::string& sql);
  static int Stop(void* self);

  sqlite3* database_ = nullptr;
  uint64_t steps_left_ = 0;
};

/// A number without zeros at its end; -0 is 0.
std::string CanonicalNumber(std::string number);
/// A session's rows in the form of SQLite's: numbers by CanonicalNumber, booleans as 0 and 1, char(n) without
/// blanks at its end, NULL as `NULL`.
TextRows Canonical(const session::ResultSet& result);

/// Whether both have the same rows, as sets with repeats; averages, in the columns of `approximate`, have six
/// digits behind the point.
bool SameRows(const TextRows& a, const TextRows& b, const std::vector<bool>& approximate);
/// The rows that only one of them has, at most `most` of each.
std::string Differences(const TextRows& expected, const TextRows& actual, size_t most);

}  // namespace nam::testing
