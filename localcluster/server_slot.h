#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "localcluster/process.h"

namespace nam {

/// How a server that ends is started again. A program that crashes must not keep the host busy with that.
struct RestartPolicy {
  int64_t first_delay_ms = 200;  // doubled by every failure
  int64_t delay_max_ms = 30'000;
  int64_t steady_ms = 60'000;  // who ran so long begins anew
  int failures_max = 10;       // then it is given up; 0: never
  int64_t ready_timeout_ms = 120'000;
};

/// A server of a local cluster, and its place in it: one process after the other.
///
///     Start ─▶ starting ──READY──▶ running ──ended──▶ waiting ──delay──▶ starting …
///                  └──ended, or no READY in time──────▶ │
///                                                       └──too often──▶ given up
///
/// Its thread polls wait_fd() until wake(), and then calls Tend. Used by one thread: that which starts
/// processes.
class ServerSlot {
 public:
  /// What ends with a process, and what the next one has of it.
  enum class Holds : uint8_t { kNothing, kMemory, kDataDirectory };
  static absl::StatusOr<std::unique_ptr<ServerSlot>> Start(ProcessOptions options,
                                                           const RestartPolicy& policy, Holds holds);

  /// The latest process; it may have ended.
  Process& process() { return *process_; }
  /// Of the place: `memory server 1`.
  const std::string& name() const { return options_.name; }
  /// The member id, or other value, that the latest READY line told; empty if there was none.
  std::string ReadyValue(const std::string& key) const;
  /// In place of the argument that begins alike up to `=`, from the next start on.
  void ReplaceArgument(const std::string& argument);

  /// Looks after the process: takes its READY line, starts another when it has ended. What happened, if
  /// anything, for the log.
  std::optional<std::string> Tend();
  /// Readable when there is something to do for Tend; negative if only time brings it.
  int wait_fd() const;
  /// When Tend has something to do at the latest.
  Deadline wake() const { return wake_; }
  bool given_up() const { return state_ == State::kGivenUp; }
  /// Its process has ended, and Tend has said so.
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
  int failures_ = 0;  // since it last ran for steady_ms
  Deadline steady_;   // when it will have
  Deadline wake_;
  std::string former_;  // what the process before was called
};

}  // namespace nam
