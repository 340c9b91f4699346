#pragma once

#include <bit>
#include <cstdint>

namespace nam::simulation {

/// The choices of a scenario, from its seed alone (splitmix64): what a run does stays the same whatever
/// the world draws. One thread.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// 0 … n - 1
  uint64_t Below(uint64_t n) { return Next() % n; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low + 1)));
  }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  /// Every order of magnitude as likely as any other.
  int64_t Magnitude(int64_t low, int64_t high) {
    const int doublings = static_cast<int>(std::bit_width(static_cast<uint64_t>(high / low)));
    const int64_t at_most = low << Below(static_cast<uint64_t>(doublings));
    return Between(low, at_most < high ? at_most : high);
  }

 private:
  uint64_t state_;
};

}  // namespace nam::simulation
