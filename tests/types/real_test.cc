#include "types/real.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace nam {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Any bits, but mostly numbers that are near to each other.
rc::Gen<double> AnyDouble() {
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::arbitrary<int64_t>(), [](int64_t n) { return std::bit_cast<double>(n); }),
      rc::gen::map(rc::gen::inRange(-3, 4), [](int n) { return n / 2.0; }),
      rc::gen::element(0.0, -0.0, kInfinity, -kInfinity, std::nan(""), -std::nan(""), 5e-324));
}

/// PostgreSQL's order: NaN is equal to itself and greater than all, 0 is -0.
int Order(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) - std::isnan(b);
  return a < b ? -1 : a > b ? 1 : 0;
}

RC_GTEST_PROP(RealProperty, BitsHaveTheOrderOfTheNumbers, ()) {
  const double a = *AnyDouble(), b = *AnyDouble();
  const int64_t x = OrderedBits(a), y = OrderedBits(b);
  RC_ASSERT((x < y ? -1 : x > y ? 1 : 0) == Order(a, b));
  RC_ASSERT(Order(FromOrderedBits(x), a) == 0);
  RC_ASSERT(OrderedBits(FromOrderedBits(x)) == x);
}

RC_GTEST_PROP(RealProperty, TextIsReadAsTheSameNumber, ()) {
  const double a = *AnyDouble();
  RC_ASSERT(OrderedBits(ParseReal(RealText(a, false), false).value()) == OrderedBits(a));
  const auto narrow = static_cast<double>(static_cast<float>(a));
  RC_ASSERT(OrderedBits(ParseReal(RealText(narrow, true), true).value()) == OrderedBits(narrow));
}

TEST(RealTest, Texts) {
  EXPECT_EQ(RealText(0.1, false), "0.1");
  EXPECT_EQ(RealText(static_cast<float>(0.1), true), "0.1");
  EXPECT_EQ(RealText(1e15, false), "1e+15");
  EXPECT_EQ(RealText(123456789012345, false), "123456789012345");
  EXPECT_EQ(RealText(1e-5, false), "1e-05");
  EXPECT_EQ(RealText(0.0001, false), "0.0001");
  EXPECT_EQ(RealText(1e6, true), "1e+06");
  EXPECT_EQ(RealText(-0.0, false), "0");
  EXPECT_EQ(RealText(-kInfinity, false), "-Infinity");
  EXPECT_EQ(ParseReal(" +1.5e3 ", false).value(), 1500);
  EXPECT_EQ(ParseReal("-inf", false).value(), -kInfinity);
  EXPECT_TRUE(std::isnan(ParseReal("NaN", false).value()));
  for (const char* text : {"", " ", "x", "1x", "1e", "--1", "+-1", "0x10", "1 2", "-nan"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseReal(text, false).status())) << text;
  }
  for (const char* text : {"1e400", "-1e400", "1e-400"})
    EXPECT_TRUE(absl::IsOutOfRange(ParseReal(text, false).status())) << text;
  EXPECT_TRUE(absl::IsOutOfRange(ParseReal("1e40", true).status()));
}

}  // namespace
}  // namespace nam
