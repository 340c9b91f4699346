#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace nam::fabric {

/// The work requests of a queue pair of either kind that may wait for their completions to be taken.
template <typename Options>
constexpr uint64_t PlacesOf(const Options& options) {
  return uint64_t{options.send_depth} + options.receive_depth;
}

/// What a completion queue has promised its queue pairs: room for the completions of all their work requests.
/// Their places together are at most its depth, so it cannot overflow. Used by one thread.
class CompletionPlaces {
 public:
  explicit CompletionPlaces(uint32_t depth) : depth_(depth) {}

  uint32_t depth() const { return depth_; }
  uint64_t reserved() const { return reserved_; }
  /// RESOURCE_EXHAUSTED if a queue pair with these places does not fit.
  absl::Status CheckRoom(uint64_t places) const;
  /// Requires room.
  void Reserve(uint64_t places) { reserved_ += places; }
  void Release(uint64_t places) { reserved_ -= places; }

 private:
  const uint32_t depth_;
  uint64_t reserved_ = 0;
};

}  // namespace nam::fabric
