#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "csv/byte_source.h"
#include "csv/dialect.h"

namespace nam::csv {

/// Some whole rows of a file.
struct Portion {
  uint64_t number = 0;      // in the order of the files and their rows
  std::string source;       // the file's name in messages
  size_t file = 0;          // its place among the reader's
  uint64_t first_line = 1;  // the file's line where the portion begins
  std::string text;
  bool first = false;   // it begins the file
  bool header = false;  // its first row is the file's, and has names by the dialect
  bool last = true;     // of the file
};

/// Reads files one after the other, by portions that end where rows do. Any number of threads.
class PortionReader {
 public:
  static constexpr size_t kPortionBytes = 1 << 20;
  /// A longer row is assumed to lack a quote.
  static constexpr size_t kRowBytesMax = 64 << 20;

  /// Opens what is read without paths.
  using OpenInput = std::function<std::unique_ptr<ByteSource>()>;

  PortionReader(std::vector<std::string> paths, const Dialect& dialect, size_t portion_bytes = kPortionBytes);
  /// Empty paths: the input; without one, the process's standard input.
  PortionReader(std::vector<std::string> paths, const Dialect& dialect, OpenInput input,
                size_t portion_bytes = kPortionBytes);
  ~PortionReader();

  /// Files of another version are errors (csv/byte_source.h). One for each path; called before Next.
  void Expect(std::vector<FileVersion> versions) { versions_ = std::move(versions); }
  /// False when all is read. After an error no portion follows.
  absl::StatusOr<bool> Next(Portion& portion);

  /// The size of all files together; 0 if one is unknown before it is read.
  uint64_t bytes() const { return bytes_; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  absl::StatusOr<bool> OpenNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Fill(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SkipLines() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Cut(Portion& portion) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<std::string> paths_;
  const Dialect dialect_;
  const OpenInput input_;
  const size_t portion_bytes_;
  std::vector<FileVersion> versions_;  // empty: any
  uint64_t bytes_ = 0;
  std::atomic<uint64_t> bytes_read_ = 0;

  Mutex mutex_;
  std::unique_ptr<ByteSource> source_ ABSL_GUARDED_BY(mutex_);
  size_t next_path_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // source_ is used up
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  bool at_begin_ ABSL_GUARDED_BY(mutex_) = false;
  std::string rest_ ABSL_GUARDED_BY(mutex_);  // bytes of source_ after the last portion
  uint64_t line_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t portions_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace nam::csv
