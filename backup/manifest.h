#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"

/// Describes a backup as lines of text, in this order:
///
///     nam backup 1
///     made 2026-11-27T01:23:45Z by nam 0.1.0 (commit 6e14e678)
///     cluster 9c1d7f0e2b3a4d5e shm local          the former store, fabric, name
///     schema 6                                    of the catalog's descriptions: catalog/store.h
///     memory_server 3 268431360                   storage id, memory in bytes; one line each
///     table columnar 600572 lineorder             or record, view, schema; rows; name
///     file 4096 0123456789abcdef catalog.saved    bytes, checksum, path; one line each
///     end 0123456789abcdef                        XXH3 of all lines before
///
/// The checksum of a file is that of its own format, which has others inside: a flipped bit is found in its
/// place.
namespace nam::backup {

inline constexpr char kManifestName[] = "manifest";
inline constexpr char kCatalogName[] = "catalog.saved";
inline constexpr char kRecordsName[] = "records.saved";
inline constexpr size_t kManifestBytesMax = size_t{64} << 20;

struct MemoryServer {
  uint32_t storage = 0;
  uint64_t memory_bytes = 0;  // the most that it handed out
};

enum class EntryKind : uint8_t { kColumnar, kRecord, kView, kSchema };

struct Entry {
  EntryKind kind = EntryKind::kColumnar;
  uint64_t rows = 0;
  std::string name;
};

struct SavedFile {
  std::string path;  // below the backup's directory
  uint64_t bytes = 0;
  uint64_t checksum = 0;
};

struct Manifest {
  std::string made;     // UTC
  std::string program;  // that made it
  uint64_t store = 0;
  std::string fabric;
  std::string cluster;
  uint64_t schema = 0;
  std::vector<MemoryServer> memory_servers;  // by storage id
  std::vector<Entry> entries;
  std::vector<SavedFile> files;

  /// nullptr: it has no such file.
  const SavedFile* FindFile(std::string_view path) const;
  uint64_t bytes() const;  // sum over all files
  uint64_t CountOf(EntryKind kind) const;
};

std::string EncodeManifest(const Manifest& manifest);
/// DATA_LOSS: it is damaged; FAILED_PRECONDITION: of another format. Names of files lead nowhere else than
/// into the backup.
absl::StatusOr<Manifest> DecodeManifest(std::string_view text);

/// The folder of a memory server's files: `storage-3`.
std::string FolderOf(uint32_t storage);
/// `storage-3/allocation-17.sealed`.
std::string SealedPathOf(uint32_t storage, AllocationId allocation);

struct SealedPath {
  uint32_t storage = 0;
  AllocationId allocation;
  std::string name;  // in the folder
};
/// Nothing for a path that SealedPathOf does not make.
std::optional<SealedPath> ParseSealedPath(std::string_view path);

}  // namespace nam::backup
