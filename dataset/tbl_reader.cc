#include "dataset/tbl_reader.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "dataset/tbl_line.h"

namespace nam::dataset {
namespace {

/// Chunk k holds the lines that start in bytes [k c, (k + 1) c) of the file, where c is
/// WorkOptions::read_bytes:
///
///     … a|b|c|\n d|e|f|\n g|h|      i|\n j|k|l|\n …
///       chunk k ──────────────┤├ chunk k + 1 ────
///            its last line ─────────┘└─ its first line
///
/// So it reads one byte before its range, to see whether a line starts there, and beyond its end until its
/// last line ends.
class ReadingWorker final : public ChunkWorker {
 public:
  ReadingWorker(const TblFile& file, const TblLineParser& parser, const Sink& sink,
                const WorkOptions& options, ChunkRun& run)
      : file_(file),
        parser_(parser),
        sink_(sink),
        options_(options),
        run_(run),
        batch_(parser.column_count()) {}

  absl::Status Run(uint64_t chunk) override {
    const uint64_t start = chunk * options_.read_bytes;
    const uint64_t end = std::min<uint64_t>(start + options_.read_bytes, file_.bytes());
    NAM_RETURN_IF_ERROR(ReadLines(start, end));
    rows_in_chunk_ = 0;
    while (!lines_.empty()) NAM_RETURN_IF_ERROR(ParseLine(chunk));
    NAM_RETURN_IF_ERROR(Flush(chunk));
    ReportRows(end - start, chunk);
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kTailBytes = 1024;

  /// Sets lines_ to the chunk's lines and lines_offset_ to their start in the file.
  absl::Status ReadLines(uint64_t start, uint64_t end) {
    const uint64_t from = start == 0 ? 0 : start - 1;
    buffer_.resize(options_.read_bytes + 1 + kTblLineBytesMax + kTailBytes);
    size_t bytes = end - from;
    NAM_RETURN_IF_ERROR(file_.Read(from, buffer_.data(), bytes));
    lines_ = {};
    lines_offset_ = from;
    if (start != 0) {
      const auto* line_end = static_cast<const char*>(std::memchr(buffer_.data(), '\n', bytes));
      if (line_end == nullptr) return absl::OkStatus();  // belongs entirely to a line of an earlier chunk
      lines_offset_ = from + static_cast<uint64_t>(line_end + 1 - buffer_.data());
      if (lines_offset_ == end) return absl::OkStatus();
    }
    NAM_RETURN_IF_ERROR(CompleteLastLine(from, bytes));
    const size_t skipped = lines_offset_ - from;
    lines_ = std::string_view(buffer_.data() + skipped, bytes - skipped);
    return absl::OkStatus();
  }

  absl::Status CompleteLastLine(uint64_t from, size_t& bytes) {
    const size_t chunk_bytes = bytes;
    while (buffer_[bytes - 1] != '\n' && from + bytes < file_.bytes()) {
      if (bytes - chunk_bytes >= kTblLineBytesMax) break;  // ParseLine reports it after the lines before it
      const size_t more = std::min<uint64_t>(kTailBytes, file_.bytes() - from - bytes);
      NAM_RETURN_IF_ERROR(file_.Read(from + bytes, buffer_.data() + bytes, more));
      const auto* line_end = static_cast<const char*>(std::memchr(buffer_.data() + bytes, '\n', more));
      bytes = line_end == nullptr ? bytes + more : static_cast<size_t>(line_end + 1 - buffer_.data());
    }
    return absl::OkStatus();
  }

  absl::Status ParseLine(uint64_t chunk) {
    const auto* line_end = static_cast<const char*>(std::memchr(lines_.data(), '\n', lines_.size()));
    const size_t bytes = line_end == nullptr ? lines_.size() : static_cast<size_t>(line_end - lines_.data());
    std::string_view line = lines_.substr(0, bytes);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (bytes > kTblLineBytesMax) {
      return Malformed(absl::StrFormat("the line is longer than %d bytes", kTblLineBytesMax));
    }
    const std::optional<std::string> reason = parser_.Parse(line, batch_);
    const bool unfinished = line_end == nullptr && file_.closes_lines() && !line.ends_with('|');
    if (reason) return Malformed(unfinished ? *reason + "; the file ends here, was it cut off?" : *reason);
    if (unfinished) {
      return Malformed(
          absl::StrFormat("%s: the file ends here without the \"|\" that other lines end with, "
                          "was it cut off?",
                          parser_.ColumnText(parser_.column_count() - 1)));
    }
    const size_t taken = std::min(bytes + 1, lines_.size());
    lines_.remove_prefix(taken);
    lines_offset_ += taken;
    return batch_.rows() >= options_.batch_rows ? Flush(chunk) : absl::OkStatus();
  }

  absl::Status Malformed(const std::string& reason) {
    NAM_ASSIGN_OR_RETURN(const uint64_t line, file_.LineNumber(lines_offset_));
    return absl::InvalidArgumentError(absl::StrFormat("%s:%d: %s", file_.name(), line, reason));
  }

  absl::Status Flush(uint64_t chunk) {
    if (batch_.rows() == 0) return absl::OkStatus();
    absl::Status status = run_.Emit(chunk, sink_, batch_);
    rows_in_chunk_ += batch_.rows();
    batch_.Clear();
    return status;
  }

  // Estimates all rows from this chunk's rows per byte.
  void ReportRows(uint64_t bytes, uint64_t chunk) {
    const double share = static_cast<double>(bytes) / static_cast<double>(file_.bytes());
    const auto expected = static_cast<uint64_t>(static_cast<double>(rows_in_chunk_) / share);
    run_.Report(rows_in_chunk_, chunk == 0 || rows_in_chunk_ > 0 ? expected : file_.estimated_rows());
  }

  const TblFile& file_;
  const TblLineParser& parser_;
  const Sink& sink_;
  const WorkOptions& options_;
  ChunkRun& run_;
  partitioner::ColumnBatch batch_;  // refers to buffer_
  std::vector<char> buffer_;
  std::string_view lines_;  // not yet taken
  uint64_t lines_offset_ = 0;
  uint64_t rows_in_chunk_ = 0;
};

}  // namespace

absl::StatusOr<uint64_t> ReadTbl(fabric::Fabric& fabric, const TblFile& file, const Sink& sink,
                                 const WorkOptions& options) {
  NAM_RETURN_IF_ERROR(Validate(options));
  const TblLineParser parser(file.table());
  ChunkRun run(fabric, options, file.table().schema.name);
  const uint64_t chunks = (file.bytes() + options.read_bytes - 1) / options.read_bytes;
  NAM_RETURN_IF_ERROR(
      run.Run(chunks, [&] { return std::make_unique<ReadingWorker>(file, parser, sink, options, run); }));
  return run.rows_done();
}

}  // namespace nam::dataset
