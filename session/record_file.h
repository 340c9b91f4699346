#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

/// The file of saved tables: sections, each with a checksum over itself and its place.
///
///     head │ table │ numbers, rows, rows … │ table │ rows … │ end       record tables
///     head │ table │ table … │ end                                      what a catalog says of other tables
///
///     section:  kind, number of the section, bytes │ bytes │ XXH3 of all that     little-endian
///
/// A file without its end is incomplete.
namespace nam::session {

enum class RecordSection : uint32_t { kHead = 1, kTable = 2, kNumbers = 3, kRows = 4, kEnd = 5 };

inline constexpr uint64_t kSectionBytesMax = uint64_t{64} << 20;

/// Writes `PATH.new`, and renames it once all of it is on disk. Without Finish nothing stays.
class RecordFileWriter {
 public:
  static absl::StatusOr<std::unique_ptr<RecordFileWriter>> Create(const std::string& path);
  ~RecordFileWriter();

  /// Appends a section. RESOURCE_EXHAUSTED: the disk is full.
  absl::Status Add(RecordSection kind, std::string_view bytes);
  /// Completes the file and gives it its name. The file is durable once this has returned OK.
  absl::Status Finish();
  uint64_t bytes() const { return bytes_; }
  /// XXH3 of all sections' checksums so far; identifies the file's contents.
  uint64_t checksum() const { return checksum_; }

 private:
  RecordFileWriter(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  absl::Status Write(std::string_view bytes);

  const std::string path_;
  UniqueFd file_;
  uint32_t sections_ = 0;
  uint64_t bytes_ = 0;
  uint64_t checksum_ = 0;
  bool finished_ = false;
};

class RecordFileReader {
 public:
  /// NOT_FOUND: there is no such file. FAILED_PRECONDITION: other users may read it.
  static absl::StatusOr<std::unique_ptr<RecordFileReader>> Open(const std::string& path);

  struct Section {
    RecordSection kind = RecordSection::kEnd;
    std::string bytes;
  };
  /// Returns the next section. DATA_LOSS names the file, the place and the damage: also if a file ends before
  /// kEnd.
  absl::StatusOr<Section> Next();
  /// Read so far.
  uint64_t bytes() const { return at_; }
  /// As RecordFileWriter::checksum.
  uint64_t checksum() const { return checksum_; }

 private:
  RecordFileReader(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  absl::Status Read(char* to, uint64_t bytes);
  absl::Status Damaged(const char* why) const;

  const std::string path_;
  UniqueFd file_;
  uint32_t sections_ = 0;
  uint64_t at_ = 0;
  uint64_t checksum_ = 0;
};

}  // namespace nam::session
