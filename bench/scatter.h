#pragma once

#include <cstdint>

#include "base/check.h"

namespace nam::bench {

/// Places of `bytes` bytes in a memory of `span_bytes`, in an order that hardware cannot predict; the same
/// for a fabric and for its bound.
class Scatter {
 public:
  Scatter(uint64_t span_bytes, uint64_t bytes, uint64_t seed = 0)
      : bytes_(bytes), places_(span_bytes / bytes), state_(seed) {
    NAM_CHECK(places_ > 0);
  }
  /// Returns a multiple of `bytes`.
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    // The high half times the number of places, scaled down.
    return ((state_ >> 32) * places_ >> 32) * bytes_;
  }

 private:
  const uint64_t bytes_;
  const uint64_t places_;
  uint64_t state_;
};

}  // namespace nam::bench
