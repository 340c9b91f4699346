#include "cli/lost_server_commands.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "catalog/server_ids.h"
#include "cli/lost_record_tables.h"
#include "terminal/exit_codes.h"
#include "terminal/units.h"

namespace nam::cli {
namespace {

/// Asks on the terminal before an irreversible action, unless the user has said `yes` before. kExitOk: go on;
/// kExitFailed after a no; kExitUsage without a terminal.
int Confirm(const std::string& question, bool yes) {
  if (yes) return kExitOk;
  if (isatty(STDIN_FILENO) == 0)
    return Refuse(absl::InvalidArgumentError("cannot ask: standard input is not a terminal; use --yes"));
  std::printf("%s [y/N] ", question.c_str());
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return kExitOk;
  std::printf("Nothing was changed.\n");
  return kExitFailed;
}

const proto::Member* FindMemoryServer(const proto::Cluster& cluster, uint32_t id) {
  for (const proto::Member& member : cluster.members()) {
    if (member.id() == id && member.role() == proto::ROLE_MEMORY) return &member;
  }
  return nullptr;
}

void SayWhatIsLost(const proto::Member& server, const std::vector<proto::Table>& tables) {
  std::printf(
      "Memory server %u (%s) has been silent for %.1f s. What it holds is lost when it is buried, even "
      "if it comes back:\n",
      server.id(), server.control_address().c_str(), server.silent_ms() / 1e3);
  bool any = false;
  for (const proto::Table& table : tables) {
    for (const proto::ServerUsage& usage : table.usage()) {
      if (!catalog::GoesBy(server, usage.server())) continue;
      std::printf("  %s: %llu blocks, %s\n", table.name().c_str(),
                  static_cast<unsigned long long>(usage.blocks()), FormatBytes(usage.bytes()).c_str());
      any = true;
    }
  }
  if (!any) std::printf("  no table has blocks there\n");
  if (!server.data_directory().empty()) {
    std::printf(
        "Columnar tables are there again with a memory server on its data directory `%s` of host %s.\n",
        server.data_directory().c_str(), server.host().c_str());
  }
  std::fflush(stdout);
}

}  // namespace

int RunBury(const BuryOptions& options) {
  const auto address = FindCluster(options.cluster);
  if (!address.ok()) return ReportNoConnection(address.status());
  const auto client =
      OnceCatalogRuns(*address, [&] { return catalog::Client::Connect(address->client_options()); });
  if (!client.ok()) return ReportNoConnection(client.status());
  const auto cluster = (*client)->GetCluster();
  if (!cluster.ok()) return ReportNoConnection(cluster.status());
  const auto tables = (*client)->ListTables();
  if (!tables.ok()) return ReportNoConnection(tables.status());
  const proto::Member* const server = FindMemoryServer(*cluster, options.server);
  if (server == nullptr) {
    return ReportFailure(absl::NotFoundError(
        absl::StrFormat("there is no memory server %d; `nam status` lists them", options.server)));
  }
  if (server->alive() && server->suspect()) {
    SayWhatIsLost(*server, *tables);
    if (const int code = Confirm("Bury it?", options.yes); code != kExitOk) return code;
  }
  const absl::Status buried = (*client)->Bury(MemoryServerId(static_cast<uint16_t>(options.server)));
  if (!buried.ok()) return ReportFailure(buried);
  std::printf(
      "Memory server %u is buried. Columnar tables that have lost blocks are to be loaded again or dropped, "
      "record tables to be dropped.\n",
      options.server);
  return kExitOk;
}

int RunResetTransactions(const ResetTransactionsOptions& options) {
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  catalog::Client& catalog = (*attachment)->catalog();
  const auto lost = FindLostRecordTables(catalog);
  if (!lost.ok()) return ReportFailure(lost.status());
  std::printf(
      "The memory server with the state of transactions has died, so it is unknown which rows of record "
      "tables were committed.\nThis drops the state%s; the next transaction creates a new one. Columnar "
      "tables stay.\n",
      lost->empty()
          ? ", and no table: there is no record table"
          : absl::StrCat(" and, with all rows, the record tables ", absl::StrJoin(*lost, ", ")).c_str());
  if (const int code = Confirm("Go on?", options.yes); code != kExitOk) return code;
  if (const absl::Status reset = DropLostRecordTables(catalog, *lost); !reset.ok()) {
    return ReportFailure(reset);
  }
  std::printf("Transactions can begin anew.\n");
  return kExitOk;
}

}  // namespace nam::cli
