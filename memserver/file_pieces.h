#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"

/// Large positional reads and writes of files.
namespace nam::memserver {

/// 0, or an errno.
int WriteAll(int fd, std::span<const std::byte> bytes, uint64_t file_offset);
/// 0, an errno, or kEndsTooEarly.
int ReadAllAt(int fd, std::span<std::byte> bytes, uint64_t file_offset);
inline constexpr int kEndsTooEarly = -1;
std::string DescribeReadError(int error);

/// Reserves space for the file, so that a full disk shows before the first byte is written. Returns 0 or an
/// errno; 0 if the file system cannot reserve.
int Reserve(int fd, uint64_t bytes);
/// Lets the disk start writing the range now instead of at the fsync.
void StartWriteback(int fd, uint64_t file_offset, uint64_t bytes);

struct PieceToRead {
  size_t file = 0;
  int fd = -1;
  uint64_t file_offset = 0;
  std::span<std::byte> to;
  uint64_t checksum = 0;
};
/// Reads the pieces on several threads and compares their checksums. Returns one description per file of what
/// is wrong, empty if nothing is. Reading populates memory that is not present yet.
std::vector<std::string> ReadPieces(const std::vector<PieceToRead>& pieces, size_t files,
                                    fabric::Fabric& fabric);

}  // namespace nam::memserver
