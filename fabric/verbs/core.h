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

/// The shared part of a fabric. Kept alive by its regions, queue pairs and listeners. Thread-safe.
class Core {
 public:
  static absl::StatusOr<std::shared_ptr<Core>> Open(const FabricOptions& options);

  const FabricOptions& options() const { return options_; }
  const Device& device() const { return device_; }
  Registry& registry() { return registry_; }
  ControlThread& control() { return control_; }
  /// The completion queue of serving queue pairs. Nothing ever arrives on it.
  ibv_cq* idle_completions() const { return idle_completions_.get(); }
  /// Ids for queue pairs of the whole process; half as wide as a wr_id.
  static uint32_t NextId();
  /// The datagrams' queue key, derived from the cluster's secret.
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
  ControlThread control_;  // destroyed before everything that it uses
};

}  // namespace nam::fabric::verbs
