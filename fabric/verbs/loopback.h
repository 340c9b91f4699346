#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "fabric/verbs/handles.h"

namespace nam::fabric::verbs {

/// Two connected RC queue pairs of one port and two words of registered memory, to test a device's atomics.
/// One thread.
class Loopback {
 public:
  static absl::StatusOr<std::unique_ptr<Loopback>> Connect(ibv_context* context, uint8_t port,
                                                           const ibv_port_attr& attributes,
                                                           const ibv_gid_entry& gid);
  /// The target of the swaps.
  uint64_t& word() { return words_[0]; }
  /// Returns the previous value of the word. DEADLINE_EXCEEDED after two seconds.
  absl::StatusOr<uint64_t> CompareAndSwap(uint64_t compare, uint64_t swap);

 private:
  Loopback() = default;
  absl::Status Create(ibv_context* context);
  absl::Status ConnectPair(ibv_qp* mine, ibv_qp* theirs, uint8_t port, const ibv_port_attr& attributes,
                           const ibv_gid_entry& gid);
  absl::Status AwaitCompletion();

  alignas(64) std::array<uint64_t, 2> words_{};  // the target, then a swap's result
  ProtectionDomainHandle domain_;
  CompletionQueueHandle completions_;
  MemoryRegionHandle region_;
  QueuePairHandle initiator_;
  QueuePairHandle target_;
};

}  // namespace nam::fabric::verbs
