#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "memserver/sealed_file.h"

namespace nam::memserver {

/// Reads the file of one sealed allocation. The header has been checked; pieces are checked when read.
class SealedFileReader {
 public:
  /// Opens `name` in `directory`, follows no link, and reads the header. NOT_FOUND: there is no such file.
  /// DATA_LOSS says what is wrong, without the name. Other errors as in FileReadError.
  static absl::StatusOr<SealedFileReader> Open(int directory, const std::string& name);

  /// DATA_LOSS unless the file belongs to the allocation and has the length that its header states.
  absl::Status CheckIsOf(AllocationId allocation) const;
  const SealedHeader& header() const { return header_; }
  /// In the order of the header's checksums.
  std::vector<SealedPiece> Pieces() const { return PiecesOf(header_.extents, header_bytes_); }
  /// The length that the whole file must have.
  uint64_t bytes() const { return header_bytes_ + header_.data_bytes(); }
  /// As SealedFileWriter::checksum.
  uint64_t checksum() const { return checksum_; }
  /// Reads piece `number` of Pieces() into `to`, of piece.bytes bytes. DATA_LOSS if its checksum does not
  /// match.
  absl::Status Read(size_t number, const SealedPiece& piece, std::span<std::byte> to) const;

 private:
  SealedFileReader(UniqueFd file, SealedHeader header, uint64_t header_bytes, uint64_t checksum)
      : file_(std::move(file)),
        header_(std::move(header)),
        header_bytes_(header_bytes),
        checksum_(checksum) {}

  UniqueFd file_;
  SealedHeader header_;
  uint64_t header_bytes_ = 0;
  uint64_t checksum_ = 0;
};

}  // namespace nam::memserver
