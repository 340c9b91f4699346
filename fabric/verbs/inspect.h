#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

/// Properties of this host's RDMA devices, for `nam doctor`: plain values, no verbs types.
namespace nam::fabric::verbs {

/// The other accesses against which a device's atomics are exact.
enum class Atomics : uint8_t {
  kNone,
  kDevice,  // atomics of the same device
  kGlobal,  // also atomics of the host's processors
};

struct GidReport {
  int index = 0;
  std::string address;  // 10.0.0.2 if IPv4-mapped, else as IPv6
  std::string type;     // IB, RoCE v1, RoCE v2
};

struct PortReport {
  int number = 0;
  bool active = false;
  std::string state;  // as the kernel names it: PORT_ACTIVE, PORT_DOWN …
  std::string link_layer;
  uint32_t mtu_bytes = 0;
  std::vector<GidReport> gids;  // non-empty ones
};

struct DeviceReport {
  std::string name;
  absl::Status opened;
  std::string firmware;
  Atomics atomics = Atomics::kNone;
  std::vector<PortReport> ports;
  /// Runs two COMPARE_AND_SWAPs between two connected queue pairs of the device: the first must swap, the
  /// second must not. FAILED_PRECONDITION if no port is active.
  absl::Status cas_self_test;
};

/// Takes at most a few seconds per device. Empty: no devices, or no kernel support.
std::vector<DeviceReport> InspectDevices();

}  // namespace nam::fabric::verbs
