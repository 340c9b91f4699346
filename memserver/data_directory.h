#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "memserver/memory_pool.h"
#include "memserver/sealed_file.h"

namespace nam::memserver {

/// Stores sealed allocations of a memory server on disk, one file each. One process uses a directory at a
/// time.
///
///     lock                   held as long as the server lives
///     identity               its cluster and storage id
///     allocation-17.sealed   memserver/sealed_file.h
///     allocation-18.new      being written; useless after a crash
///
///     allocation:  Seal ─▶ being written ──fsync, rename, fsync──▶ sealed ──Remove──▶ gone
///                               └────────no room, Remove──────────────────────────────▲
///
/// A damaged file stays until the catalog says that its allocation is over. A file of another cluster or
/// storage id is left alone, as is one whose header names another allocation than its name. Thread-safe.
class DataDirectory {
 public:
  /// Opens the directory; creates it, closed to other users, if it does not exist. FAILED_PRECONDITION if it
  /// is in use, belongs to a store other than `store`, or is open to other users.
  static absl::StatusOr<std::unique_ptr<DataDirectory>> Open(const std::string& path, uint64_t store,
                                                             const std::string& cluster);

  const std::string& path() const { return path_; }
  /// 0: not assigned yet, and the directory is empty.
  uint32_t storage() const { return identity_.storage; }
  /// Durable once it returns. Requires that no storage id is assigned yet and no Seal has begun.
  absl::Status SetStorage(uint32_t storage);

  struct DamagedFile {
    AllocationId allocation;
    std::string why;        // the file, and what is wrong with it
    bool misnamed = false;  // the number is in the file's name alone: its header has another
  };
  struct Contents {
    std::vector<AllocationId> whole;
    std::vector<DamagedFile> damaged;
    uint64_t bytes = 0;  // of the whole allocations
  };
  /// Reads all files into an empty pool, at their former addresses; a few are open at a time.
  /// FAILED_PRECONDITION if the memory is too small. RESOURCE_EXHAUSTED or PERMISSION_DENIED if a file cannot
  /// be read and may be whole: no file is called damaged for that.
  absl::StatusOr<Contents> ReadInto(MemoryPool& pool, fabric::Fabric& fabric);

  /// Writes the pool's extents of the allocation; returns their bytes once they are durable. Checks
  /// `cancelled` between pieces. RESOURCE_EXHAUSTED: no room on the disk, or too many seals at once.
  absl::StatusOr<uint64_t> Seal(AllocationId allocation, MemoryPool& pool,
                                const std::function<bool()>& cancelled);
  /// Removes the file of an allocation that is over. False: the disk refuses; call it again. True is required
  /// before the memory is reused: otherwise two files would have the same addresses at the next start, and
  /// the ids do not tell which is newer, because an older load may take its memory later.
  bool Remove(AllocationId allocation);
  /// Allocations with damaged files of their names. The catalog must say when they are over.
  std::vector<AllocationId> Damaged() const;

 private:
  explicit DataDirectory(std::string path) : path_(std::move(path)) {}
  struct FileToRead;

  absl::Status Lock();
  absl::Status ReadIdentity(uint64_t store, const std::string& cluster);
  absl::StatusOr<std::vector<FileToRead>> ListFiles(Contents& contents);
  absl::Status ReadHeader(FileToRead& file) const;
  absl::Status CheckName(const FileToRead& file) const;
  absl::Status Adopt(std::vector<FileToRead>& files, MemoryPool& pool, Contents& contents);
  absl::StatusOr<uint64_t> Write(AllocationId allocation, MemoryPool& pool,
                                 const std::function<bool()>& cancelled);
  absl::Status Finish(AllocationId allocation, const MemoryPool& pool);
  std::string PathOf(const std::string& name) const;

  const std::string path_;
  UniqueFd directory_;
  UniqueFd lock_;
  DirectoryIdentity identity_;

  Mutex writing_;  // one file at a time: they share the disk anyway
  mutable Mutex mutex_;
  size_t sealing_ ABSL_GUARDED_BY(mutex_) = 0;             // in progress or waiting
  AllocationId written_ ABSL_GUARDED_BY(mutex_);           // in progress
  std::set<AllocationId> sealed_ ABSL_GUARDED_BY(mutex_);  // with whole files
  std::set<AllocationId> damaged_ ABSL_GUARDED_BY(mutex_);
  // These are in either set and are over, but the disk refuses.
  std::set<AllocationId> unremoved_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::memserver
