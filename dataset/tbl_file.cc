#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "dataset/tbl_reader.h"

namespace nam::dataset {
namespace {

absl::Status NotFound(const std::string& directory, const std::vector<std::string>& names) {
  struct stat info;
  if (stat(directory.c_str(), &info) != 0) {
    return absl::NotFoundError(
        absl::StrFormat("cannot open directory %s: %s", directory, std::strerror(errno)));
  }
  const std::string pieces = directory + "/" + names[0] + ".1";
  const std::string hint =
      stat(pieces.c_str(), &info) == 0
          ? absl::StrFormat("; dbgen left it in pieces: join them with `cat %s.* > %s`", names[0], names[0])
          : "; write the files with dbgen or `nam ssb generate` or `nam tpch generate`";
  return absl::NotFoundError(absl::StrFormat("no %s in %s%s", absl::StrJoin(names, " or "), directory, hint));
}

}  // namespace

absl::StatusOr<TblFile> TblFile::Open(const std::string& directory, const Table& table) {
  TblFile file;
  file.table_ = &table;
  const std::vector<std::string>& names = table.file_names;
  for (const std::string& name : names) {
    file.path_ = directory + "/" + name;
    file.fd_.reset(::open(file.path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.fd_.valid()) break;
    if (errno != ENOENT && errno != ENOTDIR) {
      const std::string message = absl::StrFormat("cannot open %s: %s", file.path_, std::strerror(errno));
      return errno == EACCES ? absl::PermissionDeniedError(message) : absl::UnavailableError(message);
    }
  }
  if (!file.fd_.valid()) return NotFound(directory, names);
  struct stat info;
  if (fstat(file.fd_.get(), &info) != 0) {
    return absl::UnavailableError(absl::StrFormat("cannot look at %s: %s", file.path_, std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrFormat("%s is no file", file.path_));
  if (info.st_size == 0) return absl::InvalidArgumentError(absl::StrFormat("%s is empty", file.path_));
  file.bytes_ = static_cast<uint64_t>(info.st_size);
  NAM_RETURN_IF_ERROR(file.LookAtStart());
  return file;
}

absl::Status TblFile::LookAtStart() {
  std::vector<char> start(std::min<uint64_t>(bytes_, kTblLineBytesMax));
  NAM_RETURN_IF_ERROR(Read(0, start.data(), start.size()));
  const std::string_view text(start.data(), start.size());
  const auto lines = static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
  if (start.size() == bytes_ || lines == 0) {
    estimated_rows_ = std::max<uint64_t>(lines + (text.back() != '\n'), 1);
  } else {
    estimated_rows_ = static_cast<uint64_t>(static_cast<double>(bytes_) * static_cast<double>(lines) /
                                            static_cast<double>(text.rfind('\n') + 1));
  }
  std::string_view first = text.substr(0, text.find('\n'));
  if (first.ends_with('\r')) first.remove_suffix(1);
  closes_lines_ = first.ends_with('|');
  return absl::OkStatus();
}

absl::Status TblFile::Read(uint64_t offset, char* into, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t done = ::pread(fd_.get(), into, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      return absl::DataLossError(
          absl::StrFormat("cannot read %s at byte %d: %s", path_, offset, std::strerror(errno)));
    }
    if (done == 0) {
      return absl::DataLossError(absl::StrFormat(
          "%s became shorter while it was read (%d bytes at first, now %d)", path_, bytes_, offset));
    }
    into += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> TblFile::LineNumber(uint64_t offset) const {
  std::vector<char> buffer(std::min<uint64_t>(offset, 1 << 20));
  uint64_t line = 1;
  for (uint64_t at = 0; at < offset;) {
    const size_t bytes = std::min<uint64_t>(buffer.size(), offset - at);
    NAM_RETURN_IF_ERROR(Read(at, buffer.data(), bytes));
    line += static_cast<uint64_t>(std::count(buffer.data(), buffer.data() + bytes, '\n'));
    at += bytes;
  }
  return line;
}

}  // namespace nam::dataset
