#pragma once

#include <cstdint>
#include <string>

namespace nam::catalog {

/// Room on disk beside the catalog's store, kept for the changes that make room: without it a full disk could
/// not be relieved by DROP, since the store writes before it frees.
///
///     PATH-reserve   kReserveBytes, allocated and without contents
///
/// Not thread-safe.
class DiskReserve {
 public:
  /// Covers the store's log at its largest (wal_autocheckpoint) and the pages behind it.
  static constexpr int64_t kReserveBytes = int64_t{4} << 20;

  /// Empty: there is no file, and nothing to reserve.
  explicit DiskReserve(std::string store_path);

  /// Allocates the file unless it is there. Without room for it the reserve is missing, which is no error.
  void Fill();
  /// Removes the file, so that the caller may write. False: it was missing.
  bool Spend();

 private:
  const std::string path_;
  bool filled_ = false;
};

}  // namespace nam::catalog
