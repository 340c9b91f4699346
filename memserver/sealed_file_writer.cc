#include "memserver/sealed_file_writer.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/replaced_file.h"
#include "base/status_macros.h"
#include "memserver/file_pieces.h"
#include "memserver/memory_pool.h"
#include "storage/checksum.h"

namespace nam::memserver {
namespace {

/// How much room the file system has for this user.
std::string RoomAt(int fd) {
  struct statvfs info;
  if (fstatvfs(fd, &info) != 0) return "an unknown number of bytes";
  return ReadableBytes(uint64_t{info.f_bavail} * info.f_frsize);
}

}  // namespace

SealedFileWriter::SealedFileWriter(int directory, std::string path, std::string name, SealedHeader header)
    : directory_(directory),
      path_(std::move(path)),
      name_(std::move(name)),
      header_(std::move(header)),
      header_bytes_(SealedHeaderBytes(header_)),
      pieces_(PiecesOf(header_.extents, header_bytes_)) {
  header_.checksums.clear();
}

SealedFileWriter::~SealedFileWriter() {
  if (made_ && !kept_) unlinkat(directory_, name_.c_str(), 0);
}

absl::StatusOr<std::unique_ptr<SealedFileWriter>> SealedFileWriter::Create(int directory,
                                                                           const std::string& path,
                                                                           const std::string& name,
                                                                           SealedHeader header) {
  std::unique_ptr<SealedFileWriter> writer(new SealedFileWriter(directory, path, name, std::move(header)));
  writer->file_.reset(
      openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!writer->file_.valid()) return writer->Error(errno);
  writer->made_ = true;
  NAM_RETURN_IF_ERROR(writer->Error(Reserve(writer->file_.get(), writer->bytes())));
  return writer;
}

absl::Status SealedFileWriter::Error(int error) const {
  if (error == 0) return absl::OkStatus();
  return WriteError(
      absl::StrFormat("memory of allocation %d cannot be written to `%s/%s` (%s are needed, %s are free)",
                      header_.allocation.value(), path_, name_, ReadableBytes(bytes()), RoomAt(directory_)),
      error);
}

absl::Status SealedFileWriter::Add(std::span<const std::byte> piece) {
  NAM_CHECK(header_.checksums.size() < pieces_.size(), "more pieces than the extents have");
  const SealedPiece& place = pieces_[header_.checksums.size()];
  NAM_CHECK(piece.size() == place.bytes, "another piece than the next one");
  header_.checksums.push_back(storage::Checksum(piece));
  NAM_RETURN_IF_ERROR(Error(WriteAll(file_.get(), piece, place.file_offset)));
  StartWriteback(file_.get(), place.file_offset, place.bytes);
  return absl::OkStatus();
}

absl::Status SealedFileWriter::Finish() {
  const std::string encoded = EncodeSealedHeader(header_);
  const auto bytes = std::as_bytes(std::span(encoded.data(), encoded.size()));
  checksum_ = storage::Checksum(bytes);
  NAM_RETURN_IF_ERROR(Error(WriteAll(file_.get(), bytes, 0)));
  return Error(fsync(file_.get()) == 0 ? 0 : errno);
}

}  // namespace nam::memserver
