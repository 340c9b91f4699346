#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "memserver/sealed_file.h"

namespace nam::memserver {

/// Writes the file of one sealed allocation piece by piece, under a name that marks it as unfinished:
///
///     Create: reserves room ─▶ Add*: pieces() in order ─▶ Finish: header, fsync ─▶ owner renames ─▶ Keep
///
/// The destructor removes the file unless Keep was called. Errors name the file; RESOURCE_EXHAUSTED: the disk
/// is full.
class SealedFileWriter {
 public:
  /// Creates file `name` in `directory`, which must stay open while the writer lives; `path` names the
  /// directory in messages. The writer computes the checksums in `header`. RESOURCE_EXHAUSTED: the disk is
  /// full.
  static absl::StatusOr<std::unique_ptr<SealedFileWriter>> Create(int directory, const std::string& path,
                                                                  const std::string& name,
                                                                  SealedHeader header);
  ~SealedFileWriter();

  const std::vector<SealedPiece>& pieces() const { return pieces_; }
  absl::Status Add(std::span<const std::byte> piece);
  /// Requires that all pieces were added. Once it returns OK, the file's contents are durable, its name is
  /// not.
  absl::Status Finish();
  void Keep() { kept_ = true; }

  /// The length of the whole file.
  uint64_t bytes() const { return header_bytes_ + header_.data_bytes(); }
  /// The XXH3 of the header, which contains the checksums of all pieces. Valid after Finish.
  uint64_t checksum() const { return checksum_; }

 private:
  SealedFileWriter(int directory, std::string path, std::string name, SealedHeader header);
  absl::Status Error(int error) const;

  const int directory_;
  const std::string path_;
  const std::string name_;
  SealedHeader header_;
  const uint64_t header_bytes_;
  const std::vector<SealedPiece> pieces_;
  UniqueFd file_;
  uint64_t checksum_ = 0;
  bool made_ = false;
  bool kept_ = false;
};

}  // namespace nam::memserver
