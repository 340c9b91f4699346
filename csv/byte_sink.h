#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "csv/dialect.h"

namespace nam::csv {

/// Takes the bytes of a file from the first to the last. Belongs to one thread.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual absl::Status Write(std::string_view bytes) = 0;
  /// Called after the last byte. Without it a file that is replaced is unchanged.
  virtual absl::Status Finish() = 0;
};

/// Creates the file of this path, written as csv/destination.h says. A file that replaces another appears
/// once Finish has succeeded; until then the other one stays. Files written in place, pipes and devices keep
/// what was written before an error. Waits for a pipe end with CANCELLED (csv/interruptible_io.h). 58P01 if
/// there is no such folder, 42501 if it may not be written, 42809 if the path is a folder, 53100 if the disk
/// is full.
absl::StatusOr<std::unique_ptr<ByteSink>> CreateFile(const std::string& path);
/// Passes the bytes on.
std::unique_ptr<ByteSink> SinkTo(std::function<absl::Status(std::string_view bytes)> write);

/// Compresses the bytes for `sink`: as one gzip member, or one zstd frame.
std::unique_ptr<ByteSink> Deflate(std::unique_ptr<ByteSink> sink, Compression compression);

}  // namespace nam::csv
