#include "execution/join/mapped_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace nam::execution {
namespace {

/// Arrays that are allocated, mapped, taken from those left for the next tables, and too large for that.
TEST(MappedBytes, AreZeroWhateverTablesBeforeHaveWritten) {
  MemoryBudget budget(uint64_t{64} << 20);
  for (const uint64_t bytes : {uint64_t{1} << 10, uint64_t{128} << 10, (uint64_t{1} << 20) - 3,
                               uint64_t{1} << 20, uint64_t{6} << 20}) {
    for (int round = 0; round < 3; ++round) {
      std::vector<MappedBytes> tables;
      for (int i = 0; i < 3; ++i) {
        auto made = MappedBytes::Make(bytes, budget);
        ASSERT_TRUE(made.ok()) << made.status();
        EXPECT_EQ(std::count(made->data(), made->data() + bytes, std::byte{0}),
                  static_cast<std::ptrdiff_t>(bytes))
            << bytes << " bytes in round " << round;
        std::memset(made->data(), 0xab, bytes);
        tables.push_back(*std::move(made));
      }
      EXPECT_EQ(budget.used(), 3 * bytes);
    }
    EXPECT_EQ(budget.used(), 0U);
  }
}

}  // namespace
}  // namespace nam::execution
