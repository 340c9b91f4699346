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
#include "base/clock.h"
#include "base/unique_fd.h"

namespace nam {

/// After SIGKILL the end of a process is awaited for so long.
inline constexpr int64_t kKillWaitMs = 10'000;

/// On the real clock, by which processes are waited for.
inline Deadline DeadlineAfterMs(int64_t ms) {
  return RealClock().After(ms * 1000);
}

struct ProcessOptions {
  std::string name;                                // for messages: `memory server 2`
  std::string executable = "/proc/self/exe";       // this binary
  std::vector<std::string> arguments;              // without argv[0]
  std::map<std::string, std::string> environment;  // added to this process's own
  std::string drop_prefix;  // variables with this prefix are not inherited; empty: all are
  std::string stderr_file;  // appended to; empty: this process's stderr
  /// Keeps the child's stderr in memory instead, until it opens its own log: memory has room even if no disk
  /// has. Errors quote its end.
  bool quote_stderr = false;
  /// The directory of the child and of stderr_file, so that both find its files whatever becomes of its path.
  /// Must stay open while the process is used. Negative: this process's.
  int directory_fd = -1;
  // The child's ends of a conversation; the caller keeps them open until Start returns. Negative: stdin is
  // empty, and AwaitReady reads stdout.
  int stdin_fd = -1;
  int stdout_fd = -1;
  /// Gives the child its own session, which outlives this process and which the destructor does not stop.
  /// Otherwise the child gets SIGTERM when the starting thread ends for any reason: start on the main thread.
  bool detached = false;
};

/// The line with which a server reports that it is up: `READY <role> key=value …`.
struct ReadyLine {
  std::string role;
  std::map<std::string, std::string> values;
  static std::optional<ReadyLine> Parse(std::string_view line);
  /// The line, without its newline. Values must not contain blanks.
  std::string ToString() const;
};

/// A child process. Reaped at the latest by the destructor. Used by one thread.
///
///     Start ──▶ running ──AwaitReady──▶ ready ──Stop──▶ reaped
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
  /// Readable while there is input for AwaitReady, which takes it without waiting if its timeout is 0.
  int ready_fd() const { return stdout_.get(); }
  /// Set by AwaitReady.
  const std::optional<ReadyLine>& ready() const { return ready_; }
  bool running();
  /// `exit code 3`, `signal 9 (Killed)`; empty while it runs.
  std::string Outcome();

  void Signal(int signal);
  /// Sends SIGTERM, then SIGKILL after the timeout. An error if it had to be killed or ended badly.
  absl::Status Stop(int64_t timeout_ms);
  /// Waits until the process has ended; false on timeout.
  bool AwaitEnd(int64_t timeout_ms);

 private:
  friend absl::Status AwaitReady(std::span<Process* const> processes, int64_t timeout_ms, int interrupt_fd);

  Process(ProcessOptions options, pid_t pid, UniqueFd pidfd, UniqueFd stdout_pipe, UniqueFd stderr_log,
          int64_t stderr_start);
  void Reap();
  /// Reads the child's output; an error if it ended or wrote something else.
  absl::Status ReadOutput();
  absl::Status DiedEarly();
  /// `; it said:` and the end of its stderr, if known and not empty.
  std::string Said() const;

  const ProcessOptions options_;
  const pid_t pid_;
  UniqueFd pidfd_;
  UniqueFd stdout_;
  const UniqueFd stderr_;       // its file or its memory; invalid: unknown
  const int64_t stderr_start_;  // where this process's part of the file starts
  std::string line_;
  std::optional<ReadyLine> ready_;
  std::optional<int> wait_status_;
};

/// Waits until every process has printed its READY line. UNAVAILABLE if one ends first, DEADLINE_EXCEEDED
/// (both with its last lines of stderr), CANCELLED if `interrupt_fd` (unless negative) becomes readable.
absl::Status AwaitReady(std::span<Process* const> processes, int64_t timeout_ms, int interrupt_fd = -1);

/// Stops all of them concurrently.
absl::Status StopAll(std::span<Process* const> processes, int64_t timeout_ms);

/// Identifies a process forever: a process with the same pid, of another user, or of another program never
/// matches.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_time = 0;  // ticks since boot
  std::string boot;         // the boot's id
  std::string executable;   // its name when the process started
  bool operator==(const ProcessIdentity&) const = default;
};
/// The identity of a live process of this user; none otherwise.
std::optional<ProcessIdentity> IdentityOf(pid_t pid);
/// Ends a process that is not a child of this one: SIGTERM, unless it ends by itself `already`, then SIGKILL.
/// False if it no longer exists.
bool EndForeignProcess(const ProcessIdentity& process, int64_t timeout_ms, bool already = false);

/// The last lines of a file from offset `from` on, each indented by four blanks; empty if there are none.
std::string LastLines(const std::string& path, int64_t from, size_t lines);

/// The program `nam` or `nam-bench`: this one, or its sibling, installed in the same directory or as Bazel
/// places them (cli/nam, bench/nam-bench). NOT_FOUND lists the places tried.
absl::StatusOr<std::string> FindExecutable(const std::string& name);

}  // namespace nam
