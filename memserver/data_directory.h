#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "memserver/memory_pool.h"
#include "memserver/sealed_file.h"

namespace nam::memserver {

/// Where a memory server keeps what is sealed, a file an allocation. One process has it at a time.
///
///     lock                   held as long as the server lives
///     identity               whose it is: cluster and storage id
///     allocation-17.sealed   memserver/sealed_file.h
///     allocation-18.new      being written; of no use after a crash
///
///     allocation:  Seal ─▶ being written ──fsync, rename, fsync──▶ sealed ──Remove──▶ gone
///                               └────────no room, Remove──────────────────────────────▲
///
/// A file that is damaged stays until the catalog says that its allocation is over. One of another cluster or
/// storage id is left alone. Thread-safe.
class DataDirectory {
 public:
  /// Makes it, closed to others, unless it is there. FAILED_PRECONDITION for one that is in use, belongs to
  /// another store than `store`, or is open to others.
  static absl::StatusOr<std::unique_ptr<DataDirectory>> Open(const std::string& path, uint64_t store,
                                                             const std::string& cluster);

  const std::string& path() const { return path_; }
  /// 0: it has none yet, and is empty.
  uint32_t storage() const { return identity_.storage; }
  /// Durable once it returned. Only of a directory without one, before the first Seal.
  absl::Status SetStorage(uint32_t storage);

  struct DamagedFile {
    AllocationId allocation;
    std::string why;  // the file, and what is wrong with it
  };
  struct Contents {
    std::vector<AllocationId> whole;
    std::vector<DamagedFile> damaged;
    uint64_t bytes = 0;  // of the whole ones
  };
  /// Reads all files into an empty pool, where they lay. FAILED_PRECONDITION if the memory is too small for
  /// them.
  absl::StatusOr<Contents> ReadInto(MemoryPool& pool, fabric::Fabric& fabric);

  /// Writes what the pool has of the allocation: the bytes, once they are durable. `cancelled` is asked
  /// between pieces. RESOURCE_EXHAUSTED: no room on the disk, or too many at once.
  absl::StatusOr<uint64_t> Seal(AllocationId allocation, MemoryPool& pool,
                                const std::function<bool()>& cancelled);
  /// The allocation is over; to be called before its memory is given to another.
  void Remove(AllocationId allocation);
  /// Allocations whose files are damaged: the catalog is to say when they are over.
  std::vector<AllocationId> Damaged() const;

 private:
  explicit DataDirectory(std::string path) : path_(std::move(path)) {}
  struct FileToRead;

  absl::Status Lock();
  absl::Status ReadIdentity(uint64_t store, const std::string& cluster);
  absl::StatusOr<std::vector<FileToRead>> ListFiles(Contents& contents);
  absl::Status ReadHeader(FileToRead& file) const;
  absl::Status Adopt(std::vector<FileToRead>& files, MemoryPool& pool, Contents& contents);
  absl::StatusOr<uint64_t> Write(AllocationId allocation, MemoryPool& pool,
                                 const std::function<bool()>& cancelled);
  absl::Status Finish(AllocationId allocation, const MemoryPool& pool);
  std::string PathOf(const std::string& name) const;

  const std::string path_;
  UniqueFd directory_;
  UniqueFd lock_;
  DirectoryIdentity identity_;

  std::mutex writing_;  // one file at a time: the disk is shared anyway
  mutable std::mutex mutex_;
  size_t sealing_ = 0;             // that write, or wait for their turn
  AllocationId written_;           // now
  std::set<AllocationId> sealed_;  // files that are there, and whole
  std::set<AllocationId> damaged_;
};

}  // namespace nam::memserver
