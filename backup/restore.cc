#include "backup/restore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/private_file.h"
#include "base/replaced_file.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "catalog/chain_groups.h"
#include "catalog/restored_store.h"
#include "catalog/store.h"
#include "localcluster/data_layout.h"
#include "memserver/data_directory.h"
#include "memserver/file_pieces.h"
#include "memserver/sealed_file_reader.h"
#include "memserver/sealed_file_writer.h"
#include "session/record_file.h"
#include "session/saved_records.h"

namespace nam::backup {
namespace {

using memserver::SealedFileReader;
using memserver::SealedPiece;

std::string In(const std::string& directory, std::string_view name) {
  return absl::StrCat(directory, "/", absl::string_view(name.data(), name.size()));
}

std::string NameOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// Messages about saved tables name their file themselves.
absl::Status Wrong(const std::string& path, const absl::Status& why) {
  if (!absl::IsDataLoss(why) && !absl::IsNotFound(why)) return why;
  const std::string message(why.message());
  return absl::DataLossError(absl::StrCat(
      "the backup is not whole: ", absl::StrContains(message, path) ? "" : absl::StrCat("`", path, "`: "),
      message, "; put a copy of the file back, or restore another backup"));
}

absl::Status NotTheBackups() {
  return absl::DataLossError("it is damaged: it is not the file that was written with this backup");
}

/// A backup's files, which are checked before anything is made of them.
class SavedCluster {
 public:
  SavedCluster(const RestoreOptions& options, Manifest manifest)
      : options_(options), manifest_(std::move(manifest)), expected_bytes_(2 * manifest_.bytes()) {}

  const Manifest& manifest() const { return manifest_; }
  const std::vector<proto::Table>& tables() const { return tables_; }
  /// The number of the file with record tables; 0: there is none.
  uint64_t saved_records() const { return saved_records_; }

  absl::Status Check() {
    for (const SavedFile& file : manifest_.files) {
      const std::string path = In(options_.directory, file.path);
      if (const absl::Status status = Check(file, path); !status.ok()) return Wrong(path, status);
    }
    NAM_RETURN_IF_ERROR(ReadTables());
    return CheckMemory();
  }

  /// The file of one allocation, as one of the new cluster.
  absl::Status Copy(const SealedPath& sealed, const memserver::DirectoryIdentity& identity, int folder,
                    const std::string& folder_path) {
    NAM_ASSIGN_OR_RETURN(const SealedFileReader reader, OpenSealed(sealed));
    memserver::SealedHeader header = reader.header();
    header.identity = identity;
    NAM_ASSIGN_OR_RETURN(const auto writer, memserver::SealedFileWriter::Create(
                                                folder, folder_path, sealed.name, std::move(header)));
    NAM_RETURN_IF_ERROR(ForEachPiece(reader, "restoring",
                                     [&](std::span<const std::byte> piece) { return writer->Add(piece); }));
    NAM_RETURN_IF_ERROR(writer->Finish());
    writer->Keep();
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<SealedFileReader> OpenSealed(const SealedPath& sealed) const {
    const std::string path = In(options_.directory, FolderOf(sealed.storage));
    const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.valid()) return absl::NotFoundError("its folder is not there");
    NAM_ASSIGN_OR_RETURN(SealedFileReader reader, SealedFileReader::Open(folder.get(), sealed.name));
    NAM_RETURN_IF_ERROR(reader.CheckIsOf(sealed.allocation));
    return reader;
  }

  template <typename OnPiece>
  absl::Status ForEachPiece(const SealedFileReader& reader, std::string_view doing, const OnPiece& on_piece) {
    const std::vector<SealedPiece> pieces = reader.Pieces();
    for (size_t p = 0; p < pieces.size(); ++p) {
      if (Interruption::requested()) return absl::CancelledError("cancelled");
      const std::span<std::byte> bytes(piece_.data(), pieces[p].bytes);
      NAM_RETURN_IF_ERROR(reader.Read(p, pieces[p], bytes));
      NAM_RETURN_IF_ERROR(on_piece(bytes));
      bytes_ += bytes.size();
      if (options_.progress) options_.progress(doing, bytes_, expected_bytes_);
    }
    return absl::OkStatus();
  }

