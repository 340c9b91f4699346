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

/// The file of one sealed allocation, whose header is whole.
class SealedFileReader {
 public:
  /// `name` in `directory`, no link. DATA_LOSS says what is wrong, without the name; NOT_FOUND: it is not
  /// there; others as of FileReadError.
  static absl::StatusOr<SealedFileReader> Open(int directory, const std::string& name);

  /// DATA_LOSS unless it is the allocation's file, and as long as its header says.
  absl::Status CheckIsOf(AllocationId allocation) const;
  const SealedHeader& header() const { return header_; }
  /// In the order of the header's checksums.
  std::vector<SealedPiece> Pieces() const { return PiecesOf(header_.extents, header_bytes_); }
  /// How long the whole file is.
  uint64_t bytes() const { return header_bytes_ + header_.data_bytes(); }
  /// As SealedFileWriter::checksum.
  uint64_t checksum() const { return checksum_; }
  /// Piece `number` of Pieces(). DATA_LOSS unless it is as it was written.
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
