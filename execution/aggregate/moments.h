#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "plan/aggregate.h"

namespace nam::execution {

/// A sum in two's complement, lowest word first. Wraps: its owner ensures that it has room.
template <size_t kWords>
struct WideSum {
  std::array<uint64_t, kWords> words = {};

  void Add(const WideSum& other) {
    unsigned __int128 carry = 0;
    for (size_t i = 0; i < kWords; ++i) {
      carry += static_cast<unsigned __int128>(words[i]) + other.words[i];
      words[i] = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
  }
  WideSum Negative() const {
    WideSum out, one;
    one.words[0] = 1;
    for (size_t i = 0; i < kWords; ++i) out.words[i] = ~words[i];
    out.Add(one);
    return out;
  }
  bool negative() const { return words[kWords - 1] >> 63 != 0; }
};

/// The sums behind variances, covariances and correlations: exact, in any order of additions and removals. A
/// number has 127 bits and there are fewer than 2^63, so sums fit 192 bits, and sums of products 320.
class Moments {
 public:
  using Sum = WideSum<3>;
  using Products = WideSum<5>;

  /// Adds a value, or a pair; `b` is 0 where a function has one argument. The first argument of regressions
  /// is their y.
  void Add(__int128 a, __int128 b) { Accumulate(a, b, /*leaves=*/false); }
  void Remove(__int128 a, __int128 b) { Accumulate(a, b, /*leaves=*/true); }
  void Merge(const Moments& other);

  int64_t count() const { return count_; }
  /// The result of a function of one argument whose numbers have this scale, as a numeric's word; nullopt:
  /// NULL. 22003 if it has more than 36 digits before the point.
  absl::StatusOr<std::optional<__int128>> Result(plan::AggregateFunction function, int scale) const;
  /// The result of a function of two arguments with these scales; nullopt: NULL.
  std::optional<double> ResultOfPairs(plan::AggregateFunction function, int scale_a, int scale_b) const;

  /// The state at rest: count, sums and products of one argument, or of two; see plan::StatesOf.
  static constexpr size_t kWordsOfOne = 1 + 3 + 5, kWordsOfTwo = 1 + 2 * 3 + 3 * 5;
  void Write(std::span<int64_t> words) const;
  /// Reads a written state. Any words are a valid state unless the count is negative.
  static Moments Read(std::span<const int64_t> words);

 private:
  void Accumulate(__int128 a, __int128 b, bool leaves);

  int64_t count_ = 0;
  Sum a_, b_;
  Products aa_, bb_, ab_;
};

}  // namespace nam::execution
