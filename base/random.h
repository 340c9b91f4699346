#pragma once

#include <bit>
#include <cstdint>

namespace nam {

/// The finalizer of splitmix64: a bijection whose output bits all depend on all input bits.
constexpr uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15;

/// splitmix64: a sequence determined by its seed alone. A value; one thread.
class RandomStream {
 public:
  explicit constexpr RandomStream(uint64_t seed) : state_(seed) {}

  constexpr uint64_t Next() { return MixBits(state_ += kGoldenGamma); }
  /// 0 … n - 1
  constexpr uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(Next()) * n >> 64);
  }
  /// low … high, both included.
  constexpr int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low + 1)));
  }
  /// 0 … max; draws nothing when max is 0.
  constexpr int64_t UpTo(int64_t max) { return max <= 0 ? 0 : Between(0, max); }
  /// In [0, 1).
  constexpr double Fraction() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  constexpr bool OneIn(uint64_t n) { return Below(n) == 0; }
  /// Draws nothing if the outcome is certain.
  constexpr bool Happens(double probability) {
    if (probability <= 0) return false;
    return probability >= 1 || Fraction() < probability;
  }
  /// Every order of magnitude is equally likely.
  constexpr int64_t Magnitude(int64_t low, int64_t high) {
    const int doublings = static_cast<int>(std::bit_width(static_cast<uint64_t>(high / low)));
    const int64_t at_most = low << Below(static_cast<uint64_t>(doublings));
    return Between(low, at_most < high ? at_most : high);
  }

 private:
  uint64_t state_;
};

}  // namespace nam
