#include "types/numeric.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "types/decimal.h"
#include "types/real.h"
#include "types/sql_error.h"
#include "types/value.h"
#include "types/wide_integer.h"

namespace nam {
namespace {

Numeric N(std::string_view text) {
  return ParseNumericText(text).value();
}

std::string Text(const absl::StatusOr<Numeric>& number) {
  if (number.ok()) return NumericText(*number);
  if (const std::optional<SqlError> error = SqlErrorOf(number.status())) return "!" + error->sqlstate;
  return absl::IsOutOfRange(number.status())        ? "!22003"
         : absl::IsInvalidArgument(number.status()) ? "!22P02"
                                                    : number.status().ToString();
}
std::string Text(const std::optional<Numeric>& number) {
  return number.has_value() ? NumericText(*number) : "!22003";
}
std::string Text(const Numeric& number) {
  return NumericText(number);
}

/// The sums that servers keep of numbers.
struct Sums {
  __int128 limbs[kNumericLimbs] = {}, squares[kNumericSquareLimbs] = {};
  int scale = 0;
  int64_t count = 0;
};

Sums SumsOf(const std::vector<Numeric>& numbers) {
  Sums out;
  for (const Numeric& n : numbers) {
    for (int i = 0; i < kNumericLimbs; ++i) out.limbs[i] += NumericLimb(n, i);
    for (int i = 0; i < kNumericSquareLimbs; ++i) out.squares[i] += NumericSquareLimb(n, i);
    out.scale = std::max<int>(out.scale, n.scale);
    ++out.count;
  }
  return out;
}

using Arguments = std::vector<std::string>;

/// What the library makes of a line of numeric_cases.txt.
std::string Result(const std::string& name, const Arguments& a) {
  if (name == "parse") return Text(ParseNumericText(a[0]));
  if (name == "of_double") return Text(NumericOfDouble(ParseReal(a[0], /*real=*/false).value()));
  if (name == "of_real")
    return Text(NumericOfReal(static_cast<float>(ParseReal(a[0], /*real=*/true).value())));
  std::vector<Numeric> n;
  for (const std::string& text : a) n.push_back(N(text));
  using One = std::function<std::string(const Numeric&)>;
  static const std::map<std::string, One> kOfOne = {
      {"floor", [](const Numeric& x) { return Text(FloorNumeric(x)); }},
      {"ceil", [](const Numeric& x) { return Text(CeilNumeric(x)); }},
      {"abs", [](const Numeric& x) { return Text(AbsNumeric(x)); }},
      {"negate", [](const Numeric& x) { return Text(NegateNumeric(x)); }},
      {"sign", [](const Numeric& x) { return Text(SignNumeric(x)); }},
      {"trim", [](const Numeric& x) { return Text(TrimScaleNumeric(x)); }},
      {"to_double", [](const Numeric& x) { return RealText(NumericToDouble(x), /*real=*/false); }},
      {"exp", [](const Numeric& x) { return Text(NumericExp(x)); }},
      {"ln", [](const Numeric& x) { return Text(NumericLn(x)); }},
      {"sqrt", [](const Numeric& x) { return Text(NumericSqrt(x)); }},
  };
  if (const auto one = kOfOne.find(name); one != kOfOne.end()) return one->second(n[0]);
  using Two = std::function<std::string(const Numeric&, const Numeric&)>;
  static const std::map<std::string, Two> kOfTwo = {
      {"add", [](const Numeric& x, const Numeric& y) { return Text(AddNumerics(x, y)); }},
      {"subtract", [](const Numeric& x, const Numeric& y) { return Text(SubtractNumerics(x, y)); }},
      {"multiply", [](const Numeric& x, const Numeric& y) { return Text(MultiplyNumerics(x, y)); }},
      {"divide", [](const Numeric& x, const Numeric& y) { return Text(DivideNumerics(x, y)); }},
      {"modulo", [](const Numeric& x, const Numeric& y) { return Text(ModuloNumerics(x, y)); }},
      {"whole_quotient",
       [](const Numeric& x, const Numeric& y) { return Text(WholeQuotientOfNumerics(x, y)); }},
      {"compare", [](const Numeric& x, const Numeric& y) { return std::to_string(CompareNumerics(x, y)); }},
      {"power", [](const Numeric& x, const Numeric& y) { return Text(NumericPower(x, y)); }},
      {"log", [](const Numeric& x, const Numeric& y) { return Text(NumericLog(x, y)); }},
      {"round",
       [](const Numeric& x, const Numeric& y) { return Text(RoundNumeric(x, static_cast<int>(y.digits))); }},
      {"trunc",
       [](const Numeric& x, const Numeric& y) { return Text(TruncNumeric(x, static_cast<int>(y.digits))); }},
      {"decimal",
       [](const Numeric& x, const Numeric& y) {
         const std::optional<__int128> n = NumericToDecimal(x, static_cast<int>(y.digits));
         return n.has_value() ? Value::Decimal(*n, static_cast<uint8_t>(y.digits)).ToString() : "!22003";
       }},
  };
  if (const auto two = kOfTwo.find(name); two != kOfTwo.end()) return two->second(n[0], n[1]);
  const Sums sums = SumsOf(n);
  if (name == "sum") return Text(NumericOfLimbs(sums.limbs, sums.scale));
  if (name == "avg") return Text(NumericAverage(sums.limbs, sums.scale, sums.count));
  return Text(NumericVariance(sums.limbs, sums.squares, sums.scale, sums.count,
                              /*sample=*/absl::EndsWith(name, "_samp"),
                              /*root=*/absl::StartsWith(name, "stddev")));
}

/// PostgreSQL's text with as many digits as there are here.
std::string Fitted(const std::string& name, const std::string& text) {
  if (name == "compare" || name == "decimal" || text[0] == '!') return text;
  // Its text of a double may have a digit more than the shortest.
  if (name == "to_double") return RealText(ParseReal(text, /*real=*/false).value(), /*real=*/false);
  return Text(ParseNumericText(text));
}

TEST(NumericTest, AsPostgreSql) {
  std::ifstream in("tests/types/numeric_cases.txt");
  std::map<std::string, int> cases;
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    ASSERT_EQ(parts.size(), 2u) << line;
    Arguments arguments = absl::StrSplit(parts[0], ' ');
    const std::string name = arguments[0];
    arguments.erase(arguments.begin());
    EXPECT_EQ(Result(name, arguments), Fitted(name, parts[1])) << parts[0];
    ++cases[name];
  }
  EXPECT_EQ(cases.size(), 31u);
  for (const auto& [name, count] : cases) EXPECT_GE(count, 5) << name;
}

// ─── Properties

/// Of all lengths and scales; half of them of few digits, so that equal values of different scales happen.
Numeric AnyNumeric() {
  const int digits = *rc::gen::oneOf(rc::gen::inRange(1, 4), rc::gen::inRange(1, kMaxNumericDigits + 1));
  __int128 n = 0;
  for (int i = 0; i < digits; ++i) n = n * 10 + *rc::gen::inRange(0, 10);
  const int zeros = *rc::gen::inRange(0, kMaxNumericDigits + 1 - digits);
  if (*rc::gen::arbitrary<bool>()) n *= PowerOfTen(zeros);
  if (*rc::gen::arbitrary<bool>()) n = -n;
  return {n, static_cast<uint8_t>(
                 *rc::gen::oneOf(rc::gen::inRange(0, 4), rc::gen::inRange(0, kMaxNumericScale + 1)))};
}

RC_GTEST_PROP(NumericProperty, PackedPrintedAndInBytesItIsTheSame, ()) {
  const Numeric n = AnyNumeric();
  RC_ASSERT(IsNumericWord(PackNumeric(n)));
  RC_ASSERT(UnpackNumeric(PackNumeric(n)) == n);
  RC_ASSERT(ParseNumericText(NumericText(n)).value() == n);
  RC_ASSERT(NumericOfOrderedBytes(OrderedNumericBytes(n)) == n);
}

int SignOfOrder(auto a, auto b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

RC_GTEST_PROP(NumericProperty, KeysAreInTheOrderOfValues, ()) {
  const Numeric a = AnyNumeric();
  // Now and then the same value with another scale, or a neighbor.
  Numeric b = *rc::gen::arbitrary<bool>() ? AnyNumeric() : TrimScaleNumeric(a);
  if (*rc::gen::arbitrary<bool>() && b.digits < PowerOfTen(kMaxNumericDigits) - 1) ++b.digits;
  const int order = CompareNumerics(a, b);
  RC_ASSERT(order == Compare(Value::Decimal(a.digits, a.scale), Value::Decimal(b.digits, b.scale)));
  RC_ASSERT(order == SignOfOrder(NumericKey(a), NumericKey(b)));
  const std::string x = OrderedNumericBytes(a), y = OrderedNumericBytes(b);
  RC_ASSERT(order == SignOfOrder(x.substr(0, 16).compare(y.substr(0, 16)), 0));
  RC_ASSERT(order == -CompareNumerics(b, a));
}

RC_GTEST_PROP(NumericProperty, SumsOfLimbsAreSums, ()) {
  const int count = *rc::gen::inRange(1, 8);
  std::vector<Numeric> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(AnyNumeric());
  std::optional<Numeric> sum = Numeric{};
  for (const Numeric& n : numbers) {
    // Exact as long as it fits.
    const auto next = sum.has_value() ? AddNumerics(*sum, n) : std::nullopt;
    sum = next.has_value() && next->scale == std::max(sum->scale, n.scale) ? next : std::nullopt;
    for (int i = 0; i < kNumericLimbs - 1; ++i)
      RC_ASSERT(NumericLimb(n, i) >= 0 && NumericLimb(n, i) >> kNumericLimbBits == 0);
    for (int i = 0; i < kNumericSquareLimbs; ++i)
      RC_ASSERT(NumericSquareLimb(n, i) >= 0 && NumericSquareLimb(n, i) >> kNumericLimbBits == 0);
  }
  RC_PRE(sum.has_value());
  const Sums sums = SumsOf(numbers);
  RC_ASSERT(NumericOfLimbs(sums.limbs, sums.scale) == sum);
}

/// The mean and the spread of decimals are those of the same numbers by limbs.
RC_GTEST_PROP(NumericProperty, SumsOfDecimalsAreThoseOfLimbs, ()) {
  const int scale = *rc::gen::inRange(0, 9);
  const int count = *rc::gen::inRange(2, 9);
  std::vector<Numeric> numbers;
  __int128 sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) {
    const auto n = *rc::gen::arbitrary<int32_t>();
    numbers.push_back({n, static_cast<uint8_t>(scale)});
    sum += n;
    squares += static_cast<__int128>(n) * n;
  }
  const Sums sums = SumsOf(numbers);
  RC_ASSERT(DecimalAverage(sum, scale, count).value() == NumericAverage(sums.limbs, scale, count).value());
  for (const bool sample : {false, true}) {
    for (const bool root : {false, true}) {
      const Numeric wanted = NumericVariance(sums.limbs, sums.squares, scale, count, sample, root).value();
      RC_ASSERT(DecimalVariance(sum, squares, scale, count, sample, root).value() == wanted);
      const std::array<uint64_t, 5> many = Wide<5>::OfSigned(squares).words;
      const std::array<uint64_t, 3> few = Wide<3>::OfSigned(sum).words;
      RC_ASSERT(DecimalVariance(few, many, scale, count, sample, root).value() == wanted);
    }
  }
}

/// Whatever the digits, a result that has a whole part of 36 digits is there, with as many decimals as fit.
RC_GTEST_PROP(NumericProperty, TheScaleYields, ()) {
  const Numeric a = AnyNumeric(), b = AnyNumeric();
  std::vector<std::optional<Numeric>> results = {AddNumerics(a, b), SubtractNumerics(a, b),
                                                 MultiplyNumerics(a, b)};
  const double x = NumericToDouble(a), y = NumericToDouble(b);
  std::vector<double> wanted = {x + y, x - y, x * y};
  if (b.digits != 0) {
    results.push_back(DivideNumerics(a, b));
    wanted.push_back(x / y);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (std::abs(wanted[i]) > 1.001e36) RC_ASSERT(!results[i].has_value());
    if (std::abs(wanted[i]) > 0.999e36) continue;
    RC_ASSERT(results[i].has_value());
    RC_ASSERT(IsNumericWord(PackNumeric(*results[i])));
    const double most = std::max({std::abs(x), std::abs(y), std::abs(wanted[i])});
    const double unit = std::pow(10.0, -static_cast<double>(results[i]->scale));
    RC_ASSERT(std::abs(NumericToDouble(*results[i]) - wanted[i]) <=
              unit * 0.51 + (i < 2 ? most : std::abs(wanted[i])) * 1e-14);
  }
}

RC_GTEST_PROP(NumericProperty, ProductsFitExactlyOrAreRounded, ()) {
  const Numeric a = AnyNumeric(), b = AnyNumeric();
  const std::optional<Numeric> product = MultiplyNumerics(a, b);
  RC_PRE(product.has_value());
  // product · 10^d - a · b is at most half of 10^d, where d decimals were dropped.
  const int dropped = a.scale + b.scale - product->scale;
  const Wide<4> exact = Wide<4>(static_cast<unsigned __int128>(a.digits < 0 ? -a.digits : a.digits)) *
                        Wide<4>(static_cast<unsigned __int128>(b.digits < 0 ? -b.digits : b.digits));
  const Wide<4> rounded =
      Wide<4>(static_cast<unsigned __int128>(product->digits < 0 ? -product->digits : product->digits)) *
      WidePowerOfTen<4>(dropped);
  const Wide<4> error = rounded >= exact ? rounded - exact : exact - rounded;
  RC_ASSERT(WidePowerOfTen<4>(dropped) >= error + error);
  RC_ASSERT(product->digits == 0 || (product->digits < 0) == ((a.digits < 0) != (b.digits < 0)));
  // No more are dropped than have to be.
  const bool full = DigitsOf(Wide<4>(static_cast<unsigned __int128>(
                        product->digits < 0 ? -product->digits : product->digits))) >= kMaxNumericDigits;
  RC_ASSERT(dropped == 0 || full || product->scale == kMaxNumericScale);
}

/// a = b · q + r, and r has a's sign and is below b.
RC_GTEST_PROP(NumericProperty, RemaindersAreBelowTheDivisor, ()) {
  const Numeric a = AnyNumeric(), b = AnyNumeric();
  RC_PRE(b.digits != 0);
  const std::optional<Numeric> rest = ModuloNumerics(a, b);
  RC_ASSERT(rest.has_value());
  RC_ASSERT(CompareNumerics(AbsNumeric(*rest), AbsNumeric(b)) < 0);
  RC_ASSERT(rest->digits == 0 || (rest->digits < 0) == (a.digits < 0));
}

RC_GTEST_PROP(NumericProperty, RoundsLikeDecimals, ()) {
  const Numeric a = AnyNumeric();
  const int scale = *rc::gen::inRange(0, kMaxNumericScale + 1);
  const std::optional<__int128> decimal = Rescale(a.digits, a.scale, scale);
  RC_ASSERT(NumericToDecimal(a, scale) == decimal);
  const std::optional<Numeric> rounded = RoundNumeric(a, scale);
  const __int128 most = PowerOfTen(kMaxNumericDigits);
  if (decimal.has_value() && *decimal<most&& * decimal> - most)
    RC_ASSERT(rounded == (Numeric{*decimal, static_cast<uint8_t>(scale)}));
  RC_ASSERT(CompareNumerics(FloorNumeric(a), a) <= 0 && CompareNumerics(CeilNumeric(a), a) >= 0);
  RC_ASSERT(CompareNumerics(TrimScaleNumeric(a), a) == 0);
}

RC_GTEST_PROP(NumericProperty, DoublesAreNearest, ()) {
  const Numeric a = AnyNumeric();
  RC_ASSERT(NumericToDouble(a) == std::strtod(NumericText(a).c_str(), nullptr));
}

RC_GTEST_PROP(NumericProperty, TextOfAnyLengthIsRoundedOnce, ()) {
  const Numeric a = AnyNumeric();
  RC_PRE(a.scale < kMaxNumericScale);
  std::string text = NumericText(a) + (a.scale == 0 ? "." : "");
  const auto more = *rc::gen::inRange<size_t>(1, 120);
  for (size_t i = 0; i < more; ++i) text += static_cast<char>('0' + *rc::gen::element(0, 4, 5, 9));
  const absl::StatusOr<Numeric> number = ParseNumericText(text);
  RC_PRE(number.ok());
  // As far as 36 digits go it is the text's own; the last is rounded by the first that is left out.
  std::string digits(text);
  const size_t cut = digits.find('.') + 1 + number->scale;
  const bool up = cut < digits.size() && digits[cut] >= '5';
  Numeric kept = N(digits.substr(0, cut));
  if (up) kept.digits += text[0] == '-' ? -1 : 1;
  RC_ASSERT(CompareNumerics(kept, *number) == 0);
}

// ─── Wide integers

template <int kWords>
Wide<kWords> AnyWide() {
  Wide<kWords> out;
  const int words = *rc::gen::inRange(0, kWords + 1);
  for (int i = 0; i < words; ++i)
    out.words[i] = *rc::gen::oneOf(rc::gen::arbitrary<uint64_t>(),
                                   rc::gen::element<uint64_t>(0, 1, ~uint64_t{0}, uint64_t{1} << 63));
  return out;
}

RC_GTEST_PROP(WideIntegerProperty, QuotientTimesDivisorAndRemainder, ()) {
  const Wide<8> a = AnyWide<8>();
  const Wide<8> b(AnyWide<5>());
  RC_PRE(!b.zero());
  const auto [quotient, remainder] = Divide(a, b);
  RC_ASSERT(remainder < b);
  RC_ASSERT(quotient * b + remainder == a);
}

RC_GTEST_PROP(WideIntegerProperty, RootsAreTheLargest, ()) {
  const Wide<8> n(AnyWide<7>());
  const Wide<8> root = SquareRootOf(n);
  RC_ASSERT(n >= root * root);
  RC_ASSERT(n < (root + Wide<8>(1)) * (root + Wide<8>(1)));
}

TEST(WideIntegerTest, DigitsAndPowers) {
  for (int i = 0; i < 150; ++i) {
    const Wide<8> power = WidePowerOfTen<8>(i);
    EXPECT_EQ(DigitsOf(power), i + 1);
    EXPECT_EQ(DigitsOf(power - Wide<8>(1)), i);
    EXPECT_EQ(DigitsOf(power + Wide<8>(1)), i + 1);
  }
  const Wide<4> n = Wide<4>::OfSigned(-5) << 100;
  EXPECT_TRUE(n.negative());
  EXPECT_EQ((-n) >> 100, Wide<4>(5));
}

// ─── Edges

TEST(NumericTest, WordsOutsideTheBoundsAreNone) {
  const __int128 most = PowerOfTen(kMaxNumericDigits);
  const auto word = [](__int128 digits, int scale) { return digits * 64 + scale; };
  EXPECT_TRUE(IsNumericWord(word(most - 1, 38)));
  EXPECT_TRUE(IsNumericWord(word(1 - most, 0)));
  EXPECT_FALSE(IsNumericWord(word(most, 0)));
  EXPECT_FALSE(IsNumericWord(word(-most, 38)));
  EXPECT_FALSE(IsNumericWord(word(1, 39)));
  EXPECT_FALSE(IsNumericWord(word(0, 63)));
}

TEST(NumericTest, BytesThatAreNoNumbers) {
  const std::string bytes = OrderedNumericBytes(N("-12.50"));
  const auto with = [&](size_t i, char c) {
    std::string out = bytes;
    out[i] = c;
    return NumericOfOrderedBytes(out);
  };
  EXPECT_EQ(NumericOfOrderedBytes(bytes), N("-12.50"));
  EXPECT_EQ(with(16, 3), N("-12.500"));
  EXPECT_EQ(with(16, 1), N("-12.5"));
  EXPECT_EQ(with(16, 0), std::nullopt);   // a half has a decimal
  EXPECT_EQ(with(16, 38), std::nullopt);  // 40 digits
  EXPECT_EQ(with(16, 39), std::nullopt);
  EXPECT_EQ(with(0, 0), std::nullopt);
  EXPECT_EQ(with(15, static_cast<char>(bytes[15] ^ 1)), std::nullopt);
  EXPECT_EQ(NumericOfOrderedBytes(bytes.substr(1)), std::nullopt);
  EXPECT_EQ(NumericOfOrderedBytes(bytes + "x"), std::nullopt);
}

TEST(NumericTest, FitsByItsScaleOnly) {
  const __int128 most = PowerOfTen(kMaxNumericDigits);
  EXPECT_EQ(FitNumeric(most - 1, 0), (Numeric{most - 1, 0}));
  EXPECT_EQ(FitNumeric(most, 0), std::nullopt);
  EXPECT_EQ(FitNumeric(-most, 1), (Numeric{-most / 10, 0}));
  EXPECT_EQ(FitNumeric(most * 10 - 5, 1), std::nullopt);
  EXPECT_EQ(FitNumeric(most * 10 - 6, 1), (Numeric{most - 1, 0}));
  EXPECT_EQ(FitNumeric(most * 10 - 5, 2), (Numeric{most / 10, 0}));
  EXPECT_EQ(FitNumeric(15, 39), (Numeric{2, 38}));
  EXPECT_EQ(FitNumeric(-15, 39), (Numeric{-2, 38}));
  EXPECT_EQ(FitNumeric(5, 40), (Numeric{0, 38}));
  EXPECT_EQ(FitNumeric(5, 4000), (Numeric{0, 38}));
  EXPECT_EQ(FitNumeric(std::numeric_limits<__int128>::min(), 10),
            (Numeric{std::numeric_limits<__int128>::min() / 1000 - 1, 7}));
}

TEST(NumericTest, ChainsOfProductsAnswer) {
  std::optional<Numeric> product = N("1");
  for (int i = 0; i < 20; ++i) product = MultiplyNumerics(*product, N("1.19"));
  // 1.19^20 = 32.42942257...
  EXPECT_EQ(product->scale, 34);
  EXPECT_NEAR(NumericToDouble(*product), std::pow(1.19, 20), 1e-12);
}

/// What PostgreSQL answers with more digits than fit is 22003, or rounded to those that do.
TEST(NumericTest, BeyondThirtySixDigits) {
  EXPECT_EQ(Text(NumericPower(N("10"), N("36"))), "!22003");
  EXPECT_EQ(Text(NumericPower(N("-10"), N("4000000001"))), "!22003");
  EXPECT_EQ(Text(NumericExp(N("83"))), "!22003");
  EXPECT_EQ(Text(DivideNumerics(N("1e35"), N("0.01"))), "!22003");
  EXPECT_EQ(Text(NumericOfDouble(1e36)), "!22003");
  EXPECT_EQ(NumericOfDouble(std::numeric_limits<double>::quiet_NaN()), std::nullopt);
  EXPECT_EQ(NumericOfDouble(-std::numeric_limits<double>::infinity()), std::nullopt);
  EXPECT_EQ(Text(NumericOfDouble(1e-300)), "0." + std::string(38, '0'));
  EXPECT_EQ(Text(NumericExp(N("-20000"))), "0." + std::string(38, '0'));
  EXPECT_EQ(Text(NumericPower(N("0.5"), N("3000000000"))), "0." + std::string(38, '0'));
}

TEST(NumericTest, ErrorsTellWhereTheyAre) {
  const auto position = [](const absl::Status& status) { return SqlErrorOf(status).value().position; };
  EXPECT_EQ(position(NumericPower(N("0"), N("-1"), 7).status()), 7);
  EXPECT_EQ(position(NumericExp(N("100"), 8).status()), 8);
  EXPECT_EQ(position(NumericLn(N("0"), 9).status()), 9);
  EXPECT_EQ(position(NumericLog(N("1"), N("2"), 10).status()), 10);
  EXPECT_EQ(position(NumericSqrt(N("-1"), 11).status()), 11);
}

}  // namespace
}  // namespace nam
