#include "execution/rows/permute_keys.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/random.h"
#include "execution/rows/row_layout.h"

namespace nam::execution {
namespace {

plan::Slot NonNullIntegers(__int128 low, __int128 high) {
  return {Type::Integer(), false, {low, high, true}};
}

/// Permutes keys of rows of two 4-byte numbers, of which the first or the second is the key, and of other
/// rows, for any number of rows.
TEST(PermuteKeys, AsTheDomainDoesKeyByKey) {
  const plan::Slot key = NonNullIntegers(1000, 1000 + (1 << 17) - 1), payload = NonNullIntegers(0, 1 << 30);
  const struct {
    plan::Schema schema;
    uint32_t field;
  } cases[] = {{{key, payload}, 0}, {{payload, key}, 1}, {{key, payload, NonNullIntegers(0, 9)}, 0}};
  RandomStream random(3);
  for (const auto& c : cases) {
    const auto layout = RowLayout::Of(c.schema, RowLayout::kSmallPageBytes);
    ASSERT_TRUE(layout.ok()) << layout.status();
    const RowField& field = layout->field(c.field);
    for (const plan::KeyDomain domain : {plan::KeyDomain{1000, 17}, {-70, 18}, {1000, 31}, {900, 5}}) {
      for (const uint32_t rows : {0U, 1U, 7U, 64U, 1021U}) {
        std::vector<std::byte> page(size_t{rows} * layout->stride());
        for (std::byte& b : page) b = static_cast<std::byte>(random.Below(256));
        std::vector<uint32_t> numbers(rows), out(rows + 1, 0xdb);
        for (uint32_t i = 0; i < rows; ++i) {
          numbers[i] = static_cast<uint32_t>(random.Below(1 << 17));
          std::memcpy(page.data() + size_t{i} * layout->stride() + field.offset, &numbers[i],
                      sizeof(uint32_t));
        }
        const PermutedBits bits{static_cast<uint32_t>(random.Below(5)), (1U << random.Below(32)) - 1};
        PermuteKeys(domain, field, bits, page.data(), rows, out.data());
        for (uint32_t i = 0; i < rows; ++i) {
          const uint64_t number = domain.NumberOf(field.base + int64_t{numbers[i]});
          ASSERT_EQ(out[i], domain.Permute(number) >> bits.shift & bits.mask) << i << " of " << rows;
        }
        ASSERT_EQ(out[rows], 0xdbU) << "what lies behind";
      }
    }
  }
}

/// No two numbers of a domain have the same place.
TEST(KeyDomain, IsPermuted) {
  for (const uint32_t bits : {1U, 2U, 7U, 16U, 17U}) {
    const plan::KeyDomain domain{0, bits};
    std::vector<bool> taken(domain.size());
    for (uint64_t number = 0; number < domain.size(); ++number) {
      const uint32_t place = domain.Permute(number);
      ASSERT_LT(place, domain.size());
      ASSERT_FALSE(taken[place]) << number << " of 2^" << bits;
      taken[place] = true;
    }
  }
}

TEST(KeyDomain, WhatIsPermutedComesBack) {
  RandomStream random(5);
  for (uint32_t bits = 1; bits <= plan::KeyDomain::kBitsMax; ++bits) {
    const plan::KeyDomain domain{-3, bits};
    const bool all = bits <= 14;
    for (uint64_t i = 0; i < (all ? domain.size() : 20'000); ++i) {
      const auto number = static_cast<uint32_t>(all      ? i
                                                : i == 0 ? domain.size() - 1
                                                         : random.Below(domain.size()));
      ASSERT_EQ(domain.Inverse(domain.Permute(number)), number) << "of 2^" << bits;
      ASSERT_EQ(domain.Permute(domain.Inverse(number)), number) << "of 2^" << bits;
    }
  }
}

}  // namespace
}  // namespace nam::execution
