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

/// What `nam bench fabric`, `prefetch` and `multicast` have in common.
namespace nam::bench {

/// The common options, understood.
struct TestbedPlan {
  TestbedOptions testbed;
  OutputFormat format = OutputFormat::kTable;
  int repeat = 1;
  int64_t round_ns = 0;
  std::optional<Json> older;
  std::string html;
};
/// INVALID_ARGUMENT or NOT_FOUND for what cannot be. `command`: `bench fabric`.
absl::StatusOr<TestbedPlan> MakeTestbedPlan(const std::string& command, const TestbedCommandOptions& options);
Json TestbedConfig(const TestbedPlan& plan);

/// What the measurement gives to the report.
struct TestbedReport {
  Json config;  // beside that of the testbed
  Json rows;
  Json summary;
  ComparedFigures compared;
  std::string remarks;  // lines below the table
  std::optional<PlottedColumns> plot;
};
using Proceed = std::function<bool(const std::string& doing)>;

/// Opens the testbed, measures, prints; the exit code. Progress is shown on a terminal; Ctrl-C ends it
/// between two rounds.
int RunTestbedCommand(const std::string& command, const TestbedPlan& plan,
                      const std::function<absl::StatusOr<TestbedReport>(Testbed&, const Proceed&)>& measure);

/// Says what is wrong with the options; the exit code.
int RefuseOptions(const absl::Status& status);

}  // namespace nam::bench
