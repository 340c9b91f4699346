#include "backup/backup.h"

#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "backup/quiet_moment.h"
#include "backup/sealed_copies.h"
#include "base/clock.h"
#include "base/replaced_file.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "catalog/chain_groups.h"
#include "catalog/missing_servers.h"
#include "catalog/server_ids.h"
#include "catalog/store.h"
#include "proto/catalog.pb.h"
#include "session/record_engine.h"
#include "session/record_file.h"
#include "session/saved_records.h"

namespace nam::backup {
namespace {

using session::RecordSection;

std::string TimeText(int64_t wall_time_us) {
  const std::time_t seconds = wall_time_us / 1'000'000;
  std::tm fields{};
  gmtime_r(&seconds, &fields);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &fields);
  return text;
}

absl::Status LostTable(const std::string& name, const std::string& why, const std::string& remedy) {
  return absl::FailedPreconditionError(
      absl::StrFormat("table %s has lost memory, and would be missing from the backup%s; %s", name,
                      why.empty() ? "" : absl::StrCat(": ", why), remedy));
}

class Backup {
 public:
  Backup(catalog::Attachment& attachment, const BackupOptions& options, FreshDirectory& directory)
      : attachment_(attachment), options_(options), directory_(directory), copies_(attachment) {}

  absl::StatusOr<Manifest> Run() {
    NAM_RETURN_IF_ERROR(HoldMoment());
    NAM_RETURN_IF_ERROR(directory_.CheckRoom(copies_.bytes()));
    NAM_ASSIGN_OR_RETURN(std::vector<SavedFile> sealed,
                         copies_.CopyInto(directory_, manifest_.store, manifest_.cluster, options_.progress));
    // Pins are as good as the lease.
    NAM_RETURN_IF_ERROR(attachment_.ConfirmLease());
    for (SavedFile& file : sealed) manifest_.files.push_back(std::move(file));
    NAM_RETURN_IF_ERROR(ReplacePrivateFile(directory_.fd(), kManifestName, EncodeManifest(manifest_),
                                           directory_.PathOf(kManifestName)));
    return std::move(manifest_);
  }

 private:
  /// All that the catalog has to be quiet for.
  absl::Status HoldMoment() {
    NAM_ASSIGN_OR_RETURN(QuietMoment quiet, QuietMoment::Begin(attachment_, options_.wait_us));
    NAM_RETURN_IF_ERROR(Describe());
    NAM_RETURN_IF_ERROR(SaveCatalog());
    for (const auto& [storage, allocations] : allocations_) {
      const proto::Member* const server = catalog::FindServer(cluster_, storage);
      if (server == nullptr)
        return absl::InternalError("a table lies on no memory server");  // was looked for
      NAM_RETURN_IF_ERROR(copies_.Pin(*server, {allocations.begin(), allocations.end()}));
    }
    NAM_RETURN_IF_ERROR(SaveRecordTables());
    return quiet.End();
  }

  absl::Status Describe() {
    NAM_ASSIGN_OR_RETURN(cluster_, attachment_.catalog().GetCluster());
    manifest_.made = TimeText(WallTimeUs(attachment_.fabric().clock()));
    manifest_.program = options_.program;
    manifest_.store = cluster_.store();
    manifest_.fabric = cluster_.fabric();
    manifest_.cluster = cluster_.name();
    manifest_.schema = catalog::kStoreSchemaVersion;
    std::map<uint32_t, uint64_t> servers;  // by storage id
    for (const proto::Member& member : cluster_.members()) {
      if (!member.alive() || member.suspect() || member.role() != proto::ROLE_MEMORY) continue;
      NAM_ASSIGN_OR_RETURN(const proto::ListRegionsReply usage,
                           attachment_.MemoryUsage(catalog::MemberServerId(member)));
      servers[catalog::StorageOf(member)] = usage.memory_bytes();
    }
    for (const auto& [storage, bytes] : servers) manifest_.memory_servers.push_back({storage, bytes});
    return absl::OkStatus();
  }

