#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "fabric/grants.h"

namespace nam::catalog {

/// Tells memory servers what this process has closed, on a thread that runs as long as something is over and
/// not told. Thread-safe.
class GrantCloser {
 public:
  /// OK: the server has heard it, or is buried.
  using Tell = std::function<absl::Status(MemoryServerId server,
                                          const std::vector<std::shared_ptr<fabric::Grant>>& closed)>;

  GrantCloser(fabric::Fabric& fabric, fabric::Grants& grants, Tell tell)
      : fabric_(fabric), grants_(grants), tell_(std::move(tell)), stop_(fabric.CreateEvent()) {}
  ~GrantCloser();
  /// Something is over.
  void Wake();

 private:
  void Run();
  /// False: nothing was told.
  bool TellSome();

  fabric::Fabric& fabric_;
  fabric::Grants& grants_;
  const Tell tell_;
  const std::unique_ptr<fabric::Event> stop_;
  std::mutex mutex_;
  bool running_ = false;
  bool stopped_ = false;
  bool woken_ = false;  // since the thread has looked last
  std::unique_ptr<fabric::Thread> thread_;
};

}  // namespace nam::catalog
