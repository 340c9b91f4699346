#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace nam::fabric::verbs {

/// FabricOptions::rdma, `DEVICE[:PORT][,gid=N]`.
struct DeviceChoice {
  std::string device;
  std::optional<uint8_t> port;
  std::optional<int> gid_index;
};
absl::StatusOr<DeviceChoice> ParseDeviceChoice(const std::string& text);

}  // namespace nam::fabric::verbs
