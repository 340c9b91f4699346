#include "fabric/verbs/device_choice.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace nam::fabric::verbs {

absl::StatusOr<DeviceChoice> ParseDeviceChoice(const std::string& text) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(absl::StrFormat(
        "\"%s\" is not a choice of an RDMA device: DEVICE[:PORT][,gid=N], such as mlx5_0:1,gid=3", text));
  };
  const auto number = [](const std::string& digits, int max) -> std::optional<int> {
    if (digits.empty() || digits.size() > 5 || digits.find_first_not_of("0123456789") != std::string::npos) {
      return std::nullopt;
    }
    const int value = std::stoi(digits);
    return value <= max ? std::optional(value) : std::nullopt;
  };
  DeviceChoice choice;
  if (text.empty()) return choice;
  std::string device = text;
  if (const size_t comma = text.find(','); comma != std::string::npos) {
    device = text.substr(0, comma);
    if (text.compare(comma + 1, 4, "gid=") != 0) return invalid();
    choice.gid_index = number(text.substr(comma + 5), 255);
    if (!choice.gid_index) return invalid();
  }
  if (const size_t colon = device.find(':'); colon != std::string::npos) {
    const auto port = number(device.substr(colon + 1), 255);
    if (!port || *port == 0) return invalid();
    choice.port = static_cast<uint8_t>(*port);
    device.resize(colon);
  }
  if (device.empty()) return invalid();
  choice.device = std::move(device);
  return choice;
}

}  // namespace nam::fabric::verbs
