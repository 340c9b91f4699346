#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "fabric/grants.h"

namespace nam::catalog {

/// Tells memory servers which grants this process has closed. Its thread runs while some closed grant is
/// unreported. Thread-safe.
class GrantCloser {
 public:
  /// OK: the server has been told, or is buried.
  using Tell =
      std::function<absl::Status(MemoryServerId server, const std::vector<fabric::Grants::Closed>& closed)>;

  GrantCloser(fabric::Fabric& fabric, fabric::Grants& grants, Tell tell)
      : fabric_(fabric), grants_(grants), tell_(std::move(tell)), stop_(fabric.CreateEvent()) {}
  ~GrantCloser();
  /// Called when some grant is over.
  void Wake();

 private:
  void Run();
  /// False: nothing could be reported.
  bool TellSome();

  fabric::Fabric& fabric_;
  fabric::Grants& grants_;
  const Tell tell_;
  const std::unique_ptr<fabric::Event> stop_;
  Mutex mutex_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // since the thread's last check
  std::unique_ptr<fabric::Thread> thread_;
};

}  // namespace nam::catalog
