#include "memserver/data_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/private_file.h"
#include "base/replaced_file.h"
#include "base/status_macros.h"
#include "memserver/file_pieces.h"
#include "memserver/sealed_file_reader.h"
#include "memserver/sealed_file_writer.h"

namespace nam::memserver {
namespace {

constexpr char kLock[] = "lock";
constexpr char kIdentity[] = "identity";
constexpr char kIdentityFirstLine[] = "nam data directory 1";
constexpr char kUnfinished[] = ".new";
constexpr size_t kFilesMax = 65'536;
/// Seals in progress or waiting for their turn.
constexpr size_t kSealingMax = 64;

std::string UnfinishedName(AllocationId allocation) {
  return absl::StrCat("allocation-", allocation.value(), kUnfinished);
}

std::string IdentityText(const DirectoryIdentity& identity) {
  return absl::StrFormat("%s\nstore %d\nstorage %d\ncluster %s\n", kIdentityFirstLine, identity.store,
                         identity.storage, identity.cluster);
}

/// Parses IdentityText's result; an error for any other text.
absl::StatusOr<DirectoryIdentity> ParseIdentity(const std::string& text, const std::string& path) {
  DirectoryIdentity identity;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const auto value = [&](size_t line, const char* key) {
    absl::string_view rest = line < lines.size() ? absl::string_view(lines[line]) : absl::string_view();
    return absl::ConsumePrefix(&rest, key) ? rest : absl::string_view();
  };
  const bool known = lines[0] == kIdentityFirstLine &&
                     absl::SimpleAtoi(value(1, "store "), &identity.store) &&
                     absl::SimpleAtoi(value(2, "storage "), &identity.storage) && identity.storage != 0;
  identity.cluster = std::string(value(3, "cluster "));
  if (known) return identity;
  return absl::DataLossError(
      absl::StrCat("`", path,
                   "` is damaged, or of another version of nam, so the directory's owner is unknown; "
                   "put a copy of the file back, or name another directory"));
}

}  // namespace

std::string DataDirectory::PathOf(const std::string& name) const {
  return absl::StrCat(path_, "/", name);
}

absl::StatusOr<std::unique_ptr<DataDirectory>> DataDirectory::Open(const std::string& path, uint64_t store,
                                                                   const std::string& cluster) {
  std::error_code ignored;  // if the working directory is gone
  const std::string whole = std::filesystem::absolute(path, ignored).lexically_normal().string();
  std::unique_ptr<DataDirectory> directory(new DataDirectory(whole));
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return WriteError(absl::StrCat("cannot make the data directory `", whole, "`"), errno);
  directory->directory_.reset(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!directory->directory_.valid() || fstat(directory->directory_.get(), &info) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open the data directory `", whole, "`: ", std::strerror(errno)));
  }
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the data directory `", whole,
                     "` must belong to the user who runs the memory server, and be "
                     "closed to others: `chmod 700` it"));
  }
  // Makes the new directory itself as durable as its contents.
  const UniqueFd parent(openat(directory->directory_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.valid()) (void)fsync(parent.get());
  NAM_RETURN_IF_ERROR(directory->Lock());
  NAM_RETURN_IF_ERROR(directory->ReadIdentity(store, cluster));
  return directory;
}

