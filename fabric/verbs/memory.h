#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "fabric/anonymous_mapping.h"
#include "fabric/fabric.h"
#include "fabric/verbs/core.h"
#include "fabric/verbs/handles.h"

namespace nam::fabric::verbs {

/// Peers' rights as the NIC has them, of a region or a queue pair: IBV_ACCESS_…
unsigned NicAccess(Access access);

/// Memory that is pinned and registered with the NIC, once.
///
/// It has pages of its own: a forked child does not inherit them (ibv_fork_init) and would also lose
/// everything else on them, down to the arguments of its exec.
class VerbsRegion final : public MemoryRegion {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(std::shared_ptr<Core> core, size_t bytes,
                                                                const AllocateOptions& options);
  /// Deregisters before the memory is unmapped.
  ~VerbsRegion() override;
  bool Revoke() override;

 private:
  VerbsRegion(std::shared_ptr<Core> core, AnonymousMapping mapping, size_t bytes, Access access);
  absl::Status Register();

  const std::shared_ptr<Core> core_;
  const AnonymousMapping mapping_;  // outlives its registration
  Mutex mutex_;
  bool retired_ ABSL_GUARDED_BY(mutex_) = false;
  MemoryRegionHandle handle_;  // under mutex_ once registered
};

}  // namespace nam::fabric::verbs
