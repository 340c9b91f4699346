#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"
#include "tests/fabric/sim_cluster.h"

/// Threads of a simulated world, and its time.
namespace nam::fabric::sim {
namespace {

TEST(SimScheduler, ChargesOverlapAndOrderThreads) {
  World world({});
  const auto fabric = Take(world.OpenFabric("h", {}));
  const int64_t begin_ns = world.NowNs();
  std::vector<int> ended;
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (const int ms : {3, 1, 2}) {
      threads.push_back(fabric->StartThread("worker", [&world, &ended, ms] {
        for (int i = 0; i < 100; ++i) world.clock().Charge(ms * kMs / 100);
        Sleep(world, 0);
        ended.push_back(ms);
      }));
    }
  }
  EXPECT_EQ(world.NowNs() - begin_ns, 3 * kMs) << "as on three cores";
  EXPECT_EQ(ended, (std::vector{1, 2, 3}));
}

TEST(SimScheduler, TheSeedDecidesWhoRunsFirst) {
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    World world({.seed = seed});
    const auto fabric = Take(world.OpenFabric("h", {}));
    std::string order;
    std::vector<std::unique_ptr<Thread>> threads;
    for (const char name : {'a', 'b', 'c'}) {
      threads.push_back(fabric->StartThread("worker", [&order, name] { order += name; }));
    }
    threads.clear();
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 3u);
}

TEST(SimScheduler, SpinningMovesTime) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  const WorkRequest write = WorkRequest::Write(1, client.local->Slice(0, 8), client.At(0));
  ASSERT_TRUE(client.pair->Post({&write, 1}).ok());
  Completion completion;
  while (client.completions->Poll({&completion, 1}) == 0) {
  }
  const auto event = client.fabric->CreateEvent();
  const auto setter = client.fabric->StartThread("setter", [&] {
    Sleep(world, kMs);
    event->Set();
  });
  while (!event->IsSet()) {
  }
}

TEST(SimScheduler, AnEventIsSetAtTheTimeOfWhoSetIt) {
  World world({});
  const auto fabric = Take(world.OpenFabric("h", {}));
  const auto event = fabric->CreateEvent();
  const int64_t begin_ns = world.NowNs();
  const auto setter = fabric->StartThread("setter", [&] {
    world.clock().Charge(5 * kMs);
    event->Set();
  });
  Sleep(world, kMs);
  EXPECT_FALSE(event->IsSet());
  EXPECT_FALSE(event->Wait(world.clock().After(1'000)));
  EXPECT_TRUE(event->Wait(Deadline::Never()));
  EXPECT_GE(world.NowNs() - begin_ns, 5 * kMs);
}

TEST(SimScheduler, AMutexMayBeHeldWhereverNothingWaits) {
  World world({});
  MemoryServer server(world, "m0");
  Client client(world, "c0", server);
  Mutex mutex;
  const auto work = [&] {
    for (int i = 0; i < 100; ++i) {
      {
        const MutexLock lock(mutex);
        const auto region = Take(client.fabric->Allocate(4096, {}));
        const auto event = client.fabric->CreateEvent();
        event->Set();
        world.clock().Charge(700);
        world.NowNs();
      }
      Sleep(world, 100);
    }
  };
  const auto one = client.fabric->StartThread("one", work);
  const auto other = client.fabric->StartThread("other", work);
}

using SimDeathTest = testing::Test;

TEST(SimDeathTest, ADeadlockNamesWhoWaitsForWhat) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        World world({.seed = 17, .replay = "nam sim --seed=17"});
        const auto fabric = Take(world.OpenFabric("m0", {}));
        const auto queue = Take(fabric->CreateCompletionQueue(1));
        const auto event = fabric->CreateEvent();
        const auto waiter = fabric->StartThread("waiter", [&] {
          Completion completion;
          queue->Wait({&completion, 1}, Deadline::Never());
        });
        event->Wait(Deadline::Never());
      },
      "seed 17.*deadlock.*\n.*driver waits for event.*\n.*waiter .process 1 on m0. waits for completion "
      "queue "
      ".*without a deadline\nreplay: nam sim --seed=17");
}

TEST(SimDeathTest, AHangIsReported) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        World world({.duration_ns_max = 5 * kMs, .on_hang = [](const std::string& report) {
                       std::fprintf(stderr, "told %zu", report.size() / 1000);
                     }});
        const auto fabric = Take(world.OpenFabric("m0", {}));
        const auto event = fabric->CreateEvent();
        while (true) event->Wait(world.clock().After(100));
      },
      "hang: virtual time ran out\n(.*\n)*told 0");
}

TEST(SimDeathTest, AThreadThatBlocksOutsideOfTheWorldIsNamed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        World world({.stuck_real_ms = 200});
        const auto fabric = Take(world.OpenFabric("m0", {}));
        Mutex mutex;
        const MutexLock held(mutex);
        const auto culprit = fabric->StartThread("culprit", [&] { const MutexLock lock(mutex); });
        Sleep(world, kMs);
      },
      "#1 culprit made no call of its fabric");
}

}  // namespace
}  // namespace nam::fabric::sim
