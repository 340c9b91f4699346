#include "cli/lost_record_tables.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/system_names.h"

namespace nam::cli {

absl::StatusOr<std::vector<std::string>> FindLostRecordTables(catalog::Client& catalog) {
  const auto state = catalog.GetTable(kTransactionsTable);
  if (absl::IsNotFound(state.status())) {
    return absl::NotFoundError("there is no transaction state: nothing is to be reset");
  }
  if (!state.ok()) return state.status();
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, catalog.GetCluster());
  for (const proto::Member& member : cluster.members()) {
    if (!member.alive() || member.role() != proto::ROLE_MEMORY) continue;
    for (const proto::ServerUsage& usage : (*state)->usage()) {
      if (usage.server() != member.id()) continue;
      return absl::FailedPreconditionError(absl::StrCat("the state of transactions lies on memory server ",
                                                        member.id(),
                                                        ", which is alive; nothing is to be reset"));
    }
  }
  NAM_ASSIGN_OR_RETURN(const std::vector<proto::Table> tables, catalog.ListTables());
  std::vector<std::string> lost;
  for (const proto::Table& table : tables) {
    if (table.has_record() && table.name() != kTransactionsTable) lost.push_back(table.name());
  }
  return lost;
}

absl::Status DropLostRecordTables(catalog::Client& catalog) {
  return catalog.DropTable(kTransactionsTable);
}

}  // namespace nam::cli
