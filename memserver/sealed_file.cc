#include "memserver/sealed_file.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/checksum.h"
#include "storage/remote_ptr.h"

namespace nam::memserver {
namespace {

constexpr std::string_view kMagic = "NAMSEAL\n";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kHeaderBytesMax = uint64_t{64} << 20;
constexpr uint32_t kClusterNameBytesMax = 1'024;
constexpr size_t kFixedBytes = 8 + 4 + 8;  // magic, version, bytes of the header
constexpr size_t kChecksumBytes = 8;
constexpr char kNamePrefix[] = "allocation-", kNameSuffix[] = ".sealed";

uint64_t PiecesIn(const std::vector<Extent>& extents) {
  uint64_t pieces = 0;
  for (const Extent& extent : extents) pieces += (extent.bytes + kPieceBytes - 1) / kPieceBytes;
  return pieces;
}

uint64_t ChecksumOf(std::string_view bytes) {
  return storage::Checksum(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

template <typename T>
void Append(std::string& out, T value) {
  for (size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

absl::Status Damaged(const char* what) {
  return absl::DataLossError(absl::StrCat("its header is damaged: ", what));
}

/// Takes numbers off the front; after the first missing one, all are missing.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Number() {
    const std::string_view bytes = Bytes(sizeof(T));
    T value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) value |= T{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return value;
  }
  std::string_view Bytes(uint64_t count) {
    ok_ = ok_ && count <= rest_.size();
    if (!ok_) return {};
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

absl::Status CheckExtents(const std::vector<Extent>& extents) {
  uint64_t end = kExtentAlignment;
  for (const Extent& extent : extents) {
    const bool aligned = extent.offset % kExtentAlignment == 0 && extent.bytes % kExtentAlignment == 0;
    if (!aligned || extent.bytes == 0 || extent.offset < end || extent.offset > storage::kAddressSpaceBytes ||
        extent.bytes > storage::kAddressSpaceBytes - extent.offset) {
      return Damaged("its extents overlap, or are invalid");
    }
    end = extent.offset + extent.bytes;
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t SealedHeader::data_bytes() const {
  uint64_t bytes = 0;
  for (const Extent& extent : extents) bytes += extent.bytes;
  return bytes;
}

std::vector<SealedPiece> PiecesOf(const std::vector<Extent>& extents, uint64_t header_bytes) {
  std::vector<SealedPiece> pieces;
  uint64_t file_offset = header_bytes;
  for (const Extent& extent : extents) {
    for (uint64_t at = 0; at < extent.bytes; at += kPieceBytes) {
      const uint64_t bytes = std::min(kPieceBytes, extent.bytes - at);
      pieces.push_back({.offset = extent.offset + at, .bytes = bytes, .file_offset = file_offset});
      file_offset += bytes;
    }
  }
  return pieces;
}

uint64_t SealedHeaderBytes(const SealedHeader& header) {
  const uint64_t bytes = kFixedBytes + 8 + 4 + header.identity.cluster.size() + 4 + 8 + 4 +
                         16 * header.extents.size() + 8 * PiecesIn(header.extents) + kChecksumBytes;
  return (bytes + kExtentAlignment - 1) / kExtentAlignment * kExtentAlignment;
}

std::string EncodeSealedHeader(const SealedHeader& header) {
  NAM_CHECK(header.checksums.size() == PiecesIn(header.extents), "a checksum for each piece");
  const uint64_t header_bytes = SealedHeaderBytes(header);
  std::string out(kMagic);
  Append(out, kVersion);
  Append(out, header_bytes);
  Append(out, header.identity.store);
  Append(out, static_cast<uint32_t>(header.identity.cluster.size()));
  out += header.identity.cluster;
  Append(out, header.identity.storage);
  Append(out, header.allocation.value());
  Append(out, static_cast<uint32_t>(header.extents.size()));
  for (const Extent& extent : header.extents) {
    Append(out, extent.offset);
    Append(out, extent.bytes);
  }
  for (const uint64_t checksum : header.checksums) Append(out, checksum);
  out.resize(header_bytes - kChecksumBytes);
  Append(out, ChecksumOf(out));
  return out;
}

absl::StatusOr<uint64_t> SealedHeaderBytesOf(std::string_view first_page) {
  Reader reader(first_page);
  if (reader.Bytes(kMagic.size()) != kMagic) return Damaged("it is not a file of a sealed allocation");
  const auto version = reader.Number<uint32_t>();
  const auto bytes = reader.Number<uint64_t>();
  if (!reader.ok()) return Damaged("it ends too early");
  if (version != kVersion) {
    return absl::DataLossError(
        absl::StrCat("it is of format ", version, ", and this program reads format ", kVersion));
  }
  if (bytes < kExtentAlignment || bytes % kExtentAlignment != 0 || bytes > kHeaderBytesMax)
    return Damaged("its size is not possible");
  return bytes;
}

absl::StatusOr<SealedHeader> DecodeSealedHeader(std::string_view bytes) {
  NAM_ASSIGN_OR_RETURN(const uint64_t header_bytes, SealedHeaderBytesOf(bytes));
  if (header_bytes != bytes.size()) return Damaged("it ends too early");
  const std::string_view checked = bytes.substr(0, header_bytes - kChecksumBytes);
  if (Reader(bytes.substr(checked.size())).Number<uint64_t>() != ChecksumOf(checked))
    return Damaged("its checksum is wrong");
  Reader reader(checked);
  reader.Bytes(kFixedBytes);
  SealedHeader header;
  header.identity.store = reader.Number<uint64_t>();
  const auto name_bytes = reader.Number<uint32_t>();
  if (name_bytes > kClusterNameBytesMax) return Damaged("the cluster's name is too long");
  header.identity.cluster = std::string(reader.Bytes(name_bytes));
  header.identity.storage = reader.Number<uint32_t>();
  header.allocation = AllocationId(reader.Number<uint64_t>());
  const auto extents = reader.Number<uint32_t>();
  if (!reader.ok() || extents > reader.rest().size() / 16) return Damaged("it ends too early");
  for (uint32_t i = 0; i < extents; ++i) {
    const auto offset = reader.Number<uint64_t>();
    header.extents.push_back({.offset = offset, .bytes = reader.Number<uint64_t>()});
  }
  NAM_RETURN_IF_ERROR(CheckExtents(header.extents));
  const uint64_t pieces = PiecesIn(header.extents);
  if (pieces > reader.rest().size() / 8) return Damaged("it ends too early");
  for (uint64_t i = 0; i < pieces; ++i) header.checksums.push_back(reader.Number<uint64_t>());
  if (SealedHeaderBytes(header) != header_bytes) return Damaged("its size is wrong");
  if (header.allocation == AllocationId()) return Damaged("it names no allocation");
  return header;
}

std::string SealedFileName(AllocationId allocation) {
  return absl::StrCat(kNamePrefix, allocation.value(), kNameSuffix);
}

AllocationId AllocationOfFileName(const std::string& name) {
  absl::string_view digits = name;
  uint64_t number = 0;
  if (!absl::ConsumePrefix(&digits, kNamePrefix) || !absl::ConsumeSuffix(&digits, kNameSuffix)) return {};
  const bool is_number = absl::SimpleAtoi(digits, &number);
  return is_number && SealedFileName(AllocationId(number)) == name ? AllocationId(number) : AllocationId();
}

}  // namespace nam::memserver
