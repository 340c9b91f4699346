#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace nam::tpcw {

/// Durations in buckets of at most 1/16 relative width. One thread writes; any thread may read concurrently.
/// No allocation.
class LatencyHistogram {
 public:
  static constexpr size_t kBuckets = 16 * 61;
  using Counts = std::array<uint64_t, kBuckets>;

  void Add(int64_t ns) {
    auto& count = counts_[BucketOf(ns)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void AddTo(Counts& sum) const {
    for (size_t i = 0; i < kBuckets; ++i) sum[i] += counts_[i].load(std::memory_order_relaxed);
  }

  static size_t BucketOf(int64_t ns) {
    const auto n = static_cast<uint64_t>(ns < 0 ? 0 : ns);
    if (n < 16) return n;
    const auto doublings = static_cast<size_t>(std::bit_width(n)) - 5;
    return 16 * (doublings + 1) + ((n >> doublings) & 15);
  }
  /// The middle of a bucket.
  static double NsOf(size_t bucket) {
    if (bucket < 16) return static_cast<double>(bucket);
    const size_t doublings = bucket / 16 - 1;
    return (static_cast<double>(16 + bucket % 16) + 0.5) * static_cast<double>(uint64_t{1} << doublings);
  }
  /// The duration that `fraction` of all do not exceed; 0 if empty.
  static double PercentileNs(const Counts& counts, double fraction) {
    uint64_t sum = 0, seen = 0;
    for (const uint64_t count : counts) sum += count;
    for (size_t i = 0; i < kBuckets; ++i) {
      seen += counts[i];
      if (seen > 0 && static_cast<double>(seen) >= fraction * static_cast<double>(sum)) return NsOf(i);
    }
    return 0;
  }

 private:
  std::array<std::atomic<uint64_t>, kBuckets> counts_ = {};
};

}  // namespace nam::tpcw
