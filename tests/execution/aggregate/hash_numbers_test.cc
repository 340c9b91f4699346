#include "execution/aggregate/hash_numbers.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace nam::execution {
namespace {

/// Each number has the hash that it has alone, also if the last ones fill no vector.
TEST(HashNumbers, AsEachNumberAlone) {
  RandomStream random(4);
  for (uint32_t count = 0; count <= 70; ++count) {
    for (const uint32_t from : {0U, 1U}) {
      std::vector<uint64_t> numbers(from + count);
      for (uint64_t& number : numbers) number = random.Below(UINT64_MAX) >> random.Below(64);
      if (count > 0) numbers.back() = UINT64_MAX;
      std::vector<uint32_t> hashes(count + 1, 0xdb);
      HashNumbers(numbers.data() + from, count, hashes.data());
      for (uint32_t i = 0; i < count; ++i)
        ASSERT_EQ(hashes[i], HashOfNumber(numbers[from + i])) << i << " of " << count;
      ASSERT_EQ(hashes[count], 0xdbU) << "what lies behind";
    }
  }
}

}  // namespace
}  // namespace nam::execution
