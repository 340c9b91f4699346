#include "memserver/sealed_file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "memserver/file_pieces.h"
#include "storage/checksum.h"

namespace nam::memserver {

absl::StatusOr<SealedFileReader> SealedFileReader::Open(int directory, const std::string& name) {
  UniqueFd file(openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!file.valid() && errno == ENOENT) return absl::NotFoundError("it is not there");
  if (!file.valid() || fstat(file.get(), &info) != 0) return FileReadError("it cannot be opened", errno);
  if (!S_ISREG(info.st_mode)) return absl::DataLossError("it is no regular file");
  std::string bytes(kExtentAlignment, '\0');
  if (const int error = ReadAllAt(file.get(), std::as_writable_bytes(std::span(bytes)), 0); error != 0)
    return FileReadError("its header cannot be read", error);
  NAM_ASSIGN_OR_RETURN(const uint64_t header_bytes, SealedHeaderBytesOf(bytes));
  bytes.resize(header_bytes);
  if (const int error = ReadAllAt(file.get(), std::as_writable_bytes(std::span(bytes)), 0); error != 0)
    return FileReadError("its header cannot be read", error);
  NAM_ASSIGN_OR_RETURN(SealedHeader header, DecodeSealedHeader(bytes));
  const uint64_t checksum = storage::Checksum(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return SealedFileReader(std::move(file), std::move(header), header_bytes, checksum);
}

absl::Status SealedFileReader::CheckIsOf(AllocationId allocation) const {
  if (header_.allocation != allocation) {
    return absl::DataLossError(
        absl::StrFormat("it is the file of allocation %d under another name", header_.allocation.value()));
  }
  struct stat info;
  if (fstat(file_.get(), &info) != 0) return FileReadError("its length is unknown", errno);
  if (static_cast<uint64_t>(info.st_size) == bytes()) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat("it has %d bytes instead of %d", info.st_size, bytes()));
}

absl::Status SealedFileReader::Read(size_t number, const SealedPiece& piece, std::span<std::byte> to) const {
  if (const int error = ReadAllAt(file_.get(), to, piece.file_offset); error != 0)
    return FileReadError("it cannot be read", error);
  return CheckPiece(to, piece.file_offset, header_.checksums[number]);
}

}  // namespace nam::memserver
