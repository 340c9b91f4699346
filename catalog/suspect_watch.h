#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "catalog/control_plane.h"
#include "catalog/service.h"
#include "fabric/fabric.h"

namespace nam::catalog {

struct SuspectWatchOptions {
  Clock* clock = nullptr;
  int64_t pause_us = 0;  // between checks
  ControlPlane* control_plane = nullptr;
  /// Whether a connection of renewals lasts: ControlServer::Connected.
  std::function<bool(const std::string& connection)> connected;
  /// The source of threads and events; null: the operating system.
  fabric::Fabric* fabric = nullptr;
};

/// Checks ten times per lease for memory servers that do not renew, and dials them if their own connections
/// to the catalog have ended: a server that then refuses connections is dead and is buried at once. A refusal
/// alone proves nothing, since a firewall may answer in the server's place. Logs the events of members. Has
/// its own thread, so that no call waits for an unresponsive host or for the log. Borrows the service.
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
