#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "plan/aggregate.h"

namespace nam::execution {

/// The state behind variances, covariances and regressions of double precision: sums, and squares and
/// products of the distances from the average (Youngs and Cramer), which lose far fewer digits than sums of
/// squares. The first argument of regressions is their y. All zeroes is the state without values; trivially
/// copyable.
class RealMoments {
 public:
  /// Adds a value, or a pair; `b` is 0 where a function has one argument. OUT_OF_RANGE if finite numbers have
  /// an infinite result.
  absl::Status Add(double a, double b);
  absl::Status Merge(const RealMoments& other);

  int64_t count() const { return count_; }
  /// The function's result; nullopt: NULL.
  std::optional<double> Result(plan::AggregateFunction function) const;

  /// The state at rest, of one argument or of two; see plan::StatesOf. Numbers are as types/real.h has them.
  static constexpr size_t kWordsOfOne = 3, kWordsOfTwo = 6;
  void Write(std::span<int64_t> words) const;
  /// Reads a written state. Any words are a valid state unless the count is negative.
  static RealMoments Read(std::span<const int64_t> words);

 private:
  int64_t count_ = 0;
  double a_ = 0, aa_ = 0, b_ = 0, bb_ = 0, ab_ = 0;
};

}  // namespace nam::execution
