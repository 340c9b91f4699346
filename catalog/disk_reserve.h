#pragma once

#include <cstdint>
#include <string>

namespace nam::catalog {

/// Room on disk beside the catalog's store, kept for the changes that make room (Mutation::makes_room):
/// without it a full disk could not be relieved by DROP, since the store writes before it frees.
///
///     PATH-reserve   slices of kSliceBytes, allocated and without contents
///
/// Not thread-safe.
class DiskReserve {
 public:
  /// The store's log at its largest (wal_autocheckpoint).
  static constexpr int64_t kSliceBytes = int64_t{1} << 20;
  static constexpr int64_t kSlices = 4;
  /// The reserve is a small part of what is free, so that it does not itself fill a small disk.
  static constexpr int64_t kFreePerReserved = 8;

  /// Empty: there is no file, and nothing to reserve.
  explicit DiskReserve(std::string store_path);

  /// Allocates what is missing. Too little room for it is no error.
  void Fill();
  /// Gives a slice back to the disk, so that the caller may write. False: none is left.
  bool Spend();

 private:
  const std::string path_;
  int64_t slices_ = 0;
};

}  // namespace nam::catalog
