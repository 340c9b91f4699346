#include "fabric/sim/cache_model.h"

#include <algorithm>

#include "base/check.h"

namespace nam::fabric::sim {
namespace {

constexpr double kCyclesPerNs = 2.2;
constexpr double kOverlapping = 4;
constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr uint32_t kSockets = 2;

constexpr int64_t Ps(double latency_ns) {
  return static_cast<int64_t>(latency_ns / kOverlapping * 1000);
}

}  // namespace

CacheModel CacheModel::XeonE5(uint32_t threads, uint32_t divisor) {
  NAM_CHECK(threads > 0 && divisor > 0);
  return {.name = "2 x Intel Xeon E5-2660 v2",
          .l1_bytes = 32 * kKiB / divisor,
          .l2_bytes = 256 * kKiB / divisor,
          .l3_bytes = 25 * kMiB * kSockets / std::max(threads, kSockets) / divisor,
          .l2_ps = Ps(12 / kCyclesPerNs),
          .l3_ps = Ps(30 / kCyclesPerNs),
          .memory_ps = Ps(30 / kCyclesPerNs + 53)};
}

int64_t CacheModel::AccessPs(uint64_t working_set_bytes) const {
  if (working_set_bytes <= l1_bytes) return 0;
  const auto bytes = static_cast<double>(working_set_bytes);
  const auto up_to = [&](uint64_t cache_bytes) {
    return std::min(1.0, static_cast<double>(cache_bytes) / bytes);
  };
  const double in_l1 = up_to(l1_bytes), in_l2 = up_to(l2_bytes), in_l3 = up_to(l3_bytes);
  return static_cast<int64_t>((in_l2 - in_l1) * static_cast<double>(l2_ps) +
                              (in_l3 - in_l2) * static_cast<double>(l3_ps) +
                              (1 - in_l3) * static_cast<double>(memory_ps));
}

}  // namespace nam::fabric::sim
