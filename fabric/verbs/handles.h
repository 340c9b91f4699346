#pragma once

#include <infiniband/verbs.h>

#include <memory>

/// Move-only owners of verbs objects. Declared in the order of creation, so that they are destroyed in
/// reverse: a queue pair before its completion queue, everything before its protection domain.
namespace nam::fabric::verbs {

template <auto destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const {
    destroy(object);
  }
};

using ContextHandle = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;
using ProtectionDomainHandle = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using MemoryRegionHandle = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;
using CompletionChannelHandle = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using CompletionQueueHandle = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using QueuePairHandle = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;
using AddressHandle = std::unique_ptr<ibv_ah, Destroyer<ibv_destroy_ah>>;

/// The devices that the kernel knows, valid for the lifetime of this object.
struct DeviceList {
  DeviceList() : devices(ibv_get_device_list(&count)) {}
  ~DeviceList() {
    if (devices != nullptr) ibv_free_device_list(devices);
  }
  int count = 0;
  ibv_device** const devices;
};

}  // namespace nam::fabric::verbs
