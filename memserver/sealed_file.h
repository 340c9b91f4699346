#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "memserver/extent_allocator.h"

/// The file of one sealed allocation in a memory server's data directory. Little-endian:
///
///     0          ┬ magic, format version, bytes of the header
///                │ cluster: store, name; storage id; allocation
///                │ extents: offset, bytes of each             where they lay in the address space
///                │ pieces: XXH3 of each
///                │ XXH3 of all that
///     a page's   ┼ bytes of the extents, one behind the other
///     multiple   ┴
///
/// Each extent is cut into pieces of kPieceBytes, the last of which may be shorter.
namespace nam::memserver {

inline constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

/// Whose a data directory is.
struct DirectoryIdentity {
  uint64_t store = 0;   // the catalog's store (StoreMark), which is another one for a restored cluster
  std::string cluster;  // its name, for messages
  uint32_t storage = 0;
  bool operator==(const DirectoryIdentity&) const = default;
};

struct SealedHeader {
  DirectoryIdentity identity;
  AllocationId allocation;
  std::vector<Extent> extents;      // by offset, apart from each other
  std::vector<uint64_t> checksums;  // of the pieces

  uint64_t data_bytes() const;
};

/// A part of an extent, and where it lies in the file.
struct SealedPiece {
  uint64_t offset = 0;  // in the address space
  uint64_t bytes = 0;
  uint64_t file_offset = 0;
};

/// The pieces of the extents, if the header has this many bytes in the file.
std::vector<SealedPiece> PiecesOf(const std::vector<Extent>& extents, uint64_t header_bytes);

/// Bytes of the header in the file, a multiple of kExtentAlignment, before its checksums are known.
uint64_t SealedHeaderBytes(const SealedHeader& header);
/// SealedHeaderBytes(header) of them. As many checksums as pieces.
std::string EncodeSealedHeader(const SealedHeader& header);
/// The size that a file's header says it has, from its first kExtentAlignment bytes (fewer of a short file).
absl::StatusOr<uint64_t> SealedHeaderBytesOf(std::string_view first_page);
/// `bytes` is all of the header. DATA_LOSS says what is wrong.
absl::StatusOr<SealedHeader> DecodeSealedHeader(std::string_view bytes);

/// The file's name: `allocation-17.sealed`; and back, 0 for another one.
std::string SealedFileName(AllocationId allocation);
AllocationId AllocationOfFileName(const std::string& name);

}  // namespace nam::memserver
