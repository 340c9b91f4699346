#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/random.h"

namespace nam::testing {

/// Draws everything in tables and queries. A value follows only from the seed and the draws before it.
class Draw {
 public:
  /// Streams of one seed that differ in `use` or `number` are independent.
  Draw(uint64_t seed, uint64_t use, uint64_t number)
      : random_(MixBits(seed) ^ MixBits(MixBits(number + 1) + use * kGoldenGamma)) {}

  /// 0 … n - 1
  uint64_t Below(uint64_t n) { return random_.Below(n); }
  int64_t Between(int64_t low, int64_t high) { return random_.Between(low, high); }
  bool Percent(uint64_t percent) { return random_.Below(100) < percent; }
  double Fraction() { return random_.Fraction(); }

  template <typename T>
  const T& Of(const std::vector<T>& options) {
    return options[random_.Below(options.size())];
  }
  std::string Of(std::initializer_list<const char*> options) {
    return options.begin()[random_.Below(options.size())];
  }

 private:
  RandomStream random_;
};

}  // namespace nam::testing
