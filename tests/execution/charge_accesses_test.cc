#include <gtest/gtest.h>

#include <atomic>

#include "base/cache_costs.h"
#include "base/clock.h"
#include "execution/task.h"

namespace nam::execution {
namespace {

class VirtualClock : public Clock {
 public:
  int64_t NowNs() const override { return charged_ns; }
  void SleepUntil(Deadline) override {}
  void Charge(int64_t ns) override { charged_ns += ns; }

  int64_t charged_ns = 0;
};

class ClockWithCaches final : public VirtualClock, public CacheCosts {
 public:
  int64_t AccessPs(uint64_t working_set_bytes) const override { return working_set_bytes > 100 ? 3'000 : 0; }
};

int64_t NsOf(VirtualClock& clock, uint64_t accesses, uint64_t bytes) {
  MemoryBudget budget(0);
  const std::atomic<bool> cancel = false;
  TaskContext context(clock, budget, cancel);
  ChargeAccesses(context, accesses, bytes);
  context.Settle();
  return clock.charged_ns;
}

TEST(ChargeAccesses, TakesTheTimeThatTheClocksCachesSay) {
  ClockWithCaches fits, exceeds;
  EXPECT_EQ(NsOf(fits, 1000, 100), 0);
  EXPECT_EQ(NsOf(exceeds, 1000, 101), 3000);
}

TEST(ChargeAccesses, CostsNothingWithoutCaches) {
  VirtualClock clock;
  EXPECT_EQ(NsOf(clock, 1000, 101), 0);
  MemoryBudget budget(0);
  const std::atomic<bool> cancel = false;
  TaskContext real(RealClock(), budget, cancel);
  ChargeAccesses(real, 1000, 101);
}

}  // namespace
}  // namespace nam::execution
