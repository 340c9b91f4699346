#include "cli/reset_transactions.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "cli/confirm.h"
#include "terminal/exit_codes.h"

namespace nam::cli {
namespace {

/// Of the record tables; NOT_FOUND without a transaction state, FAILED_PRECONDITION while it can be read.
absl::StatusOr<std::vector<std::string>> WhatIsLost(catalog::Client& catalog) {
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

}  // namespace

int RunResetTransactions(const ResetTransactionsOptions& options) {
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  catalog::Client& catalog = (*attachment)->catalog();
  const auto lost = WhatIsLost(catalog);
  if (!lost.ok()) return ReportFailure(lost.status());
  std::printf(
      "The memory server with the state of transactions has died: which rows of record tables were "
      "committed, "
      "nobody can tell any more.\nThis drops %s, with all rows, and the state; the next transaction makes it "
      "anew. Analytical tables stay.\n",
      lost->empty() ? "no record table, for there is none"
                    : absl::StrCat("the record tables ", absl::StrJoin(*lost, ", ")).c_str());
  if (const int code = Confirm("Go on?", options.yes); code != kExitOk) return code;
  if (const absl::Status reset = catalog.DropTable(kTransactionsTable); !reset.ok()) {
    return ReportFailure(reset);
  }
  std::printf("Transactions can begin anew.\n");
  return kExitOk;
}

}  // namespace nam::cli
