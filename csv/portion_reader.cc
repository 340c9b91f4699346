#include "csv/portion_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "csv/inflated_source.h"
#include "csv/row_end.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

PortionReader::PortionReader(std::vector<std::string> paths, const Dialect& dialect, size_t portion_bytes)
    : PortionReader(std::move(paths), dialect, OpenInput(), portion_bytes) {}
PortionReader::PortionReader(std::vector<std::string> paths, const Dialect& dialect, OpenInput input,
                             size_t portion_bytes)
    : paths_(std::move(paths)), dialect_(dialect), input_(std::move(input)), portion_bytes_(portion_bytes) {
  for (const std::string& path : paths_) {
    struct stat about {};
    if (stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode) ||
        CompressionOf(path, dialect) != Compression::kNone) {
      bytes_ = 0;
      return;
    }
    bytes_ += static_cast<uint64_t>(about.st_size);
  }
}
PortionReader::~PortionReader() = default;

absl::StatusOr<bool> PortionReader::Next(Portion& portion) {
  const MutexLock lock(mutex_);
  if (failed_) return false;
  failed_ = true;  // cleared on success
  while (source_ == nullptr || (ended_ && rest_.empty())) {
    NAM_ASSIGN_OR_RETURN(const bool opened, OpenNext());
    if (!opened) return false;
    NAM_RETURN_IF_ERROR(Fill(portion_bytes_));
    if (rest_.starts_with(kByteOrderMark)) rest_.erase(0, kByteOrderMark.size());
    NAM_RETURN_IF_ERROR(SkipLines());
  }
  NAM_RETURN_IF_ERROR(Cut(portion));
  failed_ = false;
  return true;
}

absl::StatusOr<bool> PortionReader::OpenNext() {
  const size_t sources = std::max<size_t>(paths_.size(), 1);
  if (next_path_ == sources) return false;
  if (paths_.empty()) {
    source_ = Inflate(input_ ? input_() : StandardInput(), dialect_.compression.value_or(Compression::kNone));
  } else {
    const std::string& path = paths_[next_path_];
    std::optional<FileVersion> version;
    if (!versions_.empty()) version = versions_[next_path_];
    NAM_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> file, OpenFile(path, version));
    source_ = Inflate(std::move(file), CompressionOf(path, dialect_));
  }
  ++next_path_;
  ended_ = false;
  rest_.clear();
  line_ = 1;
  at_begin_ = true;
  return true;
}

/// Reads so many bytes more, or until the source has ended.
absl::Status PortionReader::Fill(size_t bytes) {
  const size_t wanted = rest_.size() + bytes;
  while (!ended_ && rest_.size() < wanted) {
    const size_t before = rest_.size();
    rest_.resize(wanted);
    const absl::StatusOr<size_t> n = source_->Read(rest_.data() + before, wanted - before);
    rest_.resize(before + (n.ok() ? *n : 0));
    NAM_RETURN_IF_ERROR(n.status());
    ended_ = *n == 0;
    bytes_read_ += *n;
  }
  return absl::OkStatus();
}

absl::Status PortionReader::SkipLines() {
  for (uint64_t skipped = 0; skipped < dialect_.skipped_lines && !rest_.empty(); ++skipped) {
    size_t end = rest_.find('\n');
    while (end == std::string::npos && !ended_) {
      rest_.clear();
      NAM_RETURN_IF_ERROR(Fill(portion_bytes_));
      end = rest_.find('\n');
    }
    rest_.erase(0, end == std::string::npos ? end : end + 1);
    ++line_;
    if (rest_.empty()) NAM_RETURN_IF_ERROR(Fill(portion_bytes_));
  }
  return absl::OkStatus();
}

absl::Status PortionReader::Cut(Portion& portion) {
  size_t end = 0;
  while (true) {
    end = EndOfLastRow(rest_, dialect_);
    if (end == 0 && rest_.size() > kRowBytesMax) {
      return UserError(
          sqlstate::kLimitExceeded,
          absl::StrCat(source_->name(), ":", line_, ": a row of more than ", kRowBytesMax >> 20, " MiB"), -1,
          "is a quote missing in it?");
    }
    if (ended_) end = rest_.size();
    if (end > 0) break;
    NAM_RETURN_IF_ERROR(Fill(std::max(portion_bytes_, rest_.size())));
  }
  portion.number = portions_++;
  portion.source = source_->name();
  portion.first_line = line_;
  portion.file = next_path_ - 1;
  portion.first = std::exchange(at_begin_, false);
  portion.header = portion.first && dialect_.header;
  portion.text.assign(rest_, 0, end);
  rest_.erase(0, end);
  line_ += static_cast<uint64_t>(std::count(portion.text.begin(), portion.text.end(), '\n'));
  if (rest_.size() < portion_bytes_) NAM_RETURN_IF_ERROR(Fill(portion_bytes_));
  portion.last = ended_ && rest_.empty();
  return absl::OkStatus();
}

}  // namespace nam::csv
