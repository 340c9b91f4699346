#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "fabric/sim/network.h"

namespace nam::fabric::sim {

/// Registered memory of a simulated process.
class SimRegion final : public MemoryRegion {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(Network& network, Process& process,
                                                                size_t bytes, Access access);
  ~SimRegion() override;
  /// Always true: no operation is half done while a thread runs, and an operation torn by the fault plan
  /// looks its key up again.
  bool Revoke() override;

 private:
  SimRegion(Process& process, const Regions::View& view, uint32_t key);

  Process& process_;
  const std::shared_ptr<const void> memory_;  // unmapped with its last owner
};

}  // namespace nam::fabric::sim
