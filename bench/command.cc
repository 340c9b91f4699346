#include "bench/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "localcluster/cluster_work.h"
#include "localcluster/state_directory.h"
#include "terminal/exit_codes.h"
#include "terminal/plot.h"
#include "terminal/table_printer.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

/// `shm, tcp or sim`.
std::string Listed(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    absl::StrAppend(&text, i == 0 ? "" : i + 1 < words.size() ? ", " : " or ", words[i]);
  return text;
}

std::string Shown(double number, bool size) {
  return size ? FormatBytes(static_cast<uint64_t>(number)) : absl::StrFormat("%.15g", number);
}

absl::Status CheckNumber(const Option& option, double number, bool size) {
  if (!option.range.has_value() || (number >= option.range->least && number <= option.range->most))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option.name, " is ", Shown(option.range->least, size),
                                                 " to ", Shown(option.range->most, size), ", not ",
                                                 Shown(number, size)));
}

absl::Status CheckWord(const Option& option, const std::string& word) {
  const std::vector<std::string>& words = option.words;
  if (words.empty() || std::find(words.begin(), words.end(), word) != words.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option.name, " is ", Listed(words), ", not ", word));
}

template <typename T>
absl::Status CheckValue(const Option& option, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return CheckWord(option, value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return CheckNumber(option, static_cast<double>(value), /*size=*/false);
  } else {
    for (const auto& each : value) NAM_RETURN_IF_ERROR(CheckValue(option, each));
    return absl::OkStatus();
  }
}

absl::Status CheckOption(const Option& option) {
  return std::visit(
      [&](const auto& target) {
        if constexpr (std::is_same_v<std::decay_t<decltype(target)>, Option::Bytes>) {
          return CheckNumber(option, static_cast<double>(*target.bytes), /*size=*/true);
        } else {
          return CheckValue(option, *target);
        }
      },
      option.target);
}

/// The host's load average of the last minute; 0 if unknown.
double LoadAverage() {
  double average = 0;
  return getloadavg(&average, 1) == 1 ? Rounded(average) : 0;
}

void WarnOfLoad(double load_average) {
  constexpr double kQuietLoad = 0.5;  // processors in use that hardly affect a benchmark
  if (load_average <= kQuietLoad || isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "nam: other work runs on this machine (load average %.2f): expect noise\n",
               load_average);
}

/// The format of the output.
absl::StatusOr<OutputFormat> CheckAll(Command& command) {
  NAM_RETURN_IF_ERROR(CheckOptions(command.Options()));
  NAM_ASSIGN_OR_RETURN(const OutputFormat format, ParseOutputFormat(command.output().format));
  if (!command.output().html.empty()) NAM_RETURN_IF_ERROR(CheckHtmlPath(command.output().html));
  NAM_RETURN_IF_ERROR(command.Check());
  return format;
}

void PrintTables(const Report& report, OutputFormat format) {
  std::cout << Render(TableOf(WithoutArrays(report.rows)), {.format = format, .footer = false});
  if (format != OutputFormat::kTable) return;
  for (const auto& [name, value] : report.summary.items()) std::cout << name << ": " << value << "\n";
  const Json host = HostJson();
  std::cout << report.remarks
            << absl::StrFormat("host: %d x %s\n", host.value("processors", 0),
                               host.value("processor", "unknown processor"));
}

absl::Status Print(Command& command, OutputFormat format, Report report) {
  if (!command.output().html.empty()) {
    const auto seed = report.config.find("seed");
    NAM_RETURN_IF_ERROR(WritePage(command.output().html,
                                  {.title = absl::StrCat("nam bench ", command.name(), ": ", command.help()),
                                   .text = report.remarks,
                                   .figures = report.charts,
                                   .rows = report.rows,
                                   .seed = seed != report.config.end() ? seed->dump() : ""}));
  }
  if (format == OutputFormat::kJson) {
    std::cout << JsonReport{.command = absl::StrCat("bench ", command.name()),
                            .config = std::move(report.config),
                            .rows = std::move(report.rows),
                            .summary = std::move(report.summary)}
                     .ToString();
  } else {
    PrintTables(report, format);
  }
  std::cout.flush();
  return absl::OkStatus();
}

}  // namespace

