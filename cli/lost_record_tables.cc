#include "cli/lost_record_tables.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/system_names.h"

namespace nam::cli {

namespace {

/// A living memory server with memory of the table; 0 if there is none.
uint32_t LivingServerOf(const proto::Table& table, const proto::Cluster& cluster) {
  for (const proto::Member& member : cluster.members()) {
    if (!member.alive() || member.role() != proto::ROLE_MEMORY) continue;
    for (const proto::ServerUsage& usage : table.usage()) {
      if (usage.server() == member.id()) return member.id();
    }
  }
  return 0;
}

/// Before the first transaction there is no state, and record tables have no rows.
absl::StatusOr<std::vector<std::string>> FindLostWithoutState(const std::vector<proto::Table>& tables,
                                                              const proto::Cluster& cluster) {
  std::vector<std::string> lost;
  for (const proto::Table& table : tables) {
    if (table.has_record() && table.usage_size() > 0 && LivingServerOf(table, cluster) == 0)
      lost.push_back(table.name());
  }
  if (lost.empty()) return absl::NotFoundError("there is no transaction state: nothing is to be reset");
  return lost;
}

/// In an order in which no table has a child any more: each pass drops those that have none.
absl::Status DropEach(catalog::Client& catalog, std::vector<std::string> names) {
  while (!names.empty()) {
    absl::Status refused;
    const size_t dropped = std::erase_if(names, [&](const std::string& name) {
      const absl::Status status = catalog.DropTable(name);
      if (!status.ok() && !absl::IsNotFound(status)) refused = status;
      return status.ok() || absl::IsNotFound(status);
    });
    if (dropped == 0) return refused;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindLostRecordTables(catalog::Client& catalog) {
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, catalog.GetCluster());
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> tables, catalog.ListTables());
  const auto state = catalog.GetTable(kTransactionsTable);
  if (absl::IsNotFound(state.status())) return FindLostWithoutState(tables, cluster);
  if (!state.ok()) return state.status();
  if (const uint32_t server = LivingServerOf(**state, cluster); server != 0) {
    return absl::FailedPreconditionError(absl::StrCat("the state of transactions lies on memory server ",
                                                      server, ", which is alive; nothing is to be reset"));
  }
  std::vector<std::string> lost;
  for (const proto::Table& table : tables) {
    if (table.has_record() && table.name() != kTransactionsTable) lost.push_back(table.name());
  }
  return lost;
}

absl::Status DropLostRecordTables(catalog::Client& catalog, const std::vector<std::string>& tables) {
  const absl::Status dropped = catalog.DropTable(kTransactionsTable);
  return absl::IsNotFound(dropped) ? DropEach(catalog, tables) : dropped;
}

}  // namespace nam::cli
