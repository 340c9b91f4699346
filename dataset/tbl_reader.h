#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "dataset/chunk_run.h"
#include "dataset/table.h"
#include "fabric/fabric.h"

namespace nam::dataset {

/// Longer lines are no lines of this benchmark.
inline constexpr size_t kTblLineBytesMax = 64 * 1024;

/// One table's file as any dbgen writes it: fields separated by `|`, lines closed by one more `|` or not,
/// ended by \n or \r\n, the last one or not; UTF-8; no quoting. Keys that are
/// dates are yyyymmdd or yyyy-mm-dd. A table may have several file names, and any number of rows.
class TblFile {
 public:
  /// `table` outlives it. NOT_FOUND names what was looked for; INVALID_ARGUMENT if it is empty or no file.
  static absl::StatusOr<TblFile> Open(const std::string& directory, const Table& table);

  const Table& table() const { return *table_; }
  const std::string& path() const { return path_; }
  /// `lineorder.tbl`, as in messages.
  std::string_view name() const { return std::string_view(path_).substr(path_.rfind('/') + 1); }
  uint64_t bytes() const { return bytes_; }
  /// From the length of the first lines: for a loader's expected_rows. A few percent off.
  uint64_t estimated_rows() const { return estimated_rows_; }
  /// The first line ends with a separator, so every line should.
  bool closes_lines() const { return closes_lines_; }

  /// Fills `into` from `offset` on. DATA_LOSS if the file has become shorter.
  absl::Status Read(uint64_t offset, char* into, size_t bytes) const;
  /// The number, from 1, of the line that holds the byte at `offset`: reads all before it.
  absl::StatusOr<uint64_t> LineNumber(uint64_t offset) const;

 private:
  TblFile() = default;
  absl::Status LookAtStart();

  const Table* table_ = nullptr;
  std::string path_;
  UniqueFd fd_;
  uint64_t bytes_ = 0;
  uint64_t estimated_rows_ = 0;
  bool closes_lines_ = false;
};

/// Gives all rows to the sink, read by ranges of bytes aligned to lines; the number of rows. A malformed
/// line ends it with INVALID_ARGUMENT, always for the first such line in the file:
/// `lineorder.tbl:17: column 9 (lo_quantity): "x" is not an integer`.
absl::StatusOr<uint64_t> ReadTbl(fabric::Fabric& fabric, const TblFile& file, const Sink& sink,
                                 const WorkOptions& options);

}  // namespace nam::dataset