absl::Status DataDirectory::Lock() {
  lock_.reset(openat(directory_.get(), kLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock_.valid()) return WriteError(absl::StrCat("cannot write ", PathOf(kLock)), errno);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return WriteError(PathOf(kLock), errno);
    return absl::FailedPreconditionError(
        absl::StrCat("the data directory `", path_, "` is in use by another memory server (its pid is in `",
                     PathOf(kLock), "`); name another directory, or end that one"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock_.get(), 0) != 0) return WriteError(PathOf(kLock), errno);
  (void)WriteAll(lock_.get(), std::as_bytes(std::span(pid.data(), pid.size())), 0);  // informative
  return absl::OkStatus();
}

absl::Status DataDirectory::ReadIdentity(uint64_t store, const std::string& cluster) {
  identity_ = {.store = store, .cluster = cluster, .storage = 0};
  const UniqueFd file(openat(directory_.get(), kIdentity, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) return absl::OkStatus();
  if (!file.valid()) return CannotRead(PathOf(kIdentity), errno);
  NAM_ASSIGN_OR_RETURN(const std::string text, ReadAll(file.get(), PathOf(kIdentity)));
  NAM_ASSIGN_OR_RETURN(const DirectoryIdentity found, ParseIdentity(text, PathOf(kIdentity)));
  if (found.store != store) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the data directory `%s` belongs to the cluster `%s` on another catalog store "
                        "(%016x) than that of `%s` "
                        "(%016x); start the catalog on that store, or name another directory",
                        path_, found.cluster, found.store, cluster, store));
  }
  identity_.storage = found.storage;
  return absl::OkStatus();
}

absl::Status DataDirectory::SetStorage(uint32_t storage) {
  DirectoryIdentity fresh = identity_;
  fresh.storage = storage;
  NAM_RETURN_IF_ERROR(
      ReplacePrivateFile(directory_.get(), kIdentity, IdentityText(fresh), PathOf(kIdentity)));
  identity_ = fresh;
  return absl::OkStatus();
}

struct DataDirectory::FileToRead {
  AllocationId allocation;
  std::string name;
  SealedHeader header;
  std::vector<SealedPiece> pieces;  // as many as checksums in the header

  /// False as long as the header is not read.
  bool misnamed() const { return header.allocation != AllocationId() && header.allocation != allocation; }
};

// Checks everything about the file except its pieces.
absl::Status DataDirectory::ReadHeader(FileToRead& file) const {
  NAM_ASSIGN_OR_RETURN(const SealedFileReader reader, SealedFileReader::Open(directory_.get(), file.name));
  const DirectoryIdentity& whose = reader.header().identity;
  if (whose.store != identity_.store || whose.storage != identity_.storage) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "it belongs to storage %d of the cluster `%s` (store %016x), not to storage %d of store %016x",
        whose.storage, whose.cluster, whose.store, identity_.storage, identity_.store));
  }
  file.header = reader.header();
  NAM_RETURN_IF_ERROR(CheckName(file));
  NAM_RETURN_IF_ERROR(reader.CheckIsOf(file.allocation));
  file.pieces = reader.Pieces();
  return absl::OkStatus();
}

absl::Status DataDirectory::CheckName(const FileToRead& file) const {
  if (!file.misnamed()) return absl::OkStatus();
  const std::string right = SealedFileName(file.header.allocation);
  const bool there = faccessat(directory_.get(), right.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  return absl::DataLossError(absl::StrFormat("it is the file of allocation %d under another name; %s `%s`",
                                             file.header.allocation.value(),
                                             there ? "there is also" : "rename it to", right));
}

// Newest first: if extents of two files overlap, the newer allocation counts, and the other is damaged. This
// process writes none that overlap, whatever the order of their allocations: it removes a file before it
// reuses the memory. Ignores files of others.
absl::StatusOr<std::vector<DataDirectory::FileToRead>> DataDirectory::ListFiles(Contents& contents) {
  std::vector<FileToRead> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(dup(directory_.get())), &closedir);
  if (listing == nullptr) return WriteError(absl::StrCat("cannot list ", path_), errno);
  rewinddir(listing.get());
  while (const dirent* const entry = readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with("allocation-") && name.ends_with(kUnfinished))
      unlinkat(directory_.get(), entry->d_name, 0);
    const AllocationId allocation = AllocationOfFileName(name);
    if (allocation == AllocationId()) continue;
    if (files.size() >= kFilesMax)
      return absl::FailedPreconditionError(absl::StrCat(path_, " has more than ", kFilesMax, " files"));
    FileToRead& file = files.emplace_back();
    file.allocation = allocation;
    file.name = name;
  }
  std::sort(files.begin(), files.end(),
            [](const FileToRead& a, const FileToRead& b) { return b.allocation < a.allocation; });
  std::set<AllocationId> named;
  for (const FileToRead& file : files) named.insert(file.allocation);
  absl::Status unknown;
  std::erase_if(files, [&](FileToRead& file) {
    if (!unknown.ok()) return false;
    const absl::Status status = ReadHeader(file);
    if (status.ok()) return false;
    const std::string why = absl::StrCat("`", PathOf(file.name), "`: ", std::string(status.message()));
    if (MayBeWhole(status)) {
      unknown = absl::Status(status.code(), why);
      return false;
    }
    LogError(why);
    if (absl::IsFailedPrecondition(status)) return true;
    contents.damaged.push_back({file.allocation, why, file.misnamed()});
    if (file.misnamed() && !named.contains(file.header.allocation))
      contents.damaged.push_back({file.header.allocation, why});
    return true;
  });
  NAM_RETURN_IF_ERROR(unknown);
  return files;
}

