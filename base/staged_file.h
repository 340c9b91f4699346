#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace nam {

/// A file that appears under its name only when complete. It is written as `.nam-….partial` in the same
/// directory, so that its own name may be as long as the system allows, and renamed by Publish; the
/// destructor removes it unless published. It keeps the permissions of a file that it replaces.
class StagedFile {
 public:
  static absl::StatusOr<StagedFile> Create(const std::string& directory, const std::string& name);
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();

  /// Any thread; ranges must not overlap. RESOURCE_EXHAUSTED if the disk, a quota or a file size limit is
  /// reached.
  absl::Status Write(uint64_t offset, std::string_view bytes) const;
  /// Waits until the bytes are on the disk, so that a full disk shows before the file has its name.
  absl::Status Finish() const;
  absl::Status Publish();
  std::string path() const { return directory_ + "/" + name_; }

 private:
  StagedFile(std::string directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}

  std::string directory_;
  std::string name_;
  std::string staged_path_;  // empty once published or moved from
  UniqueFd fd_;
};

}  // namespace nam
