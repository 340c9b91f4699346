#include "fabric/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace nam::fabric {
namespace {

TEST(RealThread, IsWaitedForByItsDestructor) {
  const std::unique_ptr<Event> begun = MakeRealEvent(), may_end = MakeRealEvent();
  std::atomic<bool> ended = false;
  std::unique_ptr<Thread> thread = StartRealThread("test", [&] {
    begun->Set();
    may_end->Wait(Deadline::Never());
    ended = true;
  });
  EXPECT_TRUE(begun->Wait(Deadline::Never()));
  EXPECT_FALSE(ended);
  may_end->Set();
  thread.reset();
  EXPECT_TRUE(ended);
}

TEST(RealThread, WhatTheBodyHoldsEndsWithIt) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  std::unique_ptr<Thread> thread = StartRealThread("test", [held = std::move(held)] {});
  thread.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(RealThread, ThreadsOfTheSystemAreUsedAgain) {
  std::thread::id first, second;
  StartRealThread("one", [&] { first = std::this_thread::get_id(); }).reset();
  StartRealThread("another", [&] { second = std::this_thread::get_id(); }).reset();
  EXPECT_EQ(first, second);
}

TEST(RealThread, AForkedProcessHasThreadsOfItsOwn) {
  StartRealThread("test", [] {}).reset();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a missing thread would be awaited forever
    bool ran = false;
    StartRealThread("test", [&] { ran = true; }).reset();
    _exit(ran ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// More than are ever parked, twice: each has its own thread although others wait.
TEST(RealThread, ManyRunAtTheSameTime) {
  constexpr int kThreads = 40;
  for (int round = 0; round < 2; ++round) {
    std::atomic<int> begun = 0;
    const std::unique_ptr<Event> all = MakeRealEvent();
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.push_back(StartRealThread("test", [&] {
        if (++begun == kThreads) all->Set();
        EXPECT_TRUE(all->Wait(RealClock().After(60'000'000))) << "a thread has not begun";
      }));
    }
    threads.clear();
    EXPECT_EQ(begun, kThreads);
  }
}

}  // namespace
}  // namespace nam::fabric
