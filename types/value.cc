#include "types/value.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "types/date.h"

namespace nam {

__int128 PowerOfTen(int exponent) {
  NAM_CHECK(exponent >= 0 && exponent <= kMaxDecimalDigits);
  __int128 p = 1;
  while (exponent-- > 0) p *= 10;
  return p;
}

std::string Int128ToString(__int128 n) {
  if (n == 0) return "0";
  const bool negative = n < 0;
  unsigned __int128 u = negative ? -static_cast<unsigned __int128>(n) : static_cast<unsigned __int128>(n);
  std::string digits;
  for (; u != 0; u /= 10) digits.push_back(static_cast<char>('0' + static_cast<int>(u % 10)));
  if (negative) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

namespace {

std::string DateText(int64_t days) {
  const CivilDate d = CivilFromDays(days);
  return absl::StrFormat("%04d-%02d-%02d", d.year, d.month, d.day);
}

/// Seconds have as many decimals as they need.
std::string TimestampText(int64_t us) {
  const int64_t days = us / kMicrosecondsPerDay - (us % kMicrosecondsPerDay < 0);
  const int64_t of_day = us - days * kMicrosecondsPerDay;
  const int64_t seconds = of_day / 1000000;
  std::string text =
      absl::StrFormat("%s %02d:%02d:%02d", DateText(days), seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (of_day % 1000000 == 0) return text;
  absl::StrAppendFormat(&text, ".%06d", of_day % 1000000);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

}  // namespace

std::string Value::ToString() const {
  if (null) return "NULL";
  switch (type.kind) {
    case TypeKind::kNull:
      return "NULL";
    case TypeKind::kBool:
      return number != 0 ? "t" : "f";
    case TypeKind::kInteger:
      return Int128ToString(number);
    case TypeKind::kDecimal: {
      std::string digits = Int128ToString(number < 0 ? -number : number);
      if (type.scale > 0) {
        if (digits.size() <= type.scale) digits.insert(0, type.scale + 1 - digits.size(), '0');
        digits.insert(digits.size() - type.scale, ".");
      }
      return number < 0 ? "-" + digits : digits;
    }
    case TypeKind::kDate:
      return DateText(static_cast<int64_t>(number));
    case TypeKind::kTimestamp:
      return TimestampText(static_cast<int64_t>(number));
    case TypeKind::kString:
      return text;
    default:  // kinds without values
      break;
  }
  return {};
}

namespace {

int Sign(__int128 a, __int128 b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

/// Compares a / 10^sa with b / 10^sb without overflow: integral parts first, then fractions.
int CompareScaled(__int128 a, int sa, __int128 b, int sb) {
  const __int128 pa = PowerOfTen(sa), pb = PowerOfTen(sb);
  const auto floor_div = [](__int128 x, __int128 y) { return x / y - (x % y < 0); };
  const __int128 ia = floor_div(a, pa), ib = floor_div(b, pb);
  if (ia != ib) return Sign(ia, ib);
  // Fractions are below 10^scale; bring both to the larger scale.
  const int s = std::max(sa, sb);
  return Sign((a - ia * pa) * PowerOfTen(s - sa), (b - ib * pb) * PowerOfTen(s - sb));
}

}  // namespace

int Compare(const Value& a, const Value& b) {
  if (a.type.kind == TypeKind::kString) {
    const int c = a.text.compare(b.text);
    return c < 0 ? -1 : c > 0 ? 1 : 0;
  }
  if (a.type.scale == b.type.scale) return Sign(a.number, b.number);
  return CompareScaled(a.number, a.type.scale, b.number, b.type.scale);
}

absl::StatusOr<Value> ParseNumber(std::string_view text) {
  size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) i = 1;
  __int128 n = 0;
  int digits = 0, significant = 0, scale = -1;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && scale < 0) {
      scale = 0;
      continue;
    }
    if (c < '0' || c > '9')
      return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is not a number", text));
    n = n * 10 + (c - '0');
    ++digits;
    if (n != 0 && ++significant > kMaxDecimalDigits)
      return absl::OutOfRangeError(
          absl::StrFormat("\"%s\" has more than %d digits", text, kMaxDecimalDigits));
    if (scale >= 0 && ++scale > kMaxDecimalDigits)
      return absl::OutOfRangeError(
          absl::StrFormat("\"%s\" has more than %d decimals", text, kMaxDecimalDigits));
  }
  if (digits == 0) return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is not a number", text));
  if (negative) n = -n;
  return scale < 0 ? Value::Integer(n) : Value::Decimal(n, static_cast<uint8_t>(scale));
}

namespace {

/// The number that the `n` characters at `from` write; -1 if they are no digits.
int64_t DigitsAt(std::string_view text, size_t from, size_t n) {
  if (from + n > text.size()) return -1;
  int64_t value = 0;
  for (size_t i = from; i < from + n; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

constexpr int64_t kNoTime = -1;          // the text is none
constexpr int64_t kTimeOutOfRange = -2;  // it is written like one, but there is no such hour, …

/// Microseconds of `HH:MM[:SS[.fraction]]`.
int64_t ParseTimeOfDay(std::string_view text) {
  const int64_t hour = DigitsAt(text, 0, 2), minute = DigitsAt(text, 3, 2);
  if (hour < 0 || minute < 0 || text[2] != ':') return kNoTime;
  if (hour > 23 || minute > 59) return kTimeOutOfRange;
  const int64_t us = (hour * 60 + minute) * 60 * 1000000;
  if (text.size() == 5) return us;
  const int64_t second = DigitsAt(text, 6, 2);
  if (second < 0 || text[5] != ':') return kNoTime;
  if (second > 59) return kTimeOutOfRange;
  if (text.size() == 8) return us + second * 1000000;
  constexpr size_t kDecimalsAt = 9, kMostDecimals = 6;
  const size_t decimals = std::min(text.size() - kDecimalsAt, kMostDecimals);
  const int64_t fraction = DigitsAt(text, kDecimalsAt, decimals);
  const int64_t beyond = DigitsAt(text, kDecimalsAt + decimals, text.size() - kDecimalsAt - decimals > 0);
  if (text[8] != '.' || decimals == 0 || fraction < 0 || beyond < 0 ||
      text.find_first_not_of("0123456789", kDecimalsAt) != std::string_view::npos) {
    return kNoTime;
  }
  const auto up = static_cast<int64_t>(PowerOfTen(static_cast<int>(kMostDecimals - decimals)));
  return us + second * 1000000 + fraction * up + (beyond >= 5);
}

}  // namespace

absl::StatusOr<int64_t> ParseDate(std::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is not a date (YYYY-MM-DD)", text));
  };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return bad();
  const CivilDate d{static_cast<int32_t>(DigitsAt(text, 0, 4)), static_cast<int32_t>(DigitsAt(text, 5, 2)),
                    static_cast<int32_t>(DigitsAt(text, 8, 2))};
  if (d.year < 0 || d.month < 0 || d.day < 0) return bad();
  if (d.year < 1 || d.month < 1 || d.month > 12 || d.day < 1 || d.day > DaysInMonth(d.year, d.month))
    return absl::OutOfRangeError(absl::StrFormat("there is no date \"%s\"", text));
  return DaysFromCivil(d);
}

absl::StatusOr<int64_t> ParseTimestamp(std::string_view text) {
  const absl::StatusOr<int64_t> days = ParseDate(text.substr(0, 10));
  int64_t of_day = 0;
  if (text.size() > 10)
    of_day = text[10] == ' ' || text[10] == 'T' ? ParseTimeOfDay(text.substr(11)) : kNoTime;
  if (absl::IsInvalidArgument(days.status()) || of_day == kNoTime) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is not a timestamp (YYYY-MM-DD HH:MM:SS.ffffff)", text));
  }
  // Rounded up, the last half microsecond of year 9999 is beyond it.
  if (!days.ok() || of_day == kTimeOutOfRange ||
      *days * kMicrosecondsPerDay + of_day >= (kGreatestDay + 1) * kMicrosecondsPerDay)
    return absl::OutOfRangeError(absl::StrFormat("there is no timestamp \"%s\"", text));
  return *days * kMicrosecondsPerDay + of_day;
}

}  // namespace nam