absl::Status DataDirectory::Adopt(std::vector<FileToRead>& files, MemoryPool& pool, Contents& contents) {
  absl::Status failed;
  std::erase_if(files, [&](FileToRead& file) {
    const absl::Status adopted = pool.Adopt(file.allocation, file.header.extents);
    if (adopted.ok()) return false;
    if (absl::IsAlreadyExists(adopted)) {
      contents.damaged.push_back(
          {file.allocation, absl::StrCat("`", PathOf(file.name), "`: ", adopted.message())});
      LogError(contents.damaged.back().why);
    } else {
      failed.Update(absl::Status(
          adopted.code(),
          absl::StrCat("`", PathOf(file.name), "` cannot be read into memory: ", adopted.message(),
                       "; start with as much --memory as before, or more")));
    }
    return true;
  });
  return failed;
}

absl::StatusOr<DataDirectory::Contents> DataDirectory::ReadInto(MemoryPool& pool, fabric::Fabric& fabric) {
  Contents contents;
  NAM_ASSIGN_OR_RETURN(std::vector<FileToRead> files, ListFiles(contents));
  NAM_RETURN_IF_ERROR(Adopt(files, pool, contents));
  std::vector<std::string> names;
  std::vector<PieceToRead> pieces;
  for (const FileToRead& file : files) {
    for (size_t p = 0; p < file.pieces.size(); ++p) {
      const SealedPiece& piece = file.pieces[p];
      pieces.push_back({.file = names.size(),
                        .file_offset = piece.file_offset,
                        .to = {pool.FindToFill(piece.offset, piece.bytes), piece.bytes},
                        .checksum = file.header.checksums[p]});
    }
    names.push_back(file.name);
  }
  const std::vector<absl::Status> read = ReadPieces(directory_.get(), names, pieces, fabric);
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < files.size(); ++i) {
    if (read[i].ok()) {
      contents.whole.push_back(files[i].allocation);
      contents.bytes += files[i].header.data_bytes();
      sealed_.insert(files[i].allocation);
      continue;
    }
    const std::string why = absl::StrCat("`", PathOf(files[i].name), "`: ", read[i].message());
    if (MayBeWhole(read[i])) return absl::Status(read[i].code(), why);
    pool.Release(files[i].allocation);
    contents.damaged.push_back({files[i].allocation, why});
    LogError(why);
  }
  for (const DamagedFile& file : contents.damaged) {
    if (!file.misnamed) damaged_.insert(file.allocation);
  }
  return contents;
}