  /// Saves the catalog's entries, without record tables, which get other memory when they are restored.
  absl::Status SaveCatalog() {
    NAM_ASSIGN_OR_RETURN(const auto file, session::RecordFileWriter::Create(directory_.PathOf(kCatalogName)));
    NAM_RETURN_IF_ERROR(
        file->Add(RecordSection::kHead, absl::StrCat(cluster_.store(), " ", cluster_.name())));
    NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> listed, attachment_.catalog().ListEntries());
    for (const proto::Table& entry : listed) {
      if (entry.has_record() || IsSystemName(entry.name())) continue;
      NAM_ASSIGN_OR_RETURN(const auto table, attachment_.catalog().GetTable(entry.name()));
      NAM_RETURN_IF_ERROR(NoteMemory(*table));
      NAM_RETURN_IF_ERROR(file->Add(RecordSection::kTable, table->SerializeAsString()));
    }
    NAM_RETURN_IF_ERROR(file->Finish());
    manifest_.files.push_back({kCatalogName, file->bytes(), file->checksum()});
    return absl::OkStatus();
  }

  absl::Status NoteMemory(const proto::Table& table) {
    const EntryKind kind = table.schema()     ? EntryKind::kSchema
                           : table.has_view() ? EntryKind::kView
                                              : EntryKind::kColumnar;
    manifest_.entries.push_back({kind, table.rows(), table.name()});
    if (const auto missing = catalog::MissingServersOf(table, cluster_); !missing.empty())
      return LostTable(table.name(), missing[0].lost, "load it again, or drop it");
    for (uint32_t g = 0; g < catalog::GroupCount(table); ++g) {
      const proto::ChainGroup group = catalog::DescribeGroup(table, g);
      std::set<uint32_t> servers = catalog::GroupServers(table, g);
      for (const proto::ServerUsage& usage : group.usage()) {
        if (usage.blocks() != 0 || usage.bytes() != 0) servers.insert(usage.server());
      }
      for (const uint32_t server : servers) allocations_[server].insert(AllocationId(group.allocation()));
    }
    return absl::OkStatus();
  }

  absl::Status SaveRecordTables() {
    const std::unique_ptr<session::RecordAccess> engine = session::MakeRecordEngine(attachment_);
    session::SaveOptions options{.allow_later_commits = true};
    if (options_.progress) {
      options.progress = [this](uint64_t, uint64_t bytes) {
        options_.progress("saving record tables", bytes, 0);
      };
    }
    NAM_ASSIGN_OR_RETURN(
        const session::SavedRecords saved,
        session::SaveRecords(attachment_, *engine, directory_.PathOf(kRecordsName), options));
    if (!saved.lost.empty()) return LostTable(saved.lost[0], "", "drop it");
    if (saved.tables.empty()) return absl::OkStatus();
    for (const session::SavedTable& table : saved.tables)
      manifest_.entries.push_back({EntryKind::kRecord, table.rows, table.name});
    manifest_.files.push_back({kRecordsName, saved.bytes, saved.checksum});
    return absl::OkStatus();
  }

  catalog::Attachment& attachment_;
  const BackupOptions& options_;
  FreshDirectory& directory_;
  proto::Cluster cluster_;
  Manifest manifest_;
  std::map<uint32_t, std::set<AllocationId>> allocations_;  // columnar tables' allocations by storage id
  SealedCopies copies_;
};

}  // namespace

absl::StatusOr<Manifest> WriteBackup(catalog::Attachment& attachment, const BackupOptions& options) {
  NAM_ASSIGN_OR_RETURN(FreshDirectory directory,
                       FreshDirectory::Make(options.directory, {kCatalogName, kRecordsName, kManifestName}));
  NAM_ASSIGN_OR_RETURN(Manifest manifest, Backup(attachment, options, directory).Run());
  NAM_RETURN_IF_ERROR(directory.Keep());
  return manifest;
}

}  // namespace nam::backup
