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

/// Writes the file of one sealed allocation piece by piece, under a name that tells that it is unfinished:
///
///     Create: room is reserved ─▶ Add … Add: pieces() in order ─▶ Finish: header, fsync ─▶ rename by its
///     owner ─▶ Keep
///
/// Without Keep the file goes with its writer. Errors name the file; RESOURCE_EXHAUSTED: the disk is full.
class SealedFileWriter {
 public:
  /// `name` is made in `directory`, which is called `path` in messages and stays open as long as the writer
  /// lives. Of `header` the checksums are the writer's.
  static absl::StatusOr<std::unique_ptr<SealedFileWriter>> Create(int directory, const std::string& path,
                                                                  const std::string& name,
                                                                  SealedHeader header);
  ~SealedFileWriter();

  const std::vector<SealedPiece>& pieces() const { return pieces_; }
  absl::Status Add(std::span<const std::byte> piece);
  /// Durable once it returned, but for the name.
  absl::Status Finish();
  void Keep() { kept_ = true; }

  /// How long the whole file is.
  uint64_t bytes() const { return header_bytes_ + header_.data_bytes(); }
  /// XXH3 of the header, and with it of all: once it is finished.
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
