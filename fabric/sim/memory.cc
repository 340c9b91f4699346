#include "fabric/sim/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::fabric::sim {

absl::StatusOr<std::unique_ptr<MemoryRegion>> SimRegion::Allocate(Network& network, Process& process,
                                                                  size_t bytes, Access access) {
  if (bytes == 0) return absl::InvalidArgumentError("a memory region of 0 bytes");
  void* data = MAP_FAILED;
  errno = ENOMEM;
  if (bytes <= SIZE_MAX / 2) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "no memory for a region of %d bytes (%s): allocate less, or see `ulimit -v`, the control group's "
        "memory limit and vm.overcommit_memory",
        bytes, strerror(errno)));
  }
  const std::shared_ptr<const void> memory(data, [data, bytes](const void*) { munmap(data, bytes); });
  const Regions::View view{static_cast<std::byte*>(data), bytes, access, memory,
                           process.regions.AllocateAddresses(bytes)};
  NAM_ASSIGN_OR_RETURN(const uint32_t key, process.regions.Register(view, network.random()));
  return std::unique_ptr<MemoryRegion>(new SimRegion(process, view, key));
}

SimRegion::SimRegion(Process& process, const Regions::View& view, uint32_t key)
    : process_(process), memory_(view.memory) {
  data_ = view.data;
  bytes_ = view.bytes;
  access_ = view.access;
  rkey_ = {key};
  lkey_ = {key};
}

SimRegion::~SimRegion() {
  Revoke();
}

bool SimRegion::Revoke() {
  process_.regions.Remove(rkey_.value);
  return true;
}

}  // namespace nam::fabric::sim
