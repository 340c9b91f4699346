#include "execution/scan/code_select.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace nam::execution {
namespace {

constexpr uint32_t kRows = 1'000;

/// The first `codes` codes of `width` bytes, and the results of testing them one by one.
struct Page {
  Page(uint8_t width, uint64_t codes, uint64_t seed) : bytes((kRows * width + 7) / 8 * 8), width(width) {
    RandomStream random(seed);
    for (uint32_t row = 0; row < kRows; ++row) {
      const uint64_t code = random.Below(codes);
      std::memcpy(bytes.data() + size_t{row} * width, &code, width);
    }
  }
  uint64_t at(uint32_t row) const {
    uint64_t code = 0;
    std::memcpy(&code, bytes.data() + size_t{row} * width, width);
    return code;
  }
  CodePage source() const { return {bytes.data(), width}; }
  std::vector<std::byte> bytes;
  uint8_t width;
};

void CheckCodeTest(const CodeTest& test, const Page& page) {
  SCOPED_TRACE(int{page.width});
  // Every remainder of the lanes, from even and odd beginnings.
  for (const uint32_t first : {0u, 1u, 17u}) {
    for (uint32_t count = 0; first + count <= kRows; count += count < 70 ? 1 : 131) {
      std::vector<uint32_t> expected;
      for (uint32_t row = first; row < first + count; ++row) {
        if (test.Passes(page.at(row))) expected.push_back(row);
      }
      std::vector<uint32_t> rows(count);
      rows.resize(SelectCodes(test, page.source(), first, count, rows.data()));
      ASSERT_EQ(rows, expected) << first << " + " << count;
      std::vector<uint32_t> again(count);
      std::iota(again.begin(), again.end(), first);
      again.resize(SelectRows(test, page.source(), count, again.data()));
      ASSERT_EQ(again, expected) << first << " + " << count;
    }
  }
}

TEST(CodeSelect, Ranges) {
  for (const uint8_t width : {1, 2, 4, 8}) {
    const Page page(width, 200, 1);
    CheckCodeTest({.low = 50, .spread = 100}, page);
    CheckCodeTest({.low = 0, .spread = UINT64_MAX}, page);
    CheckCodeTest({.low = 10, .spread = UINT64_MAX - 10}, page);
    CheckCodeTest({.low = 199, .spread = 0}, page);
    CheckCodeTest({.low = uint64_t{1} << 32, .spread = 5}, page);
  }
}

TEST(CodeSelect, BitsOfAPart) {
  RandomStream random(2);
  std::vector<uint32_t> bits(1'000);
  for (uint32_t& word : bits) word = static_cast<uint32_t>(random.Next());
  for (const uint8_t width : {1, 2, 4, 8}) {
    const Page page(width, 250, 3);
    CheckCodeTest({.low = 0, .spread = 255, .bits = bits.data(), .shift = 3}, page);
    CheckCodeTest({.low = 20, .spread = 180, .bits = bits.data(), .delta = 1'000}, page);
    CheckCodeTest({.low = 100, .spread = 99, .bits = bits.data(), .delta = uint64_t{0} - 100}, page);
  }
}

TEST(CodeSelect, BitsOfAllParts) {
  RandomStream random(4);
  std::vector<uint32_t> bits(8 * 128 / 32);
  for (uint32_t& word : bits) word = static_cast<uint32_t>(random.Next());
  for (const uint8_t width : {2, 4, 8}) {
    CheckCodeTest({.low = 24,
                   .spread = 999,
                   .bits = bits.data(),
                   .delta = uint64_t{0} - 24,
                   .shift = 3,
                   .part_size = 128},
                  Page(width, 1'100, 5));
  }
}

}  // namespace
}  // namespace nam::execution
