#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/fabric_command.h"
#include "bench/rate_report.h"
#include "bench/testbed.h"
#include "terminal/json_report.h"
#include "terminal/plot.h"
#include "terminal/table_printer.h"

/// The common parts of `nam bench fabric`, `prefetch` and `multicast`.
namespace nam::bench {

/// The parsed common options.
struct TestbedPlan {
  TestbedOptions testbed;
  OutputFormat format = OutputFormat::kTable;
  int repeat = 1;
  int64_t round_ns = 0;
  std::optional<Json> older;
  std::string html;
};
/// INVALID_ARGUMENT or NOT_FOUND for invalid options. `command`: `bench fabric`.
absl::StatusOr<TestbedPlan> MakeTestbedPlan(const std::string& command, const TestbedCommandOptions& options);
Json TestbedConfig(const TestbedPlan& plan);

/// A measurement's contribution to the report.
struct TestbedReport {
  Json config;  // in addition to the testbed's
  Json rows;
  Json summary;
  ComparedFigures compared;
  std::string remarks;  // lines below the table
  std::optional<PlottedColumns> plot;
};
using Proceed = std::function<bool(const std::string& doing)>;

/// Opens the testbed, measures and prints; returns the exit code. Shows progress on a terminal; Ctrl-C ends
/// it between two rounds.
int RunTestbedCommand(const std::string& command, const TestbedPlan& plan,
                      const std::function<absl::StatusOr<TestbedReport>(Testbed&, const Proceed&)>& measure);

/// Reports the error in the options; returns the exit code.
int RefuseOptions(const absl::Status& status);

}  // namespace nam::bench
