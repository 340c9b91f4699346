#pragma once

#include <cstdint>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "fabric/fabric.h"

namespace nam::fabric::sim {

/// The registered regions of one process. Keys are index:18 | drawn:12, so none is guessed by counting, and
/// none is used twice.
class Regions {
 public:
  struct View {
    std::byte* data = nullptr;
    size_t bytes = 0;
    Access access = Access::kNone;
  };

  /// RESOURCE_EXHAUSTED when a process has used up its keys.
  absl::StatusOr<uint32_t> Register(const View& view, RandomStream& random);
  void Remove(uint32_t key) { views_.erase(key); }

  /// Any bytes of a region, for a peer: kOk, or the status that the operation completes with.
  CompletionStatus Resolve(RemoteAddress address, uint32_t bytes, Access wanted, std::byte*& at) const;
  bool Contains(const LocalBuffer& buffer) const;

 private:
  std::unordered_map<uint32_t, View> views_;  // never iterated
  uint32_t made_ = 0;
};

}  // namespace nam::fabric::sim
