#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "fabric/fabric.h"
#include "fabric/verbs/control.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/handles.h"
#include "fabric/verbs/registry.h"

namespace nam::fabric::verbs {

/// What a fabric's regions, queue pairs and listeners share, and keep alive. Thread-safe.
class Core {
 public:
  static absl::StatusOr<std::shared_ptr<Core>> Open(const FabricOptions& options);

  const FabricOptions& options() const { return options_; }
  const Device& device() const { return device_; }
  Registry& registry() { return registry_; }
  ControlThread& control() { return control_; }
  /// The completion queue of queue pairs that only serve: nothing ever arrives on it.
  ibv_cq* idle_completions() const { return idle_completions_.get(); }
  /// Of queue pairs of the whole process; as wide as half a wr_id.
  static uint32_t NextId();
  /// Of datagrams: derived from the cluster's secret.
  uint32_t queue_key() const { return queue_key_; }

  std::atomic<uint64_t> datagrams_refused{0};
  std::atomic<uint64_t> datagrams_unreceived{0};

 private:
  Core(const FabricOptions& options, Device device);

  const FabricOptions options_;
  const Device device_;
  const uint32_t queue_key_;
  CompletionQueueHandle idle_completions_;
  Registry registry_;
  ControlThread control_;  // after what it uses
};

}  // namespace nam::fabric::verbs
