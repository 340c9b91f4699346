#include "fabric/verbs/inspect.h"

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/verbs/datagram_address.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/handles.h"
#include "fabric/verbs/loopback.h"

namespace nam::fabric::verbs {
namespace {

const char* TypeText(uint32_t type) {
  return type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1" : "IB";
}

Atomics AtomicsOf(ibv_atomic_cap capability) {
  return capability == IBV_ATOMIC_GLOB  ? Atomics::kGlobal
         : capability == IBV_ATOMIC_HCA ? Atomics::kDevice
                                        : Atomics::kNone;
}

/// The port's GIDs; sets `best` to the one to connect by, if any.
std::vector<GidReport> InspectGids(ibv_context* context, uint8_t port, const ibv_port_attr& attributes,
                                   std::optional<ibv_gid_entry>& best) {
  std::vector<GidReport> gids;
  const bool ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  for (int index = 0; index < attributes.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, port, static_cast<uint32_t>(index), &entry, 0) != 0) continue;
    gids.push_back({.index = index, .address = GidText(entry.gid), .type = TypeText(entry.gid_type)});
    if (ethernet && entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    if (!best || (IsMappedV4(entry.gid) && !IsMappedV4(best->gid))) best = entry;
  }
  return gids;
}

absl::Status TestCompareAndSwap(ibv_context* context, uint8_t port, const ibv_port_attr& attributes,
                                const ibv_gid_entry& gid) {
  constexpr uint64_t kBefore = 0x0123'4567'89ab'cdef;
  constexpr uint64_t kAfter = 0xfedc'ba98'7654'3210;
  NAM_ASSIGN_OR_RETURN(auto loopback, Loopback::Connect(context, port, attributes, gid));
  loopback->word() = kBefore;
  NAM_ASSIGN_OR_RETURN(const uint64_t first, loopback->CompareAndSwap(kBefore, kAfter));
  NAM_ASSIGN_OR_RETURN(const uint64_t second, loopback->CompareAndSwap(kBefore, 1));
  if (first == kBefore && second == kAfter && loopback->word() == kAfter) return absl::OkStatus();
  return absl::InternalError(
      absl::StrFormat("wrong result: the swaps saw %x and %x and left %x", first, second, loopback->word()));
}

void InspectPort(ibv_context* context, uint8_t number, DeviceReport& device) {
  PortReport& port = device.ports.emplace_back(PortReport{.number = number});
  ibv_port_attr attributes{};
  if (ibv_query_port(context, number, &attributes) != 0) {
    port.state = "cannot be queried";
    return;
  }
  port.active = attributes.state == IBV_PORT_ACTIVE;
  port.state = ibv_port_state_str(attributes.state);
  port.link_layer = attributes.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
  port.mtu_bytes = MtuBytes(attributes.active_mtu);
  std::optional<ibv_gid_entry> gid;
  port.gids = InspectGids(context, number, attributes, gid);
  // The first usable port stands for the device, which implements the atomics.
  if (port.active && gid && absl::IsFailedPrecondition(device.cas_self_test)) {
    device.cas_self_test = TestCompareAndSwap(context, number, attributes, *gid);
  }
}

DeviceReport InspectDevice(ibv_device* device) {
  DeviceReport report{.name = ibv_get_device_name(device)};
  const ContextHandle context(ibv_open_device(device));
  ibv_device_attr attributes{};
  if (context == nullptr) {
    report.opened = absl::UnavailableError(absl::StrFormat("cannot be opened: %s", std::strerror(errno)));
  } else if (const int error = ibv_query_device(context.get(), &attributes); error != 0) {
    report.opened = absl::UnavailableError(absl::StrFormat("cannot be queried: %s", std::strerror(error)));
  }
  report.cas_self_test = absl::FailedPreconditionError("no active port with a GID");
  if (!report.opened.ok()) return report;
  report.firmware = attributes.fw_ver;
  report.atomics = AtomicsOf(attributes.atomic_cap);
  for (int port = 1; port <= attributes.phys_port_cnt; ++port) {
    InspectPort(context.get(), static_cast<uint8_t>(port), report);
  }
  return report;
}

}  // namespace

std::vector<DeviceReport> InspectDevices() {
  const DeviceList list;
  std::vector<DeviceReport> reports;
  for (int i = 0; i < list.count; ++i) reports.push_back(InspectDevice(list.devices[i]));
  return reports;
}

}  // namespace nam::fabric::verbs
