#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "catalog/control_plane.h"
#include "catalog/service.h"
#include "fabric/fabric.h"

namespace nam::catalog {

struct SuspectWatchOptions {
  Clock* clock = nullptr;
  int64_t pause_us = 0;  // between checks
  ControlPlane* control_plane = nullptr;
  /// The source of threads and events; null: the operating system.
  fabric::Fabric* fabric = nullptr;
};

/// Checks ten times per lease for memory servers that do not renew, and dials them: a server that refuses
/// connections is dead and is buried at once. Logs the events of members. Has its own thread, so that no call
/// waits for an unresponsive host or for the log. Borrows the service.
class SuspectWatch {
 public:
  SuspectWatch(Service& service, SuspectWatchOptions options);
  ~SuspectWatch();
  SuspectWatch(const SuspectWatch&) = delete;
  SuspectWatch& operator=(const SuspectWatch&) = delete;

 private:
  void Run();
  void Log();

  Service& service_;
  const SuspectWatchOptions options_;
  std::unique_ptr<fabric::Event> stop_;
  std::unique_ptr<fabric::Thread> thread_;  // last: joined first
};

}  // namespace nam::catalog
