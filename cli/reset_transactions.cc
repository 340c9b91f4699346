#include "cli/reset_transactions.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/confirm.h"
#include "cli/lost_record_tables.h"
#include "terminal/exit_codes.h"

namespace nam::cli {
int RunResetTransactions(const ResetTransactionsOptions& options) {
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  catalog::Client& catalog = (*attachment)->catalog();
  const auto lost = FindLostRecordTables(catalog);
  if (!lost.ok()) return ReportFailure(lost.status());
  std::printf(
      "The memory server with the state of transactions has died, so it is unknown which rows of record "
      "tables were committed.\nThis drops %s, with all rows, and the state; the next transaction creates a "
      "new one. Analytical tables stay.\n",
      lost->empty() ? "no record table, for there is none"
                    : absl::StrCat("the record tables ", absl::StrJoin(*lost, ", ")).c_str());
  if (const int code = Confirm("Go on?", options.yes); code != kExitOk) return code;
  if (const absl::Status reset = DropLostRecordTables(catalog, *lost); !reset.ok()) {
    return ReportFailure(reset);
  }
  std::printf("Transactions can begin anew.\n");
  return kExitOk;
}

}  // namespace nam::cli
