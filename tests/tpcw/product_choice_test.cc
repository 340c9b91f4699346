#include "tpcw/product_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace nam::tpcw {
namespace {

std::vector<int> Draws(uint64_t products, double theta, int draws) {
  const ProductChoice choice(products, theta);
  RandomStream random(42);
  std::vector<int> counts(products);
  for (int i = 0; i < draws; ++i) ++counts.at(choice.Draw(random));
  return counts;
}

TEST(ProductChoice, UniformReachesAllAlike) {
  const auto counts = Draws(100, 0, 1'000'000);
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 9'000);
  EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 11'000);
}

TEST(ProductChoice, ZipfFollowsItsLaw) {
  auto counts = Draws(1'000, 0.9, 1'000'000);
  std::vector<int> sorted = counts;
  std::sort(sorted.rbegin(), sorted.rend());
  double zeta = 0;
  for (int i = 1; i <= 1'000; ++i) zeta += std::pow(i, -0.9);
  EXPECT_NEAR(sorted[0], 1e6 / zeta, 2'000);
  EXPECT_NEAR(sorted[1], 1e6 / zeta * std::pow(2, -0.9), 2'000);
  EXPECT_NEAR(sorted[99], 1e6 / zeta * std::pow(100, -0.9), 300);
  EXPECT_GT(sorted.back(), 0);
  // Popular ones do not lie beside each other.
  const auto hottest = std::max_element(counts.begin(), counts.end()) - counts.begin();
  EXPECT_LT(counts[static_cast<size_t>(hottest + 1) % 1'000], sorted[20]);
}

TEST(ProductChoice, TheSeedDecides) {
  EXPECT_EQ(Draws(1'000, 0.5, 1'000), Draws(1'000, 0.5, 1'000));
}

}  // namespace
}  // namespace nam::tpcw
