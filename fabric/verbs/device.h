#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "fabric/verbs/handles.h"

namespace nam::fabric::verbs {

/// An open device with the port and GID that the fabric uses, and its protection domain. Immutable after
/// Open, so any thread may read it.
class Device {
 public:
  /// Opens the device named in the options; else the port with the RoCE v2 GID of `options.host`; else the
  /// first active one. FAILED_PRECONDITION says what is missing and how to get it.
  static absl::StatusOr<Device> Open(const FabricOptions& options);

  ibv_context* context() const { return context_.get(); }
  ibv_pd* pd() const { return pd_.get(); }
  uint8_t port() const { return port_; }
  uint16_t lid() const { return port_attributes_.lid; }
  bool ethernet() const { return port_attributes_.link_layer == IBV_LINK_LAYER_ETHERNET; }
  ibv_mtu mtu() const { return port_attributes_.active_mtu; }
  const ibv_gid& gid() const { return gid_.gid; }
  uint8_t gid_index() const { return static_cast<uint8_t>(gid_.gid_index); }
  /// Index of the network interface below a RoCE port; 0 if none.
  uint32_t interface_index() const { return gid_.ndev_ifindex; }
  const ibv_device_attr& attributes() const { return attributes_; }
  /// True for Linux's rdma_rxe, a NIC in software.
  bool soft_roce() const { return attributes_.vendor_id == 0xff'ffff; }
  /// `mlx5_0 port 1 (gid 3, 10.0.0.2)`, for messages.
  const std::string& name() const { return name_; }

 private:
  Device() = default;

  ContextHandle context_;
  ProtectionDomainHandle pd_;
  uint8_t port_ = 0;
  ibv_port_attr port_attributes_{};
  ibv_gid_entry gid_{};
  ibv_device_attr attributes_{};
  std::string name_;
};

constexpr uint32_t MtuBytes(ibv_mtu mtu) {
  return 128u << mtu;
}

/// Describes a failed verbs call: the action, the device, errno and `hint`.
absl::Status VerbsError(const Device& device, const std::string& what, int error, const std::string& hint);

}  // namespace nam::fabric::verbs
