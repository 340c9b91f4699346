#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/sqlite_database.h"

/// Rows with checksums, and a sum over all checksums:
///
///     members, loads, …   key │ columns │ checksum = XXH3(table, key, columns)
///     cluster             columns, sum of all rows' checksums │ checksum
///
/// A flipped bit breaks a row's checksum. A missing or reverted row breaks the sum in the cluster's row,
/// which every transaction writes.
namespace nam::catalog {

/// The columns of a table, without its checksum. The first one is the key.
struct RowLayout {
  const char* table;
  std::vector<const char*> columns;
  const char* kinds;  // per column: i(nteger), t(ext), b(lob)
};

/// The values of a row, without its checksum.
class Row {
 public:
  using Field = std::variant<uint64_t, std::string>;
  Row(std::initializer_list<Field> fields) : fields_(fields) {}
  explicit Row(std::vector<Field> fields) : fields_(std::move(fields)) {}

  uint64_t Number(size_t column) const { return std::get<uint64_t>(fields_[column]); }
  const std::string& Bytes(size_t column) const { return std::get<std::string>(fields_[column]); }
  const std::vector<Field>& fields() const { return fields_; }
  uint64_t Checksum(const RowLayout& layout) const;

 private:
  std::vector<Field> fields_;
};

/// Reads and changes rows, and keeps the sum of their checksums.
class CheckedRows {
 public:
  CheckedRows(Database& database, uint64_t sum) : database_(database), sum_(sum) {}

  /// Replaces the row with the same key.
  absl::Status Put(const RowLayout& layout, const Row& row);
  /// No effect if there is no such row.
  absl::Status Delete(const RowLayout& layout, const Row::Field& key);
  /// Visits all rows by key, and adds their checksums to the sum. DATA_LOSS if one is wrong.
  absl::Status Scan(const RowLayout& layout, const std::function<absl::Status(const Row&)>& row);

  uint64_t sum() const { return sum_; }

 private:
  absl::StatusOr<uint64_t> StoredChecksum(const RowLayout& layout, const Row::Field& key);

  Database& database_;
  uint64_t sum_;  // mod 2^64
};

}  // namespace nam::catalog
