#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "catalog/control_plane.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"

namespace nam::catalog {

class SimulatedServer;

/// The listeners of a simulated world. A call's handler runs on its own thread in the server's process.
/// Request and reply take the world's delay, and suffer its faults:
///
///     caller                                  thread of the server's process
///     Call ─ wait for the answer              ── delay ── Handlers[path] ── delay ── answer ─▶ caller
///       │ server dead, or out of reach for too long: UNAVAILABLE;  deadline;  cancelled
///       ▼
///     gives up: IncomingCall::Cancelled(), and the answer is dropped
///
/// Messages wait for the end of a partition, like TCP's. Secrets are not compared: a world contains only the
/// cluster. Used by the world's threads, which run one at a time. Outlives its control planes.
class SimulatedControlNetwork {
 public:
  explicit SimulatedControlNetwork(fabric::sim::World& world) : world_(world) {}

  /// The control plane of the process that `fabric` was opened for. Must not be used after the fabric is
  /// gone.
  std::unique_ptr<ControlPlane> PlaneOf(fabric::Fabric& fabric);

 private:
  friend class SimulatedServer;
  friend class SimulatedChannel;
  friend class SimulatedControlPlane;

  fabric::sim::World& world_;
  uint16_t next_port_ = 1;
  std::map<std::string, SimulatedServer*> servers_;  // by address
};

}  // namespace nam::catalog
