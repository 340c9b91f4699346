#include "session/await_servers.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/status_macros.h"
#include "session/missing_server_errors.h"
#include "sql/bound_query.h"
#include "txn/cluster_tables.h"

namespace nam::session {
namespace {

/// How long a statement waits for a memory server whose lease has ended.
constexpr int64_t kSuspectPatienceUs = 2'000'000;
constexpr int64_t kSuspectPauseUs = 100'000;

/// Transactions need their state, too.
std::optional<MissingServerOfTable> FindMissing(catalog::Attachment& attachment, const CatalogTables& of,
                                                const proto::Cluster& cluster) {
  const bool any =
      std::any_of(cluster.members().begin(), cluster.members().end(), [](const proto::Member& member) {
        return !member.alive() || member.suspect() || !member.lost().empty();
      });
  if (!any) return std::nullopt;
  const std::vector<std::shared_ptr<const proto::Table>>& tables = of.of_statement();
  std::optional<MissingServerOfTable> missing = FindMissingServer(tables, cluster);
  const bool records =
      std::any_of(tables.begin(), tables.end(), [](const auto& table) { return sql::IsRecordTable(*table); });
  if (missing.has_value() || !records) return missing;
  const auto state = attachment.catalog().GetTable(txn::kStateTable);
  if (state.ok()) missing = FindMissingServer({*state}, cluster);
  // The engine handles a buried one.
  return missing.has_value() && missing->server.buried() ? std::nullopt : missing;
}

}  // namespace

absl::Status AwaitServers(catalog::Attachment& attachment, CatalogTables& tables,
                          const std::atomic<bool>& cancel) {
  if (tables.of_statement().empty()) return absl::OkStatus();
  std::optional<Deadline> deadline;
  Clock& clock = attachment.fabric().clock();
  while (true) {
    NAM_ASSIGN_OR_RETURN(const proto::Cluster* cluster, tables.Cluster());
    const auto missing = FindMissing(attachment, tables, *cluster);
    if (!missing.has_value()) return absl::OkStatus();
    if (!deadline.has_value()) deadline = clock.After(kSuspectPatienceUs);
    if (missing->server.buried() || clock.Passed(*deadline)) return MissingServerError(*missing, *cluster);
    if (cancel) return absl::CancelledError("cancelled");
    clock.SleepUntil(clock.After(kSuspectPauseUs));
    tables.Refresh();
  }
}

}  // namespace nam::session
