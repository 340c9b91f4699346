#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/fabric.h"

/// Large reads and writes of files at given places.
namespace nam::memserver {

/// 0, or an errno.
int WriteAll(int fd, std::span<const std::byte> bytes, uint64_t file_offset);
/// 0, an errno, or kEndsTooEarly.
int ReadAllAt(int fd, std::span<std::byte> bytes, uint64_t file_offset);
inline constexpr int kEndsTooEarly = -1;
std::string DescribeReadError(int error);

/// Room for the file, so that a full disk is met before the first byte is written. 0 or an errno; 0 where the
/// file system cannot reserve.
int Reserve(int fd, uint64_t bytes);
/// The disk may begin now with what was written, rather than with the fsync.
void StartWriteback(int fd, uint64_t file_offset, uint64_t bytes);

struct PieceToRead {
  size_t file = 0;
  int fd = -1;
  uint64_t file_offset = 0;
  std::span<std::byte> to;
  uint64_t checksum = 0;
};
/// Reads them by several threads and compares their checksums: what is wrong with each of the files, empty if
/// nothing is. Memory that is not there yet comes while it is read into.
std::vector<std::string> ReadPieces(const std::vector<PieceToRead>& pieces, size_t files,
                                    fabric::Fabric& fabric);

}  // namespace nam::memserver
