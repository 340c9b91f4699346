#include "cli/sim_command.h"

#include <cmath>
#include <cstdio>
#include <iostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/interrupts.h"
#include "fabric/sim/nic_model.h"
#include "localcluster/connect.h"
#include "simulation/run.h"
#include "terminal/exit_codes.h"
#include "terminal/json_report.h"
#include "terminal/progress_line.h"
#include "terminal/table_printer.h"
#include "terminal/units.h"

namespace nam::cli {
namespace {

using simulation::RunResult;

constexpr int kSeedsMax = 10'000'000;

struct Totals {
  uint64_t right = 0, clean_errors = 0, faults = 0, loads = 0, statements = 0, failed_seeds = 0;
  double virtual_ms = 0;
};

uint64_t FaultsOf(const RunResult& result) {
  uint64_t count = 0;
  for (const auto& [kind, times] : result.faults) count += static_cast<uint64_t>(times);
  return count;
}

void AddTo(Totals& totals, const RunResult& result) {
  totals.statements += static_cast<uint64_t>(result.statements);
  totals.right += static_cast<uint64_t>(result.right);
  totals.clean_errors += static_cast<uint64_t>(result.clean_errors);
  totals.loads += static_cast<uint64_t>(result.loads);
  totals.faults += FaultsOf(result);
  totals.virtual_ms += result.virtual_ms;
  totals.failed_seeds += result.failures.empty() ? 0 : 1;
}

std::string HashText(const RunResult& result) {
  return absl::StrFormat("%016x", result.trace_hash);
}

session::ResultSet RunsReport(const std::vector<RunResult>& results) {
  session::ResultSet report;
  report.columns = {
      {"seed", Type::Integer()},      {"workload", Type::String()},     {"statements", Type::Integer()},
      {"right", Type::Integer()},     {"aborts", Type::Integer()},      {"clean_errors", Type::Integer()},
      {"faults", Type::Integer()},    {"virtual_ms", Type::Decimal(3)}, {"trace_events", Type::Integer()},
      {"trace_hash", Type::String()}, {"check", Type::String()}};
  for (const RunResult& result : results) {
    report.rows.push_back(
        {Value::Integer(static_cast<__int128>(result.seed)), Value::String(result.workload),
         Value::Integer(result.statements), Value::Integer(result.right), Value::Integer(result.aborts),
         Value::Integer(result.clean_errors), Value::Integer(static_cast<__int128>(FaultsOf(result))),
         Value::Decimal(std::llround(result.virtual_ms * 1000), 3),
         Value::Integer(static_cast<__int128>(result.trace_events)), Value::String(HashText(result)),
         Value::String(result.failures.empty() ? "ok" : "FAILED")});
  }
  return report;
}

std::string ReportJson(const SimOptions& options, const std::vector<RunResult>& results,
                       const Totals& totals) {
  JsonReport report{.command = "sim"};
  report.config = {
      {"seed", options.seed},         {"seeds", options.seeds},   {"generation", options.generation},
      {"workload", options.workload}, {"faults", options.faults}, {"scale_factor", options.scale_factor}};
  for (const RunResult& result : results) {
    report.rows.push_back({{"seed", result.seed},
                           {"workload", result.workload},
                           {"in_place", result.in_place},
                           {"statements", result.statements},
                           {"right", result.right},
                           {"aborts", result.aborts},
                           {"clean_errors", result.clean_errors},
                           {"loads", result.loads},
                           {"faults", result.faults},
                           {"errors", result.errors},
                           {"virtual_ms", result.virtual_ms},
                           {"trace_events", result.trace_events},
                           {"trace_hash", HashText(result)},
                           {"failures", result.failures}});
  }
  report.summary = {
      {"seeds", results.size()}, {"failed_seeds", totals.failed_seeds}, {"statements", totals.statements},
      {"right", totals.right},   {"clean_errors", totals.clean_errors}, {"loads", totals.loads},
      {"faults", totals.faults}, {"virtual_ms", totals.virtual_ms}};
  return report.ToString();
}

/// Runs twice, if requested: the same seed must have the same history.
RunResult RunOnce(const simulation::RunOptions& run, const simulation::QueryAnswers& answers, bool verify) {
  RunResult result = simulation::Run(run, answers);
  if (!verify) return result;
  const RunResult again = simulation::Run(run, answers);
  if (again.trace_hash != result.trace_hash) {
    result.failures.push_back(
        absl::StrCat("the same seed had another history: ", HashText(result), " and ", HashText(again)));
  }
  return result;
}

}  // namespace

int RunSim(const SimOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  if (!format.ok()) return Refuse(format.status());
  const auto nic = fabric::sim::NicModel::Parse(options.generation);
  if (!nic.ok()) return Refuse(nic.status());
  const auto workload = simulation::ParseWorkload(options.workload);
  if (!workload.ok()) return Refuse(workload.status());
  const auto faults = simulation::FaultKinds::Parse(options.faults);
  if (!faults.ok()) return Refuse(faults.status());
  if (options.seeds < 1 || options.seeds > kSeedsMax) {
    return Refuse(absl::InvalidArgumentError(absl::StrCat("--seeds is 1 to ", kSeedsMax)));
  }
  if (!options.trace.empty() && (options.seeds != 1 || options.verify)) {
    return Refuse(absl::InvalidArgumentError("--trace is of one run: leave --seeds and --verify out"));
  }
  const auto answers = simulation::MakeAnswers(*workload, options.scale_factor);
  if (!answers.ok()) return Refuse(answers.status());
  Interrupts interrupts;
  ProgressLine progress;
  std::vector<RunResult> results;
  Totals totals;
  for (int i = 0; i < options.seeds && !interrupts.Seen(); ++i) {
    const simulation::RunOptions run{.seed = options.seed + static_cast<uint64_t>(i),
                                     .workload = *workload,
                                     .nic = *nic,
                                     .faults = *faults,
                                     .trace_path = options.trace};
    progress.Show(absl::StrCat("seed ", run.seed, " (", i + 1, " of ", options.seeds, ")"));
    results.push_back(RunOnce(run, *answers, options.verify));
    AddTo(totals, results.back());
    for (const std::string& failure : results.back().failures) {
      progress.Clear();
      std::fprintf(stderr, "seed %llu %s\nagain: %s\n", static_cast<unsigned long long>(run.seed),
                   failure.c_str(), simulation::ReplayCommand(run).c_str());
    }
  }
  progress.Clear();
  if (*format == OutputFormat::kJson) {
    std::cout << ReportJson(options, results, totals);
  } else {
    std::cout << Render(RunsReport(results), {.format = *format, .footer = false});
  }
  if (*format == OutputFormat::kTable) {
    std::cout << absl::StrFormat(
        "%d seeds, %d failed; %d statements: %d right, %d clean errors; %d faults, %d loads, %.1f s of "
        "virtual "
        "time\n",
        results.size(), totals.failed_seeds, totals.statements, totals.right, totals.clean_errors,
        totals.faults, totals.loads, totals.virtual_ms / 1000);
  }
  if (totals.failed_seeds > 0) return kExitCheckFailed;
  return interrupts.Seen() ? kExitInterrupted : kExitOk;
}

}  // namespace nam::cli
