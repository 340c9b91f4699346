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

void Once(const FabricCase& wanted, std::byte* local, std::byte* remote) {
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

/// Performs as many operations between two clock reads as a lane does, over as many slots.
absl::StatusOr<double> MemoryRate(Clock& clock, Lane& lane, const FabricCase& wanted, int64_t duration_ns) {
  NAM_ASSIGN_OR_RETURN(std::byte* const remote, lane.View());
  std::byte* const local = lane.buffer().data();
  Scatter scatter(lane.region_bytes(), wanted.bytes, lane.seed());
  const uint64_t per_look = std::clamp<uint64_t>((1u << 20) / wanted.bytes, 1, 256);
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

FabricBound MemoryBound(fabric::Fabric& fabric, const Lanes& lanes) {
  return {.name = "memcpy and bare atomics on the same memory",
          .covers = [](Operation operation) { return operation != Operation::kSend; },
          .rate =
              [&](const FabricCase& wanted, int64_t duration_ns) {
                return SumOverLanes(fabric, lanes, wanted.threads, [&](Lane& lane, size_t) {
                  return MemoryRate(fabric.clock(), lane, wanted, duration_ns);
                });
              }};
}

FabricBound LineRateBound(double bytes_per_second, double messages_per_second) {
  return {.name = "the model's line and message rate",
          .covers = [](Operation) { return true; },
          .rate = [=](const FabricCase& wanted, int64_t) -> absl::StatusOr<double> {
            return std::min(messages_per_second, bytes_per_second / wanted.bytes);
          }};
}

}  // namespace nam::bench