  absl::Status Check(const SavedFile& file, const std::string& path) {
    const std::optional<SealedPath> sealed = ParseSealedPath(file.path);
    if (!sealed.has_value()) {
      NAM_ASSIGN_OR_RETURN(const session::SavedRecords found, session::CheckSavedRecords(path));
      if (file.path == kRecordsName) saved_records_ = found.number;
      return found.bytes == file.bytes && found.checksum == file.checksum ? absl::OkStatus()
                                                                          : NotTheBackups();
    }
    NAM_ASSIGN_OR_RETURN(const SealedFileReader reader, OpenSealed(*sealed));
    if (reader.bytes() != file.bytes || reader.checksum() != file.checksum) return NotTheBackups();
    return ForEachPiece(reader, "checking", [](std::span<const std::byte>) { return absl::OkStatus(); });
  }

  absl::Status ReadTables() {
    const std::string path = In(options_.directory, kCatalogName);
    NAM_ASSIGN_OR_RETURN(const auto file, session::RecordFileReader::Open(path));
    while (true) {
      NAM_ASSIGN_OR_RETURN(const session::RecordFileReader::Section section, file->Next());
      if (section.kind == session::RecordSection::kEnd) return absl::OkStatus();
      if (section.kind != session::RecordSection::kTable) continue;
      if (!tables_.emplace_back().ParseFromString(section.bytes) || tables_.back().has_record())
        return absl::DataLossError(absl::StrCat("`", path, "` has a table that cannot be read"));
    }
  }

  /// Checks that all memory to which tables point is there.
  absl::Status CheckMemory() const {
    std::set<std::string> paths;
    for (const SavedFile& file : manifest_.files) paths.insert(file.path);
    for (const proto::Table& table : tables_) {
      for (uint32_t g = 0; g < catalog::GroupCount(table); ++g) {
        for (const uint32_t storage : catalog::GroupServers(table, g)) {
          const std::string path = SealedPathOf(storage, AllocationId(catalog::GroupAllocation(table, g)));
          if (paths.contains(path)) continue;
          return absl::DataLossError(
              absl::StrFormat("the backup has no `%s`, where table %s has rows", path, table.name()));
        }
      }
    }
    return absl::OkStatus();
  }

  const RestoreOptions& options_;
  const Manifest manifest_;
  const uint64_t expected_bytes_;  // read twice: to be checked, and to be copied
  uint64_t bytes_ = 0;
  uint64_t saved_records_ = 0;
  std::vector<proto::Table> tables_;
  std::vector<std::byte> piece_ = std::vector<std::byte>(memserver::kPieceBytes);
};

/// The storage id and its place: data directories are numbered by the order of ids.
std::map<uint32_t, int> PlacesOf(const Manifest& manifest) {
  std::map<uint32_t, int> places;
  for (const MemoryServer& server : manifest.memory_servers)
    places.emplace(server.storage, static_cast<int>(places.size()) + 1);
  return places;
}

/// The names of what MakeCluster makes in a data directory.
std::vector<std::string> NamesIn(const Manifest& manifest, const std::string& data_directory) {
  std::vector<std::string> paths = {StoreIn(data_directory), SavedRecordsIn(data_directory)};
  for (const auto& [storage, place] : PlacesOf(manifest))
    paths.push_back(MemoryDirectoryIn(data_directory, place));
  for (std::string& path : paths) path = NameOf(path);
  return paths;
}

absl::Status MakeMemoryDirectories(SavedCluster& saved, const catalog::ClusterIdentity& identity,
                                   const std::string& data_directory) {
  for (const auto& [storage, place] : PlacesOf(saved.manifest())) {
    const std::string path = MemoryDirectoryIn(data_directory, place);
    NAM_ASSIGN_OR_RETURN(const auto directory,
                         memserver::DataDirectory::Open(path, identity.store, identity.name));
    NAM_RETURN_IF_ERROR(directory->SetStorage(storage));
    const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const SavedFile& file : saved.manifest().files) {
      const std::optional<SealedPath> sealed = ParseSealedPath(file.path);
      if (!sealed.has_value() || sealed->storage != storage) continue;
      NAM_RETURN_IF_ERROR(saved.Copy(*sealed,
                                     {.store = identity.store, .cluster = identity.name, .storage = storage},
                                     folder.get(), path));
    }
    if (!folder.valid() || fsync(folder.get()) != 0)
      return WriteError(absl::StrCat("cannot write `", path, "`"), errno);
  }
  return absl::OkStatus();
}

absl::Status MakeCluster(const RestoreOptions& options, SavedCluster& saved,
                         const std::string& data_directory) {
  const Manifest& manifest = saved.manifest();
  catalog::RestoredCluster cluster{.name = manifest.cluster,
                                   .fabric = options.fabric.empty() ? manifest.fabric : options.fabric,
                                   .tables = saved.tables(),
                                   .directories = {},
                                   .saved_records = saved.saved_records()};
  for (const auto& [storage, place] : PlacesOf(manifest))
    cluster.directories[storage] = MemoryDirectoryIn(data_directory, place);
  const std::string unfinished = UnfinishedStoreIn(data_directory);
  NAM_ASSIGN_OR_RETURN(const catalog::ClusterIdentity identity,
                       catalog::MakeRestoredStore(unfinished, cluster));
  NAM_RETURN_IF_ERROR(MakeMemoryDirectories(saved, identity, data_directory));
  if (manifest.FindFile(kRecordsName) != nullptr) {
    NAM_RETURN_IF_ERROR(session::CopySavedRecords(
        In(options.directory, kRecordsName), SavedRecordsIn(data_directory), identity.store, identity.name));
  }
  if (std::rename(unfinished.c_str(), StoreIn(data_directory).c_str()) == 0) {
    (void)std::remove((unfinished + "-reserve").c_str());  // the cluster makes its own
    return absl::OkStatus();
  }
  return WriteError(absl::StrCat("cannot write `", StoreIn(data_directory), "`"), errno);
}

}  // namespace