absl::StatusOr<uint64_t> DataDirectory::Seal(AllocationId allocation, MemoryPool& pool,
                                             const std::function<bool()>& cancelled) {
  {
    const MutexLock lock(mutex_);
    if (sealing_ >= kSealingMax)
      return absl::ResourceExhaustedError(absl::StrFormat("%d loads are being sealed; try again", sealing_));
    ++sealing_;
  }
  absl::StatusOr<uint64_t> bytes;
  {
    const MutexLock writing(writing_);
    bytes = Write(allocation, pool, cancelled);
    const MutexLock lock(mutex_);
    written_ = {};
  }
  const MutexLock lock(mutex_);
  --sealing_;
  return bytes;
}

absl::StatusOr<uint64_t> DataDirectory::Write(AllocationId allocation, MemoryPool& pool,
                                              const std::function<bool()>& cancelled) {
  NAM_ASSIGN_OR_RETURN(const std::vector<Extent> extents, pool.Seal(allocation));
  SealedHeader header{.identity = identity_, .allocation = allocation, .extents = extents, .checksums = {}};
  {
    const MutexLock lock(mutex_);
    if (sealed_.contains(allocation)) return header.data_bytes();  // repeated because the answer was lost
    written_ = allocation;
  }
  const uint64_t bytes = header.data_bytes();
  const std::string name = UnfinishedName(allocation);
  unlinkat(directory_.get(), name.c_str(), 0);
  NAM_ASSIGN_OR_RETURN(const auto file,
                       SealedFileWriter::Create(directory_.get(), path_, name, std::move(header)));
  for (const SealedPiece& piece : file->pieces()) {
    if (cancelled()) return absl::CancelledError("the client that asked to seal the allocation is gone");
    NAM_RETURN_IF_ERROR(file->Add({pool.Find(piece.offset, piece.bytes), piece.bytes}));
  }
  NAM_RETURN_IF_ERROR(file->Finish());
  NAM_RETURN_IF_ERROR(Finish(allocation, pool));
  file->Keep();
  return bytes;
}

// An allocation that is over by now gets no file, however far its seal came.
absl::Status DataDirectory::Finish(AllocationId allocation, const MemoryPool& pool) {
  const MutexLock lock(mutex_);
  if (written_ != allocation || !pool.Lives(allocation)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "allocation %d is over: its load was aborted, or the loader's lease has ended", allocation.value()));
  }
  const std::string name = SealedFileName(allocation);
  if (faccessat(directory_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("`", PathOf(name), "` is there already, and belongs to another cluster; move it away"));
  }
  if (renameat(directory_.get(), UnfinishedName(allocation).c_str(), directory_.get(), name.c_str()) != 0)
    return WriteError(absl::StrCat("cannot write `", PathOf(name), "`"), errno);
  if (fsync(directory_.get()) != 0) {
    const int error = errno;
    if (unlinkat(directory_.get(), name.c_str(), 0) != 0) damaged_.insert(allocation);  // for Remove
    return WriteError(absl::StrCat("cannot write `", PathOf(name), "`"), error);
  }
  sealed_.insert(allocation);
  return absl::OkStatus();
}

bool DataDirectory::Remove(AllocationId allocation) {
  const MutexLock lock(mutex_);
  if (written_ == allocation) written_ = {};
  if (!sealed_.contains(allocation) && !damaged_.contains(allocation)) return true;
  const std::string name = SealedFileName(allocation);
  if (unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    if (unremoved_.insert(allocation).second) {
      LogWarning(absl::StrCat("cannot remove `", PathOf(name),
                              "`, whose allocation is over: ", std::strerror(errno),
                              "; its memory stays in use, and each renewal of the lease tries again"));
    }
    return false;
  }
  LogInfo(absl::StrFormat("allocation %d is over: its file is removed", allocation.value()));
  sealed_.erase(allocation);
  damaged_.erase(allocation);
  unremoved_.erase(allocation);
  return true;
}

std::vector<AllocationId> DataDirectory::Damaged() const {
  const MutexLock lock(mutex_);
  return {damaged_.begin(), damaged_.end()};
}

}  // namespace nam::memserver
