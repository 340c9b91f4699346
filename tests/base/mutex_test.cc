#include "base/mutex.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

namespace nam {
namespace {

/// Whether another thread can take it now.
bool IsFree(Mutex& mutex) {
  bool is_free = false;
  std::thread([&] {
    if (!mutex.TryLock()) return;
    const MutexLock lock(mutex, std::adopt_lock);
    is_free = true;
  }).join();
  return is_free;
}

TEST(MutexTest, OneThreadAtATimeHoldsIt) {
  Mutex mutex;
  int64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100'000; ++i) {
        const MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 200'000);
}

TEST(MutexTest, TryLockFailsWhileAnotherThreadHoldsIt) {
  Mutex mutex;
  {
    const MutexLock lock(mutex);
    EXPECT_FALSE(IsFree(mutex));
  }
  EXPECT_TRUE(IsFree(mutex));
  EXPECT_TRUE(IsFree(mutex)) << "the guard that took it over has unlocked it";
}

TEST(MutexTest, WaitersSeeWhatTheyAreToldOf) {
  Mutex mutex;
  ConditionVariable changed;
  int turn = 0;
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int t = 2; t >= 0; --t) {
    threads.emplace_back([&, t] {
      const MutexLock lock(mutex);
      while (turn != t) {
        if (t == 1) {
          EXPECT_TRUE(changed.WaitUntil(mutex, Deadline::Never()));
        } else {
          changed.Wait(mutex);
        }
      }
      order.push_back(turn++);
      changed.NotifyAll();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(MutexTest, AWaitEndsWithItsDeadline) {
  Mutex mutex;
  ConditionVariable changed;
  const MutexLock lock(mutex);
  for (const int64_t ns :
       {std::numeric_limits<int64_t>::min(), int64_t{-1}, int64_t{0}, RealClock().NowNs()}) {
    while (changed.WaitUntil(mutex, {ns})) {
    }
    EXPECT_FALSE(IsFree(mutex)) << "it is held again";
  }
}

}  // namespace
}  // namespace nam
