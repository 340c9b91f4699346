#include "types/value.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "types/characters.h"
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

/// Seconds have as many decimals as needed.
std::string TimeText(int64_t of_day) {
  const int64_t seconds = of_day / 1000000;
  std::string text = absl::StrFormat("%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (of_day % 1000000 == 0) return text;
  absl::StrAppendFormat(&text, ".%06d", of_day % 1000000);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

std::string UuidText(__int128 number) {
  constexpr auto kHighestBit = static_cast<unsigned __int128>(1) << 127;
  const auto n = static_cast<unsigned __int128>(number) ^ kHighestBit;
  const auto high = static_cast<uint64_t>(n >> 64), low = static_cast<uint64_t>(n);
  return absl::StrFormat("%08x-%04x-%04x-%04x-%012x", high >> 32, high >> 16 & 0xffff, high & 0xffff,
                         low >> 48, low & 0xffff'ffff'ffff);
}

std::string TimestampText(int64_t us) {
  const int64_t days = us / kMicrosecondsPerDay - (us % kMicrosecondsPerDay < 0);
  return absl::StrCat(DateText(days), " ", TimeText(us - days * kMicrosecondsPerDay));
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
        digits.insert(digits.size() - type.scale, 1, '.');
      }
      return number < 0 ? "-" + digits : digits;
    }
    case TypeKind::kDate:
      return DateText(static_cast<int64_t>(number));
    case TypeKind::kTimestamp:
      return TimestampText(static_cast<int64_t>(number));
    case TypeKind::kTime:
      return TimeText(static_cast<int64_t>(number));
    case TypeKind::kTimestampTz:
      return TimestampText(static_cast<int64_t>(number)) + "+00";
    case TypeKind::kString:
      return text;
    case TypeKind::kDouble:
    case TypeKind::kReal:
      return RealText(real(), type.kind == TypeKind::kReal);
    case TypeKind::kInterval:
      return IntervalText(interval());
    case TypeKind::kNumeric:
      return NumericText(unpacked());
    case TypeKind::kUuid:
      return UuidText(number);
    case TypeKind::kBytes:
      return "\\x" + absl::BytesToHexString(text);
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
  if (PhysicalOf(a.type) == Physical::kText) {
    const int c = a.text.compare(b.text);
    return c < 0 ? -1 : c > 0 ? 1 : 0;
  }
  if (a.type.kind == TypeKind::kNumeric) return CompareNumerics(a.unpacked(), b.unpacked());
  if (a.type.kind == TypeKind::kInterval) return Sign(SpanOf(a.interval()), SpanOf(b.interval()));
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
    ++digits;
    if ((n != 0 || c != '0') && ++significant > kMaxDecimalDigits)
      return absl::OutOfRangeError(
          absl::StrFormat("\"%s\" has more than %d digits", text, kMaxDecimalDigits));
    n = n * 10 + (c - '0');
    if (scale >= 0 && ++scale > kMaxDecimalDigits)
      return absl::OutOfRangeError(
          absl::StrFormat("\"%s\" has more than %d decimals", text, kMaxDecimalDigits));
  }
  if (digits == 0) return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is not a number", text));
  if (negative) n = -n;
  return scale < 0 ? Value::Integer(n) : Value::Decimal(n, static_cast<uint8_t>(scale));
}

