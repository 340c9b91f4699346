#include "cli/foreground.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "localcluster/connect.h"
#include "localcluster/stop_signals.h"
#include "terminal/exit_codes.h"

namespace nam::cli {
namespace {

constexpr unsigned kServerEndSeconds = 8;

void Set(const UniqueFd& event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = write(event.get(), &one, sizeof one);
}

/// Waits for either, without a bound: a server runs until it is told to end.
void AwaitEither(int a, int b) {
  pollfd waits[] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
  while (poll(waits, 2, -1) <= 0) {
  }
}

/// Handles signals from the first moment on, also while the server starts: the first one starts the clock for
/// an orderly end, the second one is deadly.
class SignalWatch {
 public:
  SignalWatch()
      : dismissed_(eventfd(0, EFD_CLOEXEC)), ended_(eventfd(0, EFD_CLOEXEC)), thread_([this] { Watch(); }) {}
  ~SignalWatch() {
    Set(dismissed_);
    thread_.join();
  }
  void Lose(const absl::Status& why) {
    {
      const MutexLock lock(mutex_);
      lost_.Update(why);
    }
    Set(ended_);
  }
  /// Waits for a signal or a loss; returns the latter's status.
  absl::Status AwaitEnd() {
    AwaitEither(ended_.get(), ended_.get());
    const MutexLock lock(mutex_);
    return lost_;
  }

 private:
  void Watch() {
    AwaitEither(signals_.fd(), dismissed_.get());
    if (!signals_.Pending()) return;
    signals_.GiveOrderlyEnd(kServerEndSeconds);
    Set(ended_);
  }

  StopSignals signals_;  // before the thread, which inherits the block
  UniqueFd dismissed_;
  UniqueFd ended_;
  Mutex mutex_;
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

absl::Status NameLog(const std::string& role, const ReadyLine& ready, const ServerLogOptions& log) {
  const auto id = ready.values.find("id");
  const std::string name = id == ready.values.end() ? role : absl::StrCat(role, "-", id->second);
  StartLog(ParseLogLevel(log.level).value(), name);
  return log.directory.empty() ? absl::OkStatus() : OpenLogFile({.directory = log.directory, .name = name});
}

/// Reports why a server did not start: on standard error to its parent process, and in the log.
int ReportNoStart(const std::string& role, const ServerLogOptions& log, const absl::Status& why) {
  const int code =
      absl::IsUnavailable(why) || absl::IsUnauthenticated(why) ? ReportNoConnection(why) : ReportFailure(why);
  if (log.directory.empty() || !OpenLogFile({.directory = log.directory, .name = role}).ok()) return code;
  LogError(absl::StrCat("does not start: ", std::string(why.message())));
  return code;
}

}  // namespace

void SayReady(const ReadyLine& line) {
  std::printf("%s\n", line.ToString().c_str());
  std::fflush(stdout);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

int ServeInForeground(
    const std::string& role, const ServerLogOptions& log,
    const std::function<absl::StatusOr<std::unique_ptr<RunningServer>>(const OnLost&)>& start) {
  const auto level = ParseLogLevel(log.level);
  if (!level.ok()) {
    ReportFailure(level.status());
    return kExitUsage;
  }
  StartLog(*level, role);
  SignalWatch watch;
  absl::Status end;
  {
    const auto server = start([&watch](const absl::Status& why) { watch.Lose(why); });
    if (!server.ok()) return ReportNoStart(role, log, server.status());
    const ReadyLine ready = (*server)->ready();
    if (const absl::Status named = NameLog(role, ready, log); !named.ok()) return ReportFailure(named);
    LogInfo(absl::StrCat("started: ", ready.ToString()));
    SayReady(ready);
    end = watch.AwaitEnd();
    if (end.ok()) LogInfo("told to end");
  }
  if (end.ok()) return kExitOk;
  LogError(std::string(end.message()));
  return ExitCodeOf(end);
}

}  // namespace nam::cli
