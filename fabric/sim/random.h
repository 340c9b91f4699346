#pragma once

#include <cstdint>

namespace nam::fabric::sim {

/// SplitMix64: one stream of the world's randomness.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// In [0, bound).
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  /// In [0, max]; draws nothing when max is 0.
  int64_t UpTo(int64_t max) {
    return max <= 0 ? 0 : static_cast<int64_t>(Below(static_cast<uint64_t>(max) + 1));
  }
  /// Draws nothing when it is certain.
  bool Happens(double probability) {
    if (probability <= 0) return false;
    if (probability >= 1) return true;
    return static_cast<double>(Next() >> 11) * 0x1p-53 < probability;
  }

 private:
  uint64_t state_;
};

}  // namespace nam::fabric::sim