absl::Status RunAtOnce(const std::vector<fabric::Fabric*>& fabrics,
                       const std::function<absl::Status(size_t)>& body) {
  std::vector<absl::Status> results(fabrics.size());
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (size_t i = 0; i < fabrics.size(); ++i)
    threads.push_back(fabrics[i]->StartThread("bench-worker", [&, i] { results[i] = body(i); }));
  threads.clear();  // waits for them
  for (const absl::Status& result : results) NAM_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

int ThreadsOf(int wanted, int compute_servers) {
  return std::max(1, (wanted > 0 ? wanted : HostProcessors()) / compute_servers) * compute_servers;
}

absl::Status CheckOptions(const std::vector<Option>& options) {
  for (const Option& option : options) NAM_RETURN_IF_ERROR(CheckOption(option));
  return absl::OkStatus();
}

Json ConfigOf(const std::vector<Option>& options) {
  Json config = Json::object();
  for (const Option& option : options) {
    if (!option.value_name.empty()) continue;
    const std::string key = absl::StrReplaceAll(option.name.substr(2), {{"-", "_"}});
    std::visit(
        [&](const auto& target) {
          if constexpr (std::is_same_v<std::decay_t<decltype(target)>, Option::Bytes>) {
            config[key] = *target.bytes;
          } else {
            config[key] = *target;
          }
        },
        option.target);
  }
  return config;
}

/// The frame's job on the thread of a private cluster's client.
class Run::Work final : public ClusterWork {
 public:
  Work(bench::Run& run, const Job& job, ClusterOptions cluster)
      : run_(run), job_(job), cluster_(std::move(cluster)) {}
  absl::Status Run() override {
    NAM_ASSIGN_OR_RETURN(const auto attachment, AttachToCluster(cluster_));
    return job_(*attachment, cluster_);
  }
  void Cancel() override {
    run_.cancelled_ = true;
    const MutexLock lock(run_.cancel_mutex_);
    if (run_.cancel_) run_.cancel_();
  }

 private:
  bench::Run& run_;
  const Job& job_;
  const ClusterOptions cluster_;
};

Run::~Run() {
  progress_.Clear();
  if (!directory_.empty()) RemoveTree(directory_);
}

bool Run::Proceed(const std::string& doing) {
  if (!doing.empty()) progress_.Show(absl::StrCat("bench ", command_, ": ", doing));
  return !cancelled_ && !stop_.Pending();
}

absl::StatusOr<std::string> Run::Directory() {
  if (!directory_.empty()) return directory_;
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string path = ((error ? std::filesystem::path("/tmp") : parent) / "nam-bench-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) return absl::InternalError(absl::StrCat("cannot create ", path));
  return directory_ = path;
}

void Run::OnCancel(std::function<void()> cancel) {
  const MutexLock lock(cancel_mutex_);
  cancel_ = std::move(cancel);
}

absl::Status Run::InCluster(LocalClusterOptions options, const Job& job) {
  NAM_ASSIGN_OR_RETURN(const std::string directory, Directory());
  options.directory = absl::StrCat(directory, "/cluster-", ++clusters_);
  options.name = "bench";
  if (mkdir(options.directory.c_str(), 0700) != 0)
    return absl::InternalError(absl::StrCat("cannot create ", options.directory));
  NAM_ASSIGN_OR_RETURN(const auto cluster, LocalCluster::Start(options, stop_.fd()));
  Work work(*this, job, {.catalog = cluster->catalog_address(), .secret_file = cluster->secret_file()});
  const absl::Status status = RunClusterWork(*cluster, work, stop_, directory);
  progress_.Clear();
  return status;
}

int RunCommand(Command& command) {
  const absl::StatusOr<OutputFormat> format = CheckAll(command);
  if (!format.ok()) return Refuse(format.status());
  const double load_average = LoadAverage();
  if (!command.simulated()) WarnOfLoad(load_average);
  absl::StatusOr<Report> report = absl::InternalError("not measured");
  {
    Run run(command.name());
    report = command.Measure(run);
  }
  if (!report.ok()) return command.ReportError(report.status());
  Json config = ConfigOf(command.Options());
  config.update(report->config);
  if (!command.simulated()) config["load_average"] = load_average;
  report->config = std::move(config);
  const bool correct = report->correct;
  const absl::Status printed = Print(command, *format, *std::move(report));
  if (!printed.ok()) return ReportFailure(printed);
  return correct ? kExitOk : kExitCheckFailed;
}

}  // namespace nam::bench
