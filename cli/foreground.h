#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "localcluster/process.h"

namespace nam::cli {

/// A server that runs in this process; its destructor stops it in order.
class RunningServer {
 public:
  virtual ~RunningServer() = default;
  virtual ReadyLine ready() const = 0;
};

/// Called when the server cannot go on (the cluster gave it up). Any thread.
using OnLost = std::function<void(absl::Status)>;

struct ServerLogOptions {
  std::string level = "info";
  std::string directory;  // empty: standard error
};

/// Starts a server, says READY, and serves until a signal or its loss. Returns the exit code. The log is
/// called `role` until the READY line tells an id, then `role-id`; that of `role` says why a server did not
/// start.
int ServeInForeground(
    const std::string& role, const ServerLogOptions& log,
    const std::function<absl::StatusOr<std::unique_ptr<RunningServer>>(const OnLost&)>& start);

/// Prints the READY line. From then on standard output is standard error, so that later output cannot fail on
/// a reader that has gone.
void SayReady(const ReadyLine& line);

}  // namespace nam::cli
