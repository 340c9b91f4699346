#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "localcluster/process.h"

namespace nam {

/// When a server that has ended is restarted. Keeps a crashing program from occupying the host.
struct RestartPolicy {
  int64_t first_delay_ms = 200;  // doubled by every failure
  int64_t delay_max_ms = 30'000;
  int64_t steady_ms = 60'000;  // this uptime resets the failures
  int failures_max = 10;       // then the server is given up; 0: never
  int64_t ready_timeout_ms = 120'000;
};

/// A server's place in a local cluster, with successive processes.
///
///     Start ─▶ starting ──READY──▶ running ──ended──▶ waiting ──delay──▶ starting …
///                  └──ended, or no READY in time──────▶ │
///                                                       └──too often──▶ given up
///
/// Its thread polls wait_fd() until wake(), then calls Tend. Only the thread that starts processes may use
/// it.
class ServerSlot {
 public:
  /// The state lost with a process, or kept for the next one; the log mentions it.
  enum class Holds : uint8_t { kNothing, kMemory, kDataDirectory };
  static absl::StatusOr<std::unique_ptr<ServerSlot>> Start(ProcessOptions options,
                                                           const RestartPolicy& policy, Holds holds);

  /// The latest process; may have ended.
  Process& process() { return *process_; }
  /// The place's name: `memory server 1`.
  const std::string& name() const { return options_.name; }
  /// A value of the latest READY line, such as the member id; empty if there was none.
  std::string ReadyValue(const std::string& key) const;
  /// Replaces the argument with the same beginning up to `=`, from the next start on.
  void ReplaceArgument(const std::string& argument);

  /// Reads the READY line, and restarts a process that has ended. Returns what happened, if anything, for the
  /// log.
  std::optional<std::string> Tend();
  /// Readable when Tend has work; negative if only time brings work.
  int wait_fd() const;
  /// The latest time at which Tend has work.
  Deadline wake() const { return wake_; }
  bool given_up() const { return state_ == State::kGivenUp; }
  /// True if its process has ended and Tend has reported it.
  bool down() const { return state_ == State::kWaiting || given_up(); }

 private:
  enum class State : uint8_t { kStarting, kRunning, kWaiting, kGivenUp };

  ServerSlot(ProcessOptions options, const RestartPolicy& policy, Holds holds)
      : options_(std::move(options)), policy_(policy), holds_(holds) {}
  absl::Status Launch();
  std::string TakeReady();
  std::string Fail(const std::string& how);
  std::string Called() const;

  ProcessOptions options_;
  const RestartPolicy policy_;
  const Holds holds_;
  std::unique_ptr<Process> process_;
  State state_ = State::kStarting;
  int failures_ = 0;  // since the last run of steady_ms
  Deadline steady_;   // when the current run reaches steady_ms
  Deadline wake_;
  std::string former_;  // name of the previous process
};

}  // namespace nam
