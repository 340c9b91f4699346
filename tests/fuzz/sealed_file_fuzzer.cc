// The header of a sealed file, as read from a disk.

#include <string>

#include "base/check.h"
#include "memserver/sealed_file.h"
#include "storage/checksum.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {

std::vector<std::string> Seeds() {
  using memserver::kPieceBytes;
  std::vector<std::string> seeds;
  memserver::SealedHeader header;
  header.identity = {.store = 7, .cluster = "nam", .storage = 6};
  header.allocation = AllocationId(17);
  seeds.push_back(EncodeSealedHeader(header));
  header.extents = {{.offset = 4'096, .bytes = kPieceBytes + 4'096}, {.offset = 5 << 20, .bytes = 8'192}};
  header.checksums = {1, 2, 3};
  seeds.push_back(EncodeSealedHeader(header));
  return seeds;
}

}  // namespace nam::fuzz

// Checked twice: as it came, and with the right checksum, which then hides no other check.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const bool sealed : {false, true}) {
    if (sealed) {
      if (size < 8) return 0;
      const uint64_t checksum = storage::Checksum(std::as_bytes(std::span(bytes.data(), size - 8)));
      for (int i = 0; i < 8; ++i) bytes[size - 8 + i] = static_cast<char>(checksum >> (8 * i));
    }
    const auto header = memserver::DecodeSealedHeader(bytes);
    if (!header.ok()) continue;
    NAM_CHECK(memserver::SealedHeaderBytes(*header) == size);
    const auto pieces = memserver::PiecesOf(header->extents, size);
    NAM_CHECK(pieces.size() == header->checksums.size() && pieces.size() <= size);
    uint64_t end = size;
    for (const memserver::SealedPiece& piece : pieces) {
      NAM_CHECK(piece.file_offset == end && piece.bytes > 0 && piece.bytes <= memserver::kPieceBytes);
      end += piece.bytes;
    }
    NAM_CHECK(end == size + header->data_bytes());
  }
  return 0;
}
