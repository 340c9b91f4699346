#include "types/real.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "types/characters.h"

namespace nam {

int64_t OrderedBits(double x) {
  if (x == 0) return 0;
  if (std::isnan(x)) x = std::numeric_limits<double>::quiet_NaN();
  const auto bits = std::bit_cast<int64_t>(std::isnan(x) ? std::abs(x) : x);
  return bits ^ (bits >> 63 & INT64_MAX);
}

double FromOrderedBits(int64_t bits) {
  return std::bit_cast<double>(bits ^ (bits >> 63 & INT64_MAX));
}

namespace {

/// Reformats std::to_chars' `d.ddde±xx` like PostgreSQL.
std::string LayOut(std::string_view scientific, int most_plain_digits) {
  std::string out;
  if (scientific.starts_with('-')) {
    out = "-";
    scientific.remove_prefix(1);
  }
  const size_t e = scientific.find('e');
  const int exponent = std::atoi(std::string(scientific.substr(e + 1)).c_str());
  std::string digits;
  for (const char c : scientific.substr(0, e)) {
    if (c != '.') digits.push_back(c);
  }
  if (exponent < -4 || exponent >= most_plain_digits) {
    absl::StrAppend(&out, digits.substr(0, 1), digits.size() > 1 ? "." : "", digits.substr(1));
    absl::StrAppendFormat(&out, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return out;
  }
  if (exponent < 0) return absl::StrCat(out, "0.", std::string(-exponent - 1, '0'), digits);
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return absl::StrCat(out, digits, std::string(whole - digits.size(), '0'));
  return absl::StrCat(out, digits.substr(0, whole), ".", digits.substr(whole));
}

}  // namespace

std::string RealText(double x, bool real) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "Infinity" : "-Infinity";
  if (x == 0) return "0";
  constexpr int kDoubleDigits = 15, kRealDigits = 6;
  char buffer[64];
  const auto end =
      real ? std::to_chars(buffer, std::end(buffer), static_cast<float>(x), std::chars_format::scientific)
           : std::to_chars(buffer, std::end(buffer), x, std::chars_format::scientific);
  return LayOut(std::string_view(buffer, end.ptr - buffer), real ? kRealDigits : kDoubleDigits);
}

absl::StatusOr<double> ParseReal(std::string_view text, bool real) {
  text = TrimBlanks(text);
  const auto bad = [] { return absl::InvalidArgumentError("not a number"); };
  std::string_view number = text;
  const bool negative = number.starts_with('-');
  if (negative || number.starts_with('+')) number.remove_prefix(1);
  const std::string lower = absl::AsciiStrToLower(std::string(number));
  double x = 0;
  if (lower == "infinity" || lower == "inf") {
    x = std::numeric_limits<double>::infinity();
  } else if (lower == "nan" && number.size() == text.size()) {
    return std::numeric_limits<double>::quiet_NaN();
  } else {
    const bool signed_twice = number.starts_with('-') || number.starts_with('+');
    if (number.empty() || signed_twice ||
        number.find_first_not_of("0123456789.eE+-") != std::string_view::npos)
      return bad();
    const char* const end = number.data() + number.size();
    // Rounding to 64 bits first and then to 32 could round twice.
    float narrow = 0;
    const std::from_chars_result result =
        real ? std::from_chars(number.data(), end, narrow) : std::from_chars(number.data(), end, x);
    if (result.ptr != end || result.ec == std::errc::invalid_argument) return bad();
    if (result.ec == std::errc::result_out_of_range) return absl::OutOfRangeError("out of range");
    if (real) x = narrow;
  }
  return negative ? -x : x;
}

}  // namespace nam
