#include "fabric/verbs/device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/verbs/datagram_address.h"
#include "fabric/verbs/device_choice.h"

namespace nam::fabric::verbs {
namespace {

static_assert(MtuBytes(IBV_MTU_256) == 256 && MtuBytes(IBV_MTU_4096) == 4096);

constexpr char kNoDevice[] =
    "this host has no RDMA device: `rdma link` lists them. Load the NIC's driver, or try it over Ethernet "
    "with "
    "`modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0`, or use the tcp fabric";

using HostAddresses = std::vector<ibv_gid>;

/// The host's addresses as GIDs. Empty for none, any, or loopback, which no device has.
HostAddresses AddressesOf(const std::string& host) {
  HostAddresses addresses;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (host.empty() || getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    ibv_gid gid{};
    if (at->ai_family == AF_INET) {
      gid.raw[10] = gid.raw[11] = 0xff;
      std::memcpy(gid.raw + 12, &reinterpret_cast<const sockaddr_in*>(at->ai_addr)->sin_addr, 4);
    } else if (at->ai_family == AF_INET6) {
      std::memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(at->ai_addr)->sin6_addr, 16);
    } else {
      continue;
    }
    addresses.push_back(gid);
  }
  freeaddrinfo(found);
  return addresses;
}

/// Ranks a GID: 0 is unusable, 4 is the host's own address.
int Suitability(const ibv_gid_entry& entry, bool ethernet, const HostAddresses& host) {
  if (!ethernet) return entry.gid_index == 0 ? 1 : 0;
  if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) return 0;
  for (const ibv_gid& address : host) {
    if (std::memcmp(address.raw, entry.gid.raw, sizeof(address.raw)) == 0) return 4;
  }
  if (IsMappedV4(entry.gid)) return 3;
  return IN6_IS_ADDR_LINKLOCAL(reinterpret_cast<const in6_addr*>(entry.gid.raw)) ? 1 : 2;
}

struct Candidate {
  ibv_device* device = nullptr;
  uint8_t port = 0;
  ibv_gid_entry gid{};
  int suitability = 0;
};

void ConsiderPort(ibv_context* context, uint8_t port, const DeviceChoice& choice, const HostAddresses& host,
                  Candidate& best) {
  ibv_port_attr attributes{};
  if (ibv_query_port(context, port, &attributes) != 0 || attributes.state != IBV_PORT_ACTIVE) return;
  for (int index = 0; index < attributes.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, port, static_cast<uint32_t>(index), &entry, 0) != 0) continue;
    int suitability = Suitability(entry, attributes.link_layer == IBV_LINK_LAYER_ETHERNET, host);
    if (choice.gid_index) suitability = *choice.gid_index == index ? 4 : 0;
    if (suitability > best.suitability) best = {context->device, port, entry, suitability};
  }
}

void ConsiderDevice(ibv_device* device, const DeviceChoice& choice, const HostAddresses& host,
                    Candidate& best) {
  const ContextHandle context(ibv_open_device(device));
  ibv_device_attr attributes{};
  if (context == nullptr || ibv_query_device(context.get(), &attributes) != 0) return;
  for (int port = 1; port <= attributes.phys_port_cnt; ++port) {
    if (choice.port && *choice.port != port) continue;
    ConsiderPort(context.get(), static_cast<uint8_t>(port), choice, host, best);
  }
}

absl::StatusOr<Candidate> Choose(const DeviceList& list, const FabricOptions& options) {
  NAM_ASSIGN_OR_RETURN(const DeviceChoice choice, ParseDeviceChoice(options.rdma));
  const HostAddresses host = AddressesOf(options.host);
  Candidate best;
  std::string names;
  bool named = false;
  for (int i = 0; i < list.count; ++i) {
    const std::string name = ibv_get_device_name(list.devices[i]);
    names += (names.empty() ? "" : ", ") + name;
    if (!choice.device.empty() && choice.device != name) continue;
    named = true;
    ConsiderDevice(list.devices[i], choice, host, best);
  }
  if (!named) {
    return absl::FailedPreconditionError(
        absl::StrFormat("there is no RDMA device \"%s\" on this host, only %s", choice.device, names));
  }
  if (best.suitability > 0) return best;
  if (choice.port || choice.gid_index) {
    return absl::FailedPreconditionError(
        absl::StrFormat("no active port has what \"%s\" asks for: `rdma link` shows ports and their state, "
                        "`ibv_devinfo -v` the GIDs",
                        options.rdma));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "no port of %s is active with a RoCE v2 GID: bring the interface up (`ip link set DEV up`), give it an "
      "address, and see `rdma link`",
      choice.device.empty() ? names : choice.device));
}

}  // namespace

absl::StatusOr<Device> Device::Open(const FabricOptions& options) {
  NAM_RETURN_IF_ERROR(ParseDeviceChoice(options.rdma).status());
  const DeviceList list;
  if (list.devices == nullptr || list.count == 0) return absl::FailedPreconditionError(kNoDevice);
  NAM_ASSIGN_OR_RETURN(const Candidate chosen, Choose(list, options));
  Device device;
  device.port_ = chosen.port;
  device.gid_ = chosen.gid;
  device.name_ = absl::StrFormat("%s port %d (gid %d, %s)", ibv_get_device_name(chosen.device), chosen.port,
                                 chosen.gid.gid_index, GidText(chosen.gid.gid));
  device.context_.reset(ibv_open_device(chosen.device));
  if (device.context_ == nullptr) {
    return VerbsError(device, "cannot open the device", errno, "may this user open /dev/infiniband/uverbs*?");
  }
  int error = ibv_query_port(device.context(), device.port_, &device.port_attributes_);
  if (error == 0) error = ibv_query_device(device.context(), &device.attributes_);
  if (error != 0)
    return VerbsError(device, "cannot query the device", error, "is its driver being unloaded?");
  device.pd_.reset(ibv_alloc_pd(device.context()));
  if (device.pd_ == nullptr) {
    return VerbsError(device, "cannot make a protection domain", errno,
                      "other processes may have used them all up");
  }
  return device;
}

absl::Status VerbsError(const Device& device, const std::string& what, int error, const std::string& hint) {
  const std::string message =
      absl::StrFormat("%s on %s (errno %d, %s): %s", what, device.name(), error, strerror(error), hint);
  if (error == ENOMEM || error == ENOSPC || error == EAGAIN || error == EMFILE) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::InternalError(message);
}

}  // namespace nam::fabric::verbs
