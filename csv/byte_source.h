#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace nam::csv {

/// Bytes of a file, or of a pipe, from the first to the last. Belongs to one thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// At most so many; 0 at the end. A wait for a pipe ends with CANCELLED (csv/interruptible_io.h).
  virtual absl::StatusOr<size_t> Read(char* into, size_t bytes) = 0;
  /// The name for messages: a file's name without its folder, or `standard input`.
  virtual const std::string& name() const = 0;
  /// The total bytes of all Reads; 0 if unknown.
  virtual uint64_t bytes() const = 0;
};

/// Tells whether a file is as it was. All zero: of a pipe.
struct FileVersion {
  uint64_t bytes = 0;
  uint64_t inode = 0;
  int64_t changed_ns = 0;

  bool operator==(const FileVersion&) const = default;
};
/// All zero if there is no such file.
FileVersion VersionOf(const std::string& path);

/// 58P01 if there is no such file, 42809 if it is a folder. 55000 if the file is not of `version`, when it is
/// opened or at its end; nullopt: of that which is opened.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path,
                                                     std::optional<FileVersion> version = std::nullopt);
/// The standard input of the process.
std::unique_ptr<ByteSource> StandardInput();

/// The files that match a pattern with `*`, `?` or `[…]`, by name; a path without these is returned as it is.
/// 58P01 if no file matches.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& pattern);

}  // namespace nam::csv
