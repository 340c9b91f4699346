#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "bench/report.h"
#include "catalog/attachment.h"
#include "fabric/fabric.h"
#include "localcluster/connect.h"
#include "localcluster/local_cluster.h"
#include "localcluster/stop_signals.h"
#include "terminal/json_report.h"
#include "terminal/progress_line.h"

/// The frame of all commands of `nam bench`. A command describes itself and measures; the frame does the
/// rest:
///
///     options: table ─▶ command line, ranges ─▶ Check ─▶ Measure ─▶ Report ─▶ table, CSV, JSON, HTML
///                                                 │         └─ Run: progress, Ctrl-C, folder, cluster
///                                                 └─ what is left open, and depends on other options
namespace nam::bench {

/// The most of --threads where they run queries.
inline constexpr int kQueryThreadsMax = 1'024;

/// A row of a command's table of options.
struct Option {
  /// A size such as `64KiB`.
  struct Bytes {
    uint64_t* bytes;
  };
  using Target = std::variant<bool*, int*, uint32_t*, uint64_t*, double*, std::string*, Bytes,
                              std::vector<std::string>*, std::vector<uint32_t>*, std::vector<double>*>;
  struct Range {
    double least = 0, most = 0;
  };

  std::string name;  // `--repeat`; the JSON report has it as `repeat` in its config
  Target target;     // outlives the command line; its value is the default
  std::string help;
  std::optional<Range> range = {};      // bounds each number or size
  std::vector<std::string> words = {};  // the only ones, if any
  std::string value_name = {};          // `FILE`; of a place, which is not in the config

  static Option Within(std::string name, Target target, double least, double most, std::string help) {
    return {.name = std::move(name), .target = target, .help = std::move(help), .range = {{least, most}}};
  }
  static Option OneOf(std::string name, Target target, std::vector<std::string> words, std::string help) {
    return {.name = std::move(name), .target = target, .help = std::move(help), .words = std::move(words)};
  }
  static Option Place(std::string name, std::string* target, std::string value_name, std::string help) {
    return {.name = std::move(name),
            .target = target,
            .help = std::move(help),
            .value_name = std::move(value_name)};
  }
};

/// A command's result.
struct Report {
  Json config = Json::object();  // in addition to the options
  Json rows = Json::array();
  Json summary = Json::object();
  std::string remarks;  // lines below the table
  std::vector<std::string> charts = {};
  bool correct = true;  // false: an answer is wrong
};

/// The frame gives a command what it measures with.
class Run {
 public:
  explicit Run(std::string command) : command_(std::move(command)) {}
  ~Run();

  /// Shows what is done, on a terminal. False: interrupted. One thread at a time.
  bool Proceed(const std::string& doing);
  ProgressLine& progress() { return progress_; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  const std::string& command() const { return command_; }
  /// A folder in $TMPDIR or /tmp for gigabytes of files, which is removed at the end.
  absl::StatusOr<std::string> Directory();
  /// A private cluster's work, as a client on a thread of its own.
  using Job = std::function<absl::Status(catalog::Attachment&, const ClusterOptions&)>;
  /// Starts a cluster (its directory and name are filled in), runs the job, and stops the cluster.
  absl::Status InCluster(LocalClusterOptions options, const Job& job);
  /// Sets the function that makes the job return soon. It is called on any thread, once Proceed returns
  /// false. The job resets it before the objects that it refers to are destroyed.
  void OnCancel(std::function<void()> cancel = {});

 private:
  class Work;

  const std::string command_;
  StopSignals stop_;  // before any thread
  ProgressLine progress_;
  std::atomic<bool> cancelled_ = false;
  std::string directory_;
  int clusters_ = 0;  // started so far, each in its own folder
  Mutex cancel_mutex_;
  std::function<void()> cancel_ ABSL_GUARDED_BY(cancel_mutex_);  // empty: nothing to do
};

class Command {
 public:
  /// What the frame does with a report; which of its options a command has, the command says.
  struct Output {
    std::string format = "table";
    std::string html;  // a page with the charts
  };

  Command(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  virtual std::vector<Option> Options() = 0;
  virtual bool has_charts() const { return false; }
  /// True in virtual time, which other load on the host does not disturb.
  virtual bool simulated() const { return false; }
  /// Completes options that were left open. INVALID_ARGUMENT and other errors are the user's.
  virtual absl::Status Check() { return absl::OkStatus(); }
  virtual absl::StatusOr<Report> Measure(Run& run) = 0;
  /// Reports on stderr why it was not measured; returns the exit code.
  virtual int ReportError(const absl::Status& status) const { return ReportFailure(status); }

  const std::string& name() const { return name_; }
  const std::string& help() const { return help_; }
  Output& output() { return output_; }

 private:
  const std::string name_, help_;
  Output output_;
};

/// Checks, measures and prints; returns the exit code. Leaves nothing behind. kExitCheckFailed if an answer
/// was wrong.
int RunCommand(Command& command);

/// Runs `body(i)` on a thread of fabrics[i], all at once. Returns the first error, once all have returned.
absl::Status RunAtOnce(const std::vector<fabric::Fabric*>& fabrics,
                       const std::function<absl::Status(size_t)>& body);
/// The threads of all compute servers together, a multiple of these; `wanted` 0: one per processor.
int ThreadsOf(int wanted, int compute_servers);
/// INVALID_ARGUMENT names the first option that is out of its range, or no word that there is.
absl::Status CheckOptions(const std::vector<Option>& options);
/// The options' values, by their names with underscores.
Json ConfigOf(const std::vector<Option>& options);

}  // namespace nam::bench
