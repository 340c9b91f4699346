#include "cli/kept_records.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "cli/lost_record_tables.h"
#include "localcluster/data_layout.h"
#include "session/record_engine.h"
#include "session/saved_records.h"

namespace nam::cli {
namespace {

constexpr int kSavesMax = 3;

/// Survives a power failure afterwards.
absl::Status RemoveDurably(const std::string& path, const std::string& folder) {
  const UniqueFd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (unlink(path.c_str()) == 0 && directory.valid() && fsync(directory.get()) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot remove `", path, "`: ", std::strerror(errno)));
}

absl::StatusOr<std::vector<std::string>> GiveUpLost(catalog::Client& catalog) {
  absl::StatusOr<std::vector<std::string>> lost = FindLostRecordTables(catalog);
  if (absl::IsNotFound(lost.status())) return std::vector<std::string>();
  NAM_RETURN_IF_ERROR(lost.status());
  // A view may need one of them: then they stay, and are shown as lost.
  const absl::Status dropped = DropLostRecordTables(catalog, *lost);
  if (!dropped.ok() && !absl::IsFailedPrecondition(dropped)) return dropped;
  return lost;
}

/// Saves again if a restarted catalog has let other clients in meanwhile.
absl::StatusOr<session::SavedRecords> SaveBehindAll(catalog::Attachment& attachment,
                                                    session::RecordAccess& engine, session::SoleClient& sole,
                                                    const std::string& path) {
  absl::Status confirmed;
  for (int i = 0; i < kSavesMax; ++i) {
    NAM_ASSIGN_OR_RETURN(session::SavedRecords saved, session::SaveRecords(attachment, engine, path));
    confirmed = sole.Confirm();
    if (confirmed.ok()) return saved;
    if (!absl::IsAborted(confirmed)) break;
  }
  return confirmed;
}

}  // namespace

absl::StatusOr<FormerRecords> BringBackRecords(const catalog::ClientOptions& catalog,
                                               const std::string& data_directory) {
  NAM_ASSIGN_OR_RETURN(const auto attachment, catalog::Attachment::Attach({.catalog = catalog}));
  NAM_ASSIGN_OR_RETURN(std::vector<std::string> lost, GiveUpLost(attachment->catalog()));
  FormerRecords said;
  const std::string path = SavedRecordsIn(data_directory);
  const std::unique_ptr<session::RecordAccess> engine = session::MakeRecordEngine(*attachment);
  const absl::StatusOr<session::SavedRecords> loaded = session::LoadRecords(*attachment, *engine, path);
  const bool damaged = absl::IsDataLoss(loaded.status());
  const bool refused = damaged || absl::IsFailedPrecondition(loaded.status());
  if (refused) {
    NAM_RETURN_IF_ERROR(session::MarkSaved(attachment->catalog(), 0));  // the cluster runs without them
    const std::string kept = path + (damaged ? ".damaged" : ".refused");
    if (rename(path.c_str(), kept.c_str()) != 0) return loaded.status();
    said.lost.push_back(
        absl::StrCat(std::string(loaded.status().message()), "; it is kept as `", kept, "`."));
  } else if (absl::IsNotFound(loaded.status())) {
    NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment->catalog().GetCluster());
    if (cluster.saved_records() != 0) {
      NAM_RETURN_IF_ERROR(session::MarkSaved(attachment->catalog(), 0));
      said.lost.push_back(absl::StrCat("`", path, "`, where record tables were saved, is not there."));
    }
  } else {
    NAM_RETURN_IF_ERROR(loaded.status());
    NAM_RETURN_IF_ERROR(RemoveDurably(path, data_directory));
    said.there_again = absl::StrFormat("Record tables that are there again, with %d rows: %s.", loaded->rows,
                                       loaded->TableNames());
    std::erase_if(lost, [&](const std::string& table) {
      return std::ranges::find(loaded->tables, table, &session::SavedTable::name) != loaded->tables.end();
    });
  }
  if (!lost.empty()) {
    said.lost.push_back(
        absl::StrCat("These record tables were in memory alone, and are lost with the cluster that ran "
                     "before: ",
                     absl::StrJoin(lost, ", "), "."));
  }
  return said;
}

absl::StatusOr<KeptRecords> KeepRecords(const catalog::ClientOptions& catalog,
                                        const std::string& data_directory) {
  KeptRecords kept;
  NAM_ASSIGN_OR_RETURN(kept.attachment, catalog::Attachment::Attach({.catalog = catalog}));
  NAM_ASSIGN_OR_RETURN(session::SoleClient sole, session::SoleClient::Begin(*kept.attachment));
  kept.sole.emplace(std::move(sole));
  const std::unique_ptr<session::RecordAccess> engine = session::MakeRecordEngine(*kept.attachment);
  NAM_ASSIGN_OR_RETURN(const session::SavedRecords saved,
                       SaveBehindAll(*kept.attachment, *engine, *kept.sole, SavedRecordsIn(data_directory)));
  kept.end = {.saved_records = saved.number, .closed_by = kept.attachment->member().value()};
  if (!saved.tables.empty()) {
    kept.said.push_back(
        absl::StrFormat("Saved %d rows of the record tables %s.", saved.rows, saved.TableNames()));
  }
  if (!saved.lost.empty()) {
    kept.said.push_back(absl::StrCat(
        "These record tables have lost memory, and cannot be saved: ", absl::StrJoin(saved.lost, ", "), "."));
  }
  return kept;
}

absl::Status MarkKept(const catalog::ClientOptions& catalog, const std::string& data_directory,
                      const EndRequest& request) {
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<catalog::Client> client, catalog::Client::Connect(catalog));
  const absl::Status marked = session::MarkSaved(*client, request.saved_records, MemberId(request.closed_by));
  // Its answer may be lost, and the cluster goes on: then the file must not be found.
  if (!marked.ok() && request.saved_records != 0)
    RemoveDurably(SavedRecordsIn(data_directory), data_directory).IgnoreError();
  return marked;
}

}  // namespace nam::cli
