#include "tpch/text_pool.h"

#include <set>

#include "gtest/gtest.h"

namespace nam::tpch {
namespace {

TEST(TextPoolTest, IsSentencesOfTheGrammar) {
  const std::string_view pool = TextPool();
  EXPECT_EQ(pool.size(), size_t{16} << 20);
  EXPECT_EQ(pool.find("  "), std::string_view::npos);
  EXPECT_EQ(pool.find(" ."), std::string_view::npos);
  for (const char* words :
       {"special", "requests", "according to the", "furiously", ". ", "--", "pinto beans"})
    EXPECT_NE(pool.find(words), std::string_view::npos) << words;
}

TEST(TextPoolTest, SubstringsOfAllLengths) {
  std::set<size_t> lengths;
  std::set<std::string_view> texts;
  for (uint64_t row = 0; row < 1'000; ++row) {
    const std::string_view text = PoolText(dataset::RowRandom(1, row).Word(0), 10, 43);
    lengths.insert(text.size());
    texts.insert(text);
  }
  EXPECT_EQ(lengths.size(), 34u);
  EXPECT_EQ(*lengths.begin(), 10u);
  EXPECT_EQ(*lengths.rbegin(), 43u);
  EXPECT_GT(texts.size(), 990u);
}

}  // namespace
}  // namespace nam::tpch
