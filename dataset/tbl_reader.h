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

/// The limit of a line; no table of a benchmark has longer ones.
inline constexpr size_t kTblLineBytesMax = 64 * 1024;

/// One table's file from any dbgen: fields separated by `|`, with or without a final `|`, lines ended by \n
/// or \r\n, optional after the last line; UTF-8; no quoting. Date keys are yyyymmdd or yyyy-mm-dd. A table
/// may have several file names, and any number of rows.
class TblFile {
 public:
  /// `table` must outlive this object. NOT_FOUND names the files tried; INVALID_ARGUMENT if the file is empty
  /// or not a regular file.
  static absl::StatusOr<TblFile> Open(const std::string& directory, const Table& table);

  const Table& table() const { return *table_; }
  const std::string& path() const { return path_; }
  /// The file name for messages: `lineorder.tbl`.
  std::string_view name() const { return std::string_view(path_).substr(path_.rfind('/') + 1); }
  uint64_t bytes() const { return bytes_; }
  /// Estimate from the length of the first lines, for a loader's expected_rows. A few percent off.
  uint64_t estimated_rows() const { return estimated_rows_; }
  /// True if the first line ends with a separator, as every line then should.
  bool closes_lines() const { return closes_lines_; }

  /// Fills `into` with the bytes at `offset`. DATA_LOSS if the file has become shorter.
  absl::Status Read(uint64_t offset, char* into, size_t bytes) const;
  /// The number, from 1, of the line that contains the byte at `offset`. Reads everything before it.
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

/// Passes all rows to the sink, read by byte ranges aligned to lines; returns the number of rows. A malformed
/// line ends it with INVALID_ARGUMENT, always for the first such line of the file: `lineorder.tbl:17: column
/// 9 (lo_quantity): "x" is not an integer`.
absl::StatusOr<uint64_t> ReadTbl(fabric::Fabric& fabric, const TblFile& file, const Sink& sink,
                                 const WorkOptions& options);

}  // namespace nam::dataset