absl::StatusOr<Manifest> ReadManifest(const std::string& directory) {
  const std::string path = In(directory, kManifestName);
  const absl::StatusOr<UniqueFd> file = OpenRegularFile(path, absl::StrCat("`", path, "`"));
  if (absl::IsNotFound(file.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("`", directory,
                     "` is no backup: it has no manifest, which is written last; one that was "
                     "interrupted has none either"));
  }
  NAM_RETURN_IF_ERROR(file.status());
  struct stat info;
  if (fstat(file->get(), &info) != 0 || static_cast<uint64_t>(info.st_size) > kManifestBytesMax)
    return absl::DataLossError(absl::StrCat("`", path, "` is too long for a manifest"));
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (const int error = memserver::ReadAllAt(file->get(), std::as_writable_bytes(std::span(text)), 0);
      error != 0)
    return memserver::FileReadError(absl::StrCat("`", path, "`"), error);
  absl::StatusOr<Manifest> manifest = DecodeManifest(text);
  if (manifest.ok()) return manifest;
  return absl::Status(manifest.status().code(),
                      absl::StrCat("`", path, "`: ", std::string(manifest.status().message())));
}

absl::StatusOr<Manifest> Restore(const RestoreOptions& options) {
  NAM_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(options.directory));
  if (manifest.schema != catalog::kStoreSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the backup has schema %d, and this program knows %d; restore it with the program that made it (%s)",
        manifest.schema, catalog::kStoreSchemaVersion, manifest.program));
  }
  NAM_RETURN_IF_ERROR(CheckNoUnfinishedRestore(options.data_directory));
  // An obstacle is reported before the long check of the files.
  NAM_ASSIGN_OR_RETURN(FreshDirectory data, FreshDirectory::Make(options.data_directory,
                                                                 NamesIn(manifest, options.data_directory)));
  NAM_RETURN_IF_ERROR(data.CheckRoom(manifest.bytes()));
  // If this process is killed from here on, no cluster starts on what it leaves.
  NAM_RETURN_IF_ERROR(data.Mark(NameOf(UnfinishedStoreIn(data.path()))));
  SavedCluster saved(options, std::move(manifest));
  NAM_RETURN_IF_ERROR(saved.Check());
  NAM_RETURN_IF_ERROR(MakeCluster(options, saved, data.path()));
  NAM_RETURN_IF_ERROR(data.Keep());
  return saved.manifest();
}

}  // namespace nam::backup
