#include "session/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/private_file.h"
#include "base/replaced_file.h"
#include "base/status_macros.h"
#include "storage/checksum.h"

namespace nam::session {
namespace {

constexpr char kMagic[] = "NAMROWS1";  // precedes the first section
constexpr size_t kMagicBytes = sizeof(kMagic) - 1;
constexpr size_t kFrameBytes = 4 + 4 + 8;
constexpr size_t kChecksumBytes = 8;

absl::Status Errno(const std::string& path) {
  return WriteError(absl::StrCat("cannot write `", path, "`"), errno);
}

template <typename T>
void Append(std::string& out, T value) {
  for (size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

template <typename T>
T NumberAt(const std::string& bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[at + i])) << (8 * i));
  return value;
}

uint64_t ChecksumOf(const std::string& bytes) {
  return storage::Checksum(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

uint64_t Chained(uint64_t before, uint64_t section) {
  const uint64_t words[] = {before, section};
  return storage::Checksum(std::as_bytes(std::span(words)));
}

std::string FrameOf(RecordSection kind, uint32_t number, uint64_t bytes) {
  std::string frame;
  Append(frame, static_cast<uint32_t>(kind));
  Append(frame, number);
  Append(frame, bytes);
  return frame;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordFileWriter>> RecordFileWriter::Create(const std::string& path) {
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());
  UniqueFd file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return Errno(fresh);
  std::unique_ptr<RecordFileWriter> writer(new RecordFileWriter(path, std::move(file)));
  NAM_RETURN_IF_ERROR(writer->Write({kMagic, kMagicBytes}));
  return writer;
}

RecordFileWriter::~RecordFileWriter() {
  if (!finished_) unlink((path_ + ".new").c_str());
}

absl::Status RecordFileWriter::Write(std::string_view bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t n = write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Errno(path_);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status RecordFileWriter::Add(RecordSection kind, std::string_view bytes) {
  if (bytes.size() > kSectionBytesMax) {
    return absl::InternalError(
        absl::StrFormat("a section of %d bytes does not fit `%s`", bytes.size(), path_));
  }
  std::string section = FrameOf(kind, sections_++, bytes.size());
  section.append(bytes);
  const uint64_t checksum = ChecksumOf(section);
  checksum_ = Chained(checksum_, checksum);
  Append(section, checksum);
  return Write(section);
}

absl::Status RecordFileWriter::Finish() {
  NAM_RETURN_IF_ERROR(Add(RecordSection::kEnd, ""));
  if (fsync(file_.get()) != 0) return Errno(path_);
  if (rename((path_ + ".new").c_str(), path_.c_str()) != 0) return Errno(path_);
  const std::string folder = std::filesystem::path(path_).parent_path();
  const UniqueFd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || fsync(directory.get()) != 0) return Errno(path_);
  finished_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RecordFileReader>> RecordFileReader::Open(const std::string& path) {
  NAM_ASSIGN_OR_RETURN(UniqueFd file, OpenRegularFile(path, path));
  NAM_RETURN_IF_ERROR(CheckPrivateFile(file.get(), path));
  std::unique_ptr<RecordFileReader> reader(new RecordFileReader(path, std::move(file)));
  std::string magic(kMagicBytes, '\0');
  NAM_RETURN_IF_ERROR(reader->Read(magic.data(), magic.size()));
  if (magic != kMagic) return reader->Damaged("it does not begin as such a file does");
  return reader;
}

absl::Status RecordFileReader::Damaged(const char* why) const {
  return absl::DataLossError(absl::StrFormat("`%s` is damaged: %s (at byte %d)", path_, why, at_));
}

absl::Status RecordFileReader::Read(char* to, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t n = read(file_.get(), to + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Damaged(std::strerror(errno));
    if (n == 0) return Damaged("it ends too early");
    done += static_cast<uint64_t>(n);
  }
  at_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<RecordFileReader::Section> RecordFileReader::Next() {
  std::string all(kFrameBytes, '\0');
  NAM_RETURN_IF_ERROR(Read(all.data(), all.size()));
  const auto kind = NumberAt<uint32_t>(all, 0);
  const auto bytes = NumberAt<uint64_t>(all, 8);
  const bool known = kind >= static_cast<uint32_t>(RecordSection::kHead) &&
                     kind <= static_cast<uint32_t>(RecordSection::kEnd);
  if (!known || NumberAt<uint32_t>(all, 4) != sections_ || bytes > kSectionBytesMax)
    return Damaged("a section is malformed");
  all.resize(kFrameBytes + bytes + kChecksumBytes);
  NAM_RETURN_IF_ERROR(Read(all.data() + kFrameBytes, bytes + kChecksumBytes));
  const auto checksum = NumberAt<uint64_t>(all, kFrameBytes + bytes);
  all.resize(kFrameBytes + bytes);
  if (ChecksumOf(all) != checksum) return Damaged("the checksum of a section is wrong");
  ++sections_;
  checksum_ = Chained(checksum_, checksum);
  return Section{static_cast<RecordSection>(kind), all.substr(kFrameBytes)};
}

}  // namespace nam::session
