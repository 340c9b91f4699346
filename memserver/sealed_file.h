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
///                 │ extents: offset, bytes of each             their addresses in the address space
///                │ pieces: XXH3 of each
///                │ XXH3 of all that
///     a page's   ┼ bytes of the extents, concatenated
///     multiple   ┴
///
/// Each extent is cut into pieces of kPieceBytes; the last may be shorter.
namespace nam::memserver {

inline constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

/// The owner of a data directory.
struct DirectoryIdentity {
  uint64_t store = 0;   // the catalog's store (StoreMark); a restored cluster has a different one
  std::string cluster;  // name, for messages
  uint32_t storage = 0;
  bool operator==(const DirectoryIdentity&) const = default;
};

struct SealedHeader {
  DirectoryIdentity identity;
  AllocationId allocation;
  std::vector<Extent> extents;      // by offset, disjoint
  std::vector<uint64_t> checksums;  // of the pieces

  uint64_t data_bytes() const;
};

/// A part of an extent, and its place in the file.
struct SealedPiece {
  uint64_t offset = 0;  // in the address space
  uint64_t bytes = 0;
  uint64_t file_offset = 0;
};

/// The pieces of the extents, for a header of `header_bytes`.
std::vector<SealedPiece> PiecesOf(const std::vector<Extent>& extents, uint64_t header_bytes);

/// The header's size in the file, a multiple of kExtentAlignment. Needs no checksums.
uint64_t SealedHeaderBytes(const SealedHeader& header);
/// Encodes the header into SealedHeaderBytes(header) bytes. Needs one checksum per piece.
std::string EncodeSealedHeader(const SealedHeader& header);
/// The header size that a file states in its first kExtentAlignment bytes (fewer if the file is short).
absl::StatusOr<uint64_t> SealedHeaderBytesOf(std::string_view first_page);
/// Decodes a whole header. DATA_LOSS says what is wrong.
absl::StatusOr<SealedHeader> DecodeSealedHeader(std::string_view bytes);

/// The file's name, `allocation-17.sealed`, and the reverse; 0 for other names.
std::string SealedFileName(AllocationId allocation);
AllocationId AllocationOfFileName(const std::string& name);

}  // namespace nam::memserver
