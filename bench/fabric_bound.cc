#include "bench/fabric_bound.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.h"
#include "base/status_macros.h"
#include "bench/scatter.h"

namespace nam::bench {
namespace {

/// Prevents the compiler from moving or removing memory accesses.
void Clobber() {
  asm volatile("" ::: "memory");
}

class MemoryBound final : public FabricBound {
 public:
  MemoryBound(fabric::Fabric& fabric, const Lanes& lanes) : fabric_(fabric), lanes_(lanes) {}
  const char* name() const override { return "memcpy and bare atomics on the same memory"; }
  bool Covers(const FabricCase& wanted) const override { return wanted.operation != Operation::kSend; }
  absl::StatusOr<double> Rate(const FabricCase& wanted, int64_t duration_ns) override {
    return SumOverLanes(fabric_, lanes_, wanted.threads,
                        [&](Lane& lane, size_t) { return RateOf(lane, wanted, duration_ns); });
  }

 private:
  /// Performs as many operations between two clock reads as a lane does, over as many slots.
  absl::StatusOr<double> RateOf(Lane& lane, const FabricCase& wanted, int64_t duration_ns) {
    NAM_ASSIGN_OR_RETURN(std::byte* const remote, lane.View());
    std::byte* const local = lane.buffer().data();
    Scatter scatter(lane.region_bytes(), wanted.bytes, lane.seed());
    const uint64_t per_look = std::clamp<uint64_t>((1u << 20) / wanted.bytes, 1, 256);
    Clock& clock = fabric_.clock();
    const int64_t start_ns = clock.NowNs();
    int64_t now_ns = start_ns;
    uint64_t operations = 0;
    uint32_t slot = 0;
    while (now_ns - start_ns < duration_ns) {
      for (uint64_t i = 0; i < per_look; ++i) {
        Once(wanted, local + uint64_t{slot} * wanted.bytes, remote + scatter.Next());
        slot = slot + 1 == wanted.in_flight ? 0 : slot + 1;
      }
      operations += per_look;
      now_ns = clock.NowNs();
    }
    return static_cast<double>(operations) * 1e9 / static_cast<double>(now_ns - start_ns);
  }

  static void Once(const FabricCase& wanted, std::byte* local, std::byte* remote) {
    std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(remote));
    uint64_t old = 0;
    switch (wanted.operation) {
      case Operation::kRead:
        std::memcpy(local, remote, wanted.bytes);
        break;
      case Operation::kWrite:
        std::memcpy(remote, local, wanted.bytes);
        break;
      case Operation::kCompareAndSwap:
        word.compare_exchange_strong(old, 0);
        std::memcpy(local, &old, sizeof(old));
        break;
      default:
        old = word.fetch_add(1);
        std::memcpy(local, &old, sizeof(old));
        break;
    }
    Clobber();
  }

  fabric::Fabric& fabric_;
  const Lanes& lanes_;
};

class LineRateBound final : public FabricBound {
 public:
  LineRateBound(double bytes_per_second, double messages_per_second)
      : bytes_per_second_(bytes_per_second), messages_per_second_(messages_per_second) {}
  const char* name() const override { return "the model's line and message rate"; }
  bool Covers(const FabricCase&) const override { return true; }
  absl::StatusOr<double> Rate(const FabricCase& wanted, int64_t) override {
    return std::min(messages_per_second_, bytes_per_second_ / wanted.bytes);
  }

 private:
  const double bytes_per_second_;
  const double messages_per_second_;
};

}  // namespace

absl::StatusOr<double> SumOverLanes(fabric::Fabric& fabric, const Lanes& lanes, uint32_t threads,
                                    const std::function<absl::StatusOr<double>(Lane&, size_t)>& body) {
  NAM_CHECK(threads <= lanes.size());
  std::vector<absl::StatusOr<double>> results(threads);
  std::vector<std::unique_ptr<fabric::Thread>> running;
  for (size_t i = 0; i < threads; ++i)
    running.push_back(fabric.StartThread("bench-lane", [&, i] { results[i] = body(*lanes[i], i); }));
  running.clear();
  double sum = 0;
  for (const absl::StatusOr<double>& result : results) {
    NAM_RETURN_IF_ERROR(result.status());
    sum += *result;
  }
  return sum;
}

std::unique_ptr<FabricBound> MakeMemoryBound(fabric::Fabric& fabric, const Lanes& lanes) {
  return std::make_unique<MemoryBound>(fabric, lanes);
}

std::unique_ptr<FabricBound> MakeLineRateBound(double bytes_per_second, double messages_per_second) {
  return std::make_unique<LineRateBound>(bytes_per_second, messages_per_second);
}

}  // namespace nam::bench
