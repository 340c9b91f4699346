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
  int64_t pause_us = 0;  // between two looks
  ControlPlane* control_plane = nullptr;
  /// Whose threads and events are used; null: the operating system's.
  fabric::Fabric* fabric = nullptr;
};

/// Looks ten times a lease for memory servers that do not renew, and dials them: whose connections are
/// refused is dead, and buried without waiting. Logs what happens to members. Has a thread of its own, so
/// that no call waits for a host that does not answer, nor for the log. Borrows the service.
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
