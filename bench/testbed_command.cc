#include "bench/testbed_command.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "localcluster/connect.h"
#include "localcluster/state_directory.h"
#include "localcluster/stop_signals.h"
#include "terminal/exit_codes.h"
#include "terminal/progress_line.h"

namespace nam::bench {
namespace {

constexpr int kRepeatMax = 10'000;
constexpr int kRoundMsMax = 60'000;
constexpr int kRoundMs = 4;           // less than a time slice, so that most rounds are undisturbed
constexpr int kSimulatedRoundMs = 1;  // virtual time

/// A directory for the server process's log, in $TMPDIR or /tmp.
absl::StatusOr<std::string> MakeDirectory() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string path = ((error ? std::filesystem::path("/tmp") : parent) / "nam-bench-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) return absl::InternalError(absl::StrCat("cannot create ", path));
  return path;
}

void Print(const std::string& command, const TestbedPlan& plan, TestbedReport& report) {
  if (plan.older) AddNewOverOld(*plan.older, report.compared, report.rows);
  Json config = TestbedConfig(plan);
  config.update(report.config);
  if (plan.format == OutputFormat::kJson) {
    std::cout << JsonReport{.command = command,
                            .config = std::move(config),
                            .rows = std::move(report.rows),
                            .summary = std::move(report.summary)}
                     .ToString();
    return;
  }
  std::cout << Render(TableOf(report.rows), {.format = plan.format, .footer = false});
  if (plan.format != OutputFormat::kTable) return;
  for (const auto& [key, value] : report.summary.items())
    std::cout << absl::StrFormat("%s: %s\n", key, value.dump());
  const Json host = HostJson();
  std::cout << report.remarks
            << absl::StrFormat("host: %d x %s\n", host.value("processors", 0),
                               host.value("processor", "unknown processor"));
}

absl::Status WritePlot(const std::string& command, const TestbedPlan& plan, const TestbedReport& report) {
  std::string fabric(fabric::KindName(plan.testbed.kind));
  if (plan.testbed.encrypt) absl::StrAppend(&fabric, ", encrypted");
  if (plan.testbed.kind == fabric::Kind::kSim) absl::StrAppend(&fabric, ", ", plan.testbed.generation);
  PlotPage page{
      .title = absl::StrCat("nam ", command, " over ", fabric), .text = report.remarks, .rows = report.rows};
  if (report.plot.has_value()) page.figures.push_back(SvgOf(PlotRows(report.rows, *report.plot)));
  return WritePage(plan.html, page);
}

int RunIn(const std::string& directory, const std::string& command, TestbedPlan plan,
          const std::function<absl::StatusOr<TestbedReport>(Testbed&, const Proceed&)>& measure) {
  StopSignals stop;
  plan.testbed.log_file = directory + "/server.log";
  ProgressLine progress;
  const Proceed proceed = [&](const std::string& doing) {
    if (!doing.empty()) progress.Show(absl::StrCat(command, ": ", doing));
    return !stop.Pending();
  };
  absl::StatusOr<TestbedReport> report = absl::InternalError("not measured");
  {
    const auto testbed = Testbed::Open(plan.testbed);
    report = testbed.ok() ? measure(**testbed, proceed) : testbed.status();
  }
  progress.Clear();
  if (!report.ok()) return ReportFailure(report.status());
  if (!plan.html.empty()) {
    if (const absl::Status written = WritePlot(command, plan, *report); !written.ok())
      return ReportFailure(written);
  }
  Print(command, plan, *report);
  std::cout.flush();
  return kExitOk;
}

}  // namespace

absl::StatusOr<TestbedPlan> MakeTestbedPlan(const std::string& command,
                                            const TestbedCommandOptions& options) {
  if (options.repeat < 1 || options.repeat > kRepeatMax)
    return absl::InvalidArgumentError(absl::StrCat("--repeat is 1 to ", kRepeatMax));
  if (options.round_ms < 0 || options.round_ms > kRoundMsMax)
    return absl::InvalidArgumentError(absl::StrCat("--round-ms is 0 to ", kRoundMsMax));
  TestbedPlan plan;
  NAM_ASSIGN_OR_RETURN(plan.format, ParseOutputFormat(options.format));
  const bool simulated = options.fabric == fabric::KindName(fabric::Kind::kSim);
  plan.testbed.kind = fabric::Kind::kSim;  // not a cluster's fabric, so it is not parsed
  if (!simulated) {
    NAM_ASSIGN_OR_RETURN(plan.testbed.kind, fabric::ParseKind(options.fabric));
  }
  plan.testbed.generation = options.generation;
  plan.testbed.rdma = options.rdma;
  plan.testbed.server_rdma = options.server_rdma;
  plan.testbed.server_host = options.server_host;
  plan.testbed.encrypt = options.encrypt;
  if (options.encrypt && plan.testbed.kind != fabric::Kind::kTcp) {
    return absl::InvalidArgumentError("--encrypt is for --fabric=tcp");
  }
  NAM_RETURN_IF_ERROR(Testbed::Check(plan.testbed));
  plan.repeat = simulated ? 1 : options.repeat;
  const int round_ms = options.round_ms != 0 ? options.round_ms : simulated ? kSimulatedRoundMs : kRoundMs;
  plan.round_ns = int64_t{round_ms} * 1'000'000;
  plan.html = options.html;
  if (!options.compare.empty()) {
    NAM_ASSIGN_OR_RETURN(plan.older, ReadReport(options.compare, command));
  }
  return plan;
}

Json TestbedConfig(const TestbedPlan& plan) {
  Json config{{"fabric", std::string(fabric::KindName(plan.testbed.kind))}};
  if (plan.testbed.encrypt) config["encrypt"] = true;
  if (plan.testbed.kind == fabric::Kind::kSim) config["generation"] = plan.testbed.generation;
  config["repeat"] = plan.repeat;
  config["round_ms"] = plan.round_ns / 1'000'000;
  double average = 0;
  config["load_average"] = getloadavg(&average, 1) == 1 ? Rounded(average) : 0;
  return config;
}

int RunTestbedCommand(const std::string& command, const TestbedPlan& plan,
                      const std::function<absl::StatusOr<TestbedReport>(Testbed&, const Proceed&)>& measure) {
  const auto directory = MakeDirectory();
  if (!directory.ok()) return ReportFailure(directory.status());
  const int code = RunIn(*directory, command, plan, measure);
  RemoveTree(*directory);
  return code;
}

int RefuseOptions(const absl::Status& status) {
  ReportFailure(status);
  return kExitUsage;
}

}  // namespace nam::bench
