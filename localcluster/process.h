#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace nam {

struct ProcessOptions {
  std::string name;                                // for messages: `memory server 2`
  std::string executable = "/proc/self/exe";       // this very binary
  std::vector<std::string> arguments;              // without argv[0]
  std::map<std::string, std::string> environment;  // on top of this process's own
  std::string drop_prefix;                         // variables called so are not inherited; empty: all are
  std::string stderr_file;                         // appended to; empty: this process's stderr
  /// Instead of both: what the child writes there, until it moves it to a log of its own, is kept in memory,
  /// which has room when no disk has. Errors quote its end.
  bool quote_stderr = false;
  /// The folder that the child works in and stderr_file is in, so that both find what is in it whatever
  /// becomes of its path. Open as long as the process is used. Negative: this process's.
  int directory_fd = -1;
  // The child's ends of a conversation; the caller's, open until Start returns. Negative: stdin is empty,
  // and stdout goes to where AwaitReady looks.
  int stdin_fd = -1;
  int stdout_fd = -1;
  /// A session of its own that outlives this process and is not stopped by the destructor. Otherwise the
  /// child gets SIGTERM when the thread that started it ends, however it ends: start on the main thread.
  bool detached = false;
};

/// The line by which a server says that it is up: `READY <role> key=value …`.
struct ReadyLine {
  std::string role;
  std::map<std::string, std::string> values;
  static std::optional<ReadyLine> Parse(std::string_view line);
  /// The line, without its newline. Values must not hold blanks.
  std::string ToString() const;
};

/// A child process:   Start ──▶ running ──AwaitReady──▶ ready ──Stop──▶ reaped
/// Reaped at the latest by the destructor. Used by one thread.
class Process {
 public:
  static absl::StatusOr<std::unique_ptr<Process>> Start(ProcessOptions options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return options_.name; }
  pid_t pid() const { return pid_; }
  /// Readable once the process has ended; for poll().
  int exit_fd() const { return pidfd_.get(); }
  /// Readable while there is something for AwaitReady, which takes what is there without waiting if told so.
  int ready_fd() const { return stdout_.get(); }
  /// Set by AwaitReady.
  const std::optional<ReadyLine>& ready() const { return ready_; }
  bool running();
  /// `exit code 3`, `signal 9 (Killed)`; empty while it runs.
  std::string Outcome();

  void Signal(int signal);
  /// SIGTERM, then SIGKILL when the time has passed. An error if it had to be killed or ended badly.
  absl::Status Stop(int64_t timeout_ms);
  /// Waits until it has ended; false when the time has passed.
  bool AwaitEnd(int64_t timeout_ms);

 private:
  friend absl::Status AwaitReady(std::span<Process* const> processes, int64_t timeout_ms, int interrupt_fd);

  Process(ProcessOptions options, pid_t pid, UniqueFd pidfd, UniqueFd stdout_pipe, UniqueFd stderr_log,
          int64_t stderr_start);
  void Reap();
  /// Takes what the child has written; an error when it ended or wrote something else.
  absl::Status TakeOutput();
  absl::Status DiedEarly();
  /// `; it said:` and the end of its stderr, if that is known and not empty.
  std::string Said() const;

  const ProcessOptions options_;
  const pid_t pid_;
  UniqueFd pidfd_;
  UniqueFd stdout_;
  const UniqueFd stderr_;       // a file of it, or its memory; invalid: neither is known
  const int64_t stderr_start_;  // where this process's part of it starts
  std::string line_;
  std::optional<ReadyLine> ready_;
  std::optional<int> wait_status_;
};

/// Waits until every process has printed its READY line. UNAVAILABLE when one ends first, DEADLINE_EXCEEDED
/// (both with its last lines of stderr), CANCELLED when `interrupt_fd` (if not negative) becomes readable.
absl::Status AwaitReady(std::span<Process* const> processes, int64_t timeout_ms, int interrupt_fd = -1);

/// Stops all of them at the same time.
absl::Status StopAll(std::span<Process* const> processes, int64_t timeout_ms);

/// Names a process for ever: neither another one with the same pid, nor one of another user, nor another
/// program is taken for it.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_time = 0;  // ticks since boot
  std::string boot;         // which boot
  std::string executable;   // as it was called when the process started
  bool operator==(const ProcessIdentity&) const = default;
};
/// Of a process of this user; none for others, and for those that have ended.
std::optional<ProcessIdentity> IdentityOf(pid_t pid);
/// Ends a process that is no child of ours: SIGTERM, then SIGKILL. False if it is not there any more.
bool EndForeignProcess(const ProcessIdentity& process, int64_t timeout_ms);

/// The last lines of a file from `from` on, each behind four blanks; empty if there are none.
std::string LastLines(const std::string& path, int64_t from, size_t lines);

/// The program `nam` or `nam-bench`: this very one, or the one beside it, installed in the same directory or
/// as Bazel leaves them (cli/nam, bench/nam-bench). NOT_FOUND says where it was looked for.
absl::StatusOr<std::string> FindExecutable(const std::string& name);

}  // namespace nam
