#include "session/missing_server_errors.h"

#include <string>

#include "absl/strings/str_format.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

std::string Blocks(const MissingServerOfTable& missing) {
  return absl::StrFormat("%d block%s", missing.server.blocks, missing.server.blocks == 1 ? "" : "s");
}

}  // namespace

std::optional<MissingServerOfTable> FindMissingServer(
    const std::vector<std::shared_ptr<const proto::Table>>& tables, const proto::Cluster& cluster) {
  std::optional<MissingServerOfTable> suspect;
  for (const std::shared_ptr<const proto::Table>& table : tables) {
    for (catalog::MissingServer& server : catalog::MissingServersOf(*table, cluster)) {
      MissingServerOfTable missing{table->name(), table->has_record(), std::move(server)};
      if (missing.server.buried()) return missing;
      if (!suspect.has_value()) suspect = std::move(missing);
    }
  }
  return suspect;
}

absl::Status MissingServerError(const MissingServerOfTable& missing, const proto::Cluster& cluster) {
  const proto::Member& member = missing.server.member;
  if (!missing.server.lost.empty()) {
    return ToStatus(
        {.message = absl::StrFormat("table %s has lost %s (%d bytes) of storage %d: %s", missing.table,
                                    Blocks(missing), missing.server.bytes, missing.server.server,
                                    missing.server.lost),
         .hint = absl::StrFormat("put a whole copy of the file into `%s` on host %s and start memory server "
                                 "%d again, or load the table again",
                                 member.data_directory(), member.host(), member.id()),
         .sqlstate = sqlstate::kDataCorrupted});
  }
  if (const std::string directory = missing.server.directory(); !directory.empty()) {
    return ToStatus(
        {.message = absl::StrFormat("storage %d, in which table %s has %s (%d bytes), is missing: no "
                                    "memory server runs on its data directory `%s` of host %s",
                                    missing.server.server, missing.table, Blocks(missing),
                                    missing.server.bytes, directory, member.host()),
         .hint = absl::StrFormat("start one there: nam memserver --data-dir=%s", directory),
         .sqlstate = sqlstate::kCannotConnectNow});
  }
  if (missing.server.buried()) {
    return ToStatus(
        {.message = absl::StrFormat("table %s has lost %s (%d bytes) with memory server %d, which is gone",
                                    missing.table, Blocks(missing), missing.server.bytes, member.id()),
         .hint = missing.record ? "drop it, and create it again" : "load it again, or drop it",
         .sqlstate = sqlstate::kDataCorrupted});
  }
  return ToStatus(
      {.message = absl::StrFormat("memory server %d (%s) is silent for %.1f s; table %s has %s there",
                                  member.id(), member.control_address(), member.silent_ms() / 1e3,
                                  missing.table, Blocks(missing)),
       .hint = absl::StrFormat(
           "it may come back: run the statement again; it is given up after %.0f s of silence, or "
           "by `nam bury %d`",
           (cluster.lease_ms() + cluster.bury_after_ms()) / 1e3, member.id()),
       .sqlstate = sqlstate::kCannotConnectNow});
}

}  // namespace nam::session
