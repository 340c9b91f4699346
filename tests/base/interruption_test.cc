#include "base/interruption.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace nam {
namespace {

TEST(InterruptionTest, IsOfTheInnermostScopeOfAThread) {
  std::atomic<bool> outer = false, inner = false;
  EXPECT_FALSE(Interruption::requested());
  {
    const Interruption of_outer(&outer);
    EXPECT_EQ(Interruption::flag(), &outer);
    outer = true;
    EXPECT_TRUE(Interruption::requested());
    {
      const Interruption of_inner(&inner);
      EXPECT_FALSE(Interruption::requested());
      const Interruption none(nullptr);
      EXPECT_EQ(Interruption::flag(), nullptr);
    }
    EXPECT_TRUE(Interruption::requested());
    bool elsewhere = true;
    std::thread([&] { elsewhere = Interruption::requested(); }).join();
    EXPECT_FALSE(elsewhere);
  }
  EXPECT_EQ(Interruption::flag(), nullptr);
}

}  // namespace
}  // namespace nam
