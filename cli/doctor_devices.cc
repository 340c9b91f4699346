#include "cli/doctor_devices.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace nam::cli {
namespace {

using fabric::Kind;
using fabric::verbs::Atomics;
using fabric::verbs::DeviceReport;
using fabric::verbs::GidReport;
using fabric::verbs::PortReport;

Finding Found(const std::string& name, const std::string& found, const std::string& needed) {
  return {.name = name, .found = found, .needed = needed, .fabrics = {Kind::kVerbs}};
}

/// `state` unless `fine`, then with the remedy.
Finding Judge(Finding finding, bool fine, FindingState state, const std::string& remedy) {
  if (fine) return finding;
  finding.state = state;
  finding.remedy = remedy;
  return finding;
}

bool CanConnect(const PortReport& port) {
  return std::any_of(port.gids.begin(), port.gids.end(), [&](const GidReport& gid) {
    return port.link_layer != "Ethernet" || gid.type == "RoCE v2";
  });
}

bool IsUsable(const DeviceReport& device) {
  return device.opened.ok() && device.atomics != Atomics::kNone && device.cas_self_test.ok() &&
         std::any_of(device.ports.begin(), device.ports.end(),
                     [](const PortReport& port) { return port.active && CanConnect(port); });
}

std::string GidsText(const PortReport& port) {
  std::string text;
  for (const GidReport& gid : port.gids) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", gid.index, ": ", gid.address, " ", gid.type);
  }
  return text.empty() ? "none" : text;
}

void CheckPort(const std::string& device, const PortReport& port, FindingState bad,
               std::vector<Finding>& findings) {
  const std::string name = absl::StrCat(device, " port ", port.number);
  findings.push_back(
      Judge(Found(name, absl::StrCat(port.state, ", ", port.link_layer, ", MTU ", port.mtu_bytes), "active"),
            port.active, bad, "ip link set dev INTERFACE up (rdma link names the interface)"));
  findings.push_back(Judge(Found(name + " GIDs", GidsText(port), "one, on Ethernet of RoCE v2"),
                           CanConnect(port), bad,
                           "ip address add ADDRESS dev INTERFACE (rdma link names the interface)"));
}

const char* AtomicsText(Atomics atomics) {
  switch (atomics) {
    case Atomics::kNone:
      return "none";
    case Atomics::kDevice:
      return "exact within the device";
    case Atomics::kGlobal:
      return "exact also against processors";
  }
  return "unknown";
}

void CheckDevice(const DeviceReport& device, FindingState bad, std::vector<Finding>& findings) {
  if (!device.opened.ok()) {
    findings.push_back(Judge(Found(device.name, std::string(device.opened.message()), "can be opened"), false,
                             bad, "chmod a+rw /dev/infiniband/uverbs*; apt-get install rdma-core"));
    return;
  }
  for (const PortReport& port : device.ports) CheckPort(device.name, port, bad, findings);
  findings.push_back(
      Judge(Found(device.name + " atomics", AtomicsText(device.atomics), "exact within the device"),
            device.atomics != Atomics::kNone, bad, "use another device, or the tcp fabric"));
  const absl::Status& tested = device.cas_self_test;
  findings.push_back(Judge(Found(device.name + " CAS self-test",
                                 tested.ok() ? "swapped, and refused to" : std::string(tested.message()),
                                 "swapped, and refused to"),
                           tested.ok(), bad, "dmesg | tail; ibv_devinfo -v; rdma link"));
}

}  // namespace

std::vector<Finding> CheckDevices(const std::vector<DeviceReport>& devices) {
  const auto usable = std::count_if(devices.begin(), devices.end(), IsUsable);
  std::vector<Finding> findings;
  findings.push_back(
      Judge(Found("RDMA devices", absl::StrCat(usable, " usable of ", devices.size()), "1 usable"),
            usable > 0, FindingState::kMissing,
            devices.empty() ? "apt-get install rdma-core and the NIC's driver; or in software: "
                              "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0"
                            : "see below"));
  // If one works, faults of others do not matter.
  const FindingState bad = usable > 0 ? FindingState::kWarning : FindingState::kMissing;
  for (const DeviceReport& device : devices) CheckDevice(device, bad, findings);
  return findings;
}

}  // namespace nam::cli
