#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "fabric/fabric.h"

/// Large positional reads and writes of files.
namespace nam::memserver {

/// 0, or an errno.
int WriteAll(int fd, std::span<const std::byte> bytes, uint64_t file_offset);
/// 0, an errno, or kEndsTooEarly.
int ReadAllAt(int fd, std::span<std::byte> bytes, uint64_t file_offset);
inline constexpr int kEndsTooEarly = -1;
/// The error for a file that cannot be opened or read; `what` is the beginning of the message. DATA_LOSS,
/// unless the file may be whole: RESOURCE_EXHAUSTED if descriptors or memory are short, PERMISSION_DENIED;
/// with a hint.
absl::Status FileReadError(std::string_view what, int error);
/// True for the errors of FileReadError that say nothing about the file.
bool MayBeWhole(const absl::Status& error);

/// Reserves space for the file, so that a full disk shows before the first byte is written. Returns 0 or an
/// errno; 0 if the file system cannot reserve.
int Reserve(int fd, uint64_t bytes);
/// Lets the disk start writing the range now instead of at the fsync.
void StartWriteback(int fd, uint64_t file_offset, uint64_t bytes);

/// DATA_LOSS if the bytes, which were read at `file_offset`, do not match the checksum.
absl::Status CheckPiece(std::span<const std::byte> bytes, uint64_t file_offset, uint64_t checksum);

struct PieceToRead {
  size_t file = 0;  // its number
  uint64_t file_offset = 0;
  std::span<std::byte> to;
  uint64_t checksum = 0;
};
/// Reads the pieces on several threads and compares their checksums. `files`, by number, are names in the
/// directory; each thread has one open. Returns one status per file, DATA_LOSS if it is damaged; ends early
/// where a file may be whole. Reading populates memory that is not present yet.
std::vector<absl::Status> ReadPieces(int directory, const std::vector<std::string>& files,
                                     const std::vector<PieceToRead>& pieces, fabric::Fabric& fabric);

}  // namespace nam::memserver