namespace {

/// The number of the `n` characters at `from`; -1 if they are not digits.
int64_t DigitsAt(std::string_view text, size_t from, size_t n) {
  if (from + n > text.size()) return -1;
  int64_t value = 0;
  for (size_t i = from; i < from + n; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

constexpr int64_t kNoTime = -1;          // not a time
constexpr int64_t kTimeOutOfRange = -2;  // a time's form, but an invalid hour, minute or second

/// Consumes a leading number of up to `most` digits of the text; -1 if there is none.
int64_t ConsumeDigits(std::string_view& text, size_t most) {
  size_t n = 0;
  while (n < text.size() && n < most && IsDigit(text[n])) ++n;
  const int64_t value = n == 0 ? -1 : DigitsAt(text, 0, n);
  text.remove_prefix(n);
  return value;
}
bool Consume(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

/// Parses the digits after a second's point; rounds in floating point, as PostgreSQL does.
int64_t MicrosecondsOf(std::string_view digits) {
  constexpr double kPerSecond = 1e6;
  return std::llrint(std::strtod(absl::StrCat("0.", std::string(digits)).c_str(), nullptr) * kPerSecond);
}

/// Microseconds of `HH:MM[:SS[.fraction]]`; 24:00:00 is the end of the day.
int64_t ParseTimeOfDay(std::string_view text) {
  const int64_t hour = ConsumeDigits(text, 2);
  if (hour < 0 || !Consume(text, ':')) return kNoTime;
  const int64_t minute = ConsumeDigits(text, 2);
  if (minute < 0) return kNoTime;
  int64_t second = 0, fraction = 0;
  if (Consume(text, ':')) {
    second = std::max<int64_t>(ConsumeDigits(text, 2), 0);  // PostgreSQL accepts both 10:11: and 10:11:.5
    if (Consume(text, '.')) {
      const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
      fraction = MicrosecondsOf(text.substr(0, digits));
      text.remove_prefix(digits);
    }
  }
  if (!text.empty()) return kNoTime;
  const int64_t us = ((hour * 60 + minute) * 60 + second) * 1000000 + fraction;
  const bool end_of_day = hour == 24 && minute == 0 && second == 0 && fraction == 0;
  if ((hour > 23 && !end_of_day) || minute > 59 || second > 60 || us > kMicrosecondsPerDay)
    return kTimeOutOfRange;
  return us;
}

struct DateAndTime {
  absl::StatusOr<int64_t> days;
  int64_t us = 0;
};

/// Consumes `YYYY-MM-DD`, `YYYY/MM/DD` or `YYYYMMDD` of the text.
absl::StatusOr<int64_t> ConsumeDate(std::string_view& text) {
  const auto bad = [] { return absl::InvalidArgumentError("no date"); };
  CivilDate d{};
  const std::string_view whole = text;
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  const bool compact = digits == 8;
  const bool far = digits > 4 && !compact && digits < text.size() && text[digits] == '-';
  if (far) {
    text = {};
    return absl::OutOfRangeError("there is no such year");
  }
  if (!compact && digits != 4) return bad();
  d.year = static_cast<int32_t>(ConsumeDigits(text, 4));
  const char separator = text.empty() ? ' ' : text[0];
  if (!compact && ((separator != '-' && separator != '/') || !Consume(text, separator))) return bad();
  d.month = static_cast<int32_t>(ConsumeDigits(text, 2));
  if (!compact && !Consume(text, separator)) return bad();
  d.day = static_cast<int32_t>(ConsumeDigits(text, 2));
  if (d.month < 0 || d.day < 0 || (!text.empty() && IsDigit(text[0]))) return bad();
  if (d.year < 1 || d.month < 1 || d.month > 12 || d.day < 1 || d.day > DaysInMonth(d.year, d.month))
    return absl::OutOfRangeError(absl::StrFormat("there is no date \"%s\"", whole));
  return DaysFromCivil(d);
}

DateAndTime Parse(std::string_view text) {
  text = TrimBlanks(text);
  DateAndTime out{ConsumeDate(text)};
  if (text.empty() || absl::IsInvalidArgument(out.days.status())) return out;
  const size_t time = text.find_first_not_of(kBlanks);
  if (time == 0 && text[0] != 'T' && text[0] != 't') {
    out.us = kNoTime;
  } else {
    out.us = ParseTimeOfDay(text.substr(std::max<size_t>(time, 1)));
  }
  return out;
}

}  // namespace

absl::StatusOr<int64_t> ParseDate(std::string_view text) {
  const DateAndTime parsed = Parse(text);
  if (absl::IsInvalidArgument(parsed.days.status()) || parsed.us == kNoTime)
    return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is not a date (YYYY-MM-DD)", text));
  if (parsed.us == kTimeOutOfRange)
    return absl::OutOfRangeError(absl::StrFormat("there is no time \"%s\"", text));
  return parsed.days;
}

absl::StatusOr<int64_t> ParseTimestamp(std::string_view text) {
  const DateAndTime parsed = Parse(text);
  const auto& [days, of_day] = parsed;
  if (absl::IsInvalidArgument(days.status()) || of_day == kNoTime) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is not a timestamp (YYYY-MM-DD HH:MM:SS.ffffff)", text));
  }
  // Rounding up the last half microsecond of year 9999 leaves the range.
  if (!days.ok() || of_day == kTimeOutOfRange ||
      *days * kMicrosecondsPerDay + of_day >= (kGreatestDay + 1) * kMicrosecondsPerDay)
    return absl::OutOfRangeError(absl::StrFormat("there is no timestamp \"%s\"", text));
  return *days * kMicrosecondsPerDay + of_day;
}

}  // namespace nam
