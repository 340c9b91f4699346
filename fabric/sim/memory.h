#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "fabric/sim/network.h"

namespace nam::fabric::sim {

/// Registered memory of a simulated process: its own, or a part of another region's (Share).
class SimRegion final : public MemoryRegion {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(Network& network, Process& process,
                                                                size_t bytes, Access access);
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Share(Network& network, size_t offset, size_t bytes,
                                                      Access access) const;
  ~SimRegion() override;
  /// At once: nothing is in the middle of an operation while a thread runs, and one that the fault plan
  /// has torn looks its key up again.
  bool Revoke() override;

 private:
  static absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(Network& network, Process& process,
                                                                const Regions::View& view);
  SimRegion(Process& process, const Regions::View& view, uint32_t key);

  Process& process_;
  const std::shared_ptr<const void> memory_;  // unmapped with its last owner
  const uint64_t begin_;                      // Regions::View's
};

}  // namespace nam::fabric::sim
