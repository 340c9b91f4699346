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
  static absl::StatusOr<std::unique_ptr<MemoryRegion>> Share(Network& network, Process& process,
                                                             std::byte* data, size_t bytes, Access access);
  ~SimRegion() override;
  /// At once: nothing is in the middle of an operation while a thread runs, and one that the fault plan
  /// has torn looks its key up again.
  bool Revoke() override;

 private:
  SimRegion(Process& process, std::byte* data, size_t bytes, Access access, uint32_t key);

  Process& process_;
  size_t mapped_bytes_ = 0;  // 0: the memory is another region's
};

}  // namespace nam::fabric::sim
