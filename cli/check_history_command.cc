#include "cli/check_history_command.h"

#include <algorithm>
#include <memory>
#include <ostream>

#include "terminal/exit_codes.h"
#include "terminal/units.h"
#include "txn/check/history_checker.h"

namespace nam::cli {
namespace {

void Print(const char* name, const txn::CheckReport& report, std::ostream& out) {
  out << name << ": " << (report.ok() ? "no anomaly" : "NOT SNAPSHOT ISOLATION") << " of "
      << FormatCount(report.transactions) << " transactions, " << FormatCount(report.operations)
      << " operations\n";
  if (!report.ok()) out << report.ToString() << "\n";
}

}  // namespace

int RunCheckHistory(const CheckHistoryOptions& options, std::ostream& out, std::ostream& err) {
  std::vector<std::unique_ptr<txn::SessionHistory>> histories;
  txn::CheckOptions check;
  for (const std::string& path : options.files) {
    absl::StatusOr<std::unique_ptr<txn::SessionHistory>> history = txn::SessionHistory::Load(path);
    if (!history.ok()) {
      err << "nam: " << std::string(history.status().message()) << "\n";
      return absl::IsDataLoss(history.status()) ? kExitCheckFailed : kExitUsage;
    }
    check.loaded_until = std::max(check.loaded_until, (*history)->loaded_until());
    histories.push_back(*std::move(history));
  }
  std::vector<const txn::SessionHistory*> sessions;
  for (const auto& history : histories) sessions.push_back(history.get());
  const txn::CheckReport timestamps = txn::CheckTimestamps(sessions, check);
  const txn::CheckReport dependencies = txn::CheckDependencies(sessions, check);
  Print("by timestamps", timestamps, out);
  Print("by dependencies", dependencies, out);
  out.flush();
  if (!out) {
    err << "nam: cannot write the result\n";
    return kExitFailed;
  }
  return timestamps.ok() && dependencies.ok() ? kExitOk : kExitCheckFailed;
}

}  // namespace nam::cli
