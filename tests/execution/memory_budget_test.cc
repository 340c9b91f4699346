#include "execution/memory_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"

namespace nam::execution {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

TEST(MemoryBudgetTest, TwoBudgetsShareAGrantThatGrows) {
  ServerMemory memory(10 * kMib);
  ASSERT_TRUE(memory.Reserve(kMib));
  {
    MemoryGrant grant(memory, kMib);
    MemoryBudget build(8 * kMib, &grant), result(uint64_t{1} << 40, &grant);
    EXPECT_EQ(result.bytes(), 10 * kMib) << "no more than the server has";
    EXPECT_TRUE(build.Reserve(kMib / 2) && result.Reserve(kMib / 2));
    EXPECT_EQ(memory.used(), kMib) << "what it has from the beginning on";
    EXPECT_TRUE(result.Reserve(1));
    EXPECT_EQ(memory.used(), 2 * kMib) << "a step more";
    EXPECT_FALSE(build.Reserve(8 * kMib)) << "its own bound";
    EXPECT_FALSE(grant.refused());
    result.Release(kMib / 2 + 1);
    build.Release(kMib / 2);
    EXPECT_EQ(memory.used(), 2 * kMib) << "until the attempt ends";
  }
  EXPECT_EQ(memory.used(), 0);
}

TEST(MemoryBudgetTest, WhatOthersHaveIsRefused) {
  ServerMemory memory(4 * kMib);
  ASSERT_TRUE(memory.Reserve(kMib) && memory.Reserve(2 * kMib));
  EXPECT_FALSE(memory.Reserve(2 * kMib));
  MemoryGrant one(memory, kMib), other(memory, 2 * kMib);
  MemoryBudget budget(4 * kMib, &one);
  EXPECT_FALSE(budget.Reserve(3 * kMib));
  EXPECT_TRUE(one.refused());
  EXPECT_EQ(budget.used(), 0) << "what is refused is not taken";
  EXPECT_TRUE(budget.Reserve(2 * kMib)) << "what is left";
  EXPECT_FALSE(other.refused());
  budget.Release(2 * kMib);
}

/// Neither the budget nor the server is ever overdrawn, nor is anything lost.
TEST(MemoryBudgetTest, ThreadsTakeAndGive) {
  constexpr uint64_t kMost = 20 * kMib;
  ServerMemory memory(kMost);
  constexpr int kAttempts = 3, kThreads = 3, kRounds = 20'000;
  std::vector<std::unique_ptr<MemoryGrant>> grants;
  std::vector<std::unique_ptr<MemoryBudget>> budgets;
  for (int a = 0; a < kAttempts; ++a) {
    ASSERT_TRUE(memory.Reserve(kMib));
    grants.push_back(std::make_unique<MemoryGrant>(memory, kMib));
    budgets.push_back(std::make_unique<MemoryBudget>(15 * kMib, grants.back().get()));
  }
  std::atomic<uint64_t> held = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kAttempts * kThreads; ++t) {
    threads.emplace_back([&, t] {
      MemoryBudget& budget = *budgets[static_cast<size_t>(t % kAttempts)];
      RandomStream random(static_cast<uint64_t>(t));
      std::vector<uint64_t> taken;
      for (int i = 0; i < kRounds; ++i) {
        const uint64_t bytes = 1 + random.Below(2 * kMib);
        if (random.OneIn(2) && budget.Reserve(bytes)) {
          taken.push_back(bytes);
          EXPECT_LE(held += bytes, kMost);
        } else if (!taken.empty()) {
          held -= taken.back();
          budget.Release(taken.back());
          taken.pop_back();
        }
      }
      for (const uint64_t bytes : taken) {
        held -= bytes;
        budget.Release(bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(memory.used(), kMost);
  budgets.clear();
  grants.clear();
  EXPECT_EQ(memory.used(), 0);
}

}  // namespace
}  // namespace nam::execution
