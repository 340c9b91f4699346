#include "base/value.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/date.h"

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

std::string TypeName(const Type& type) {
  switch (type.kind) {
    case TypeKind::kNull:
      return "null";
    case TypeKind::kBool:
      return "boolean";
    case TypeKind::kInteger:
      return "integer";
    case TypeKind::kDecimal:
      return absl::StrCat("decimal(", kMaxDecimalDigits, ",", static_cast<int>(type.scale), ")");
    case TypeKind::kDate:
      return "date";
    case TypeKind::kString:
      return type.length == 0 ? "varchar" : absl::StrCat("varchar(", type.length, ")");
  }
  return "unknown";
}

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
    case TypeKind::kDate: {
      const CivilDate d = CivilFromDays(static_cast<int64_t>(number));
      return absl::StrFormat("%04d-%02d-%02d", d.year, d.month, d.day);
    }
    case TypeKind::kString:
      return text;
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

absl::StatusOr<int64_t> ParseDate(std::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(absl::StrFormat("\"%s\" is not a date (YYYY-MM-DD)", text));
  };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return bad();
  const auto number = [&](size_t from, size_t n) {
    int32_t value = 0;
    for (size_t i = from; i < from + n; ++i) {
      if (text[i] < '0' || text[i] > '9') return -1;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  const CivilDate d{number(0, 4), number(5, 2), number(8, 2)};
  if (d.year < 1 || d.month < 1 || d.month > 12 || d.day < 1 || d.day > DaysInMonth(d.year, d.month))
    return bad();
  return DaysFromCivil(d);
}

}  // namespace nam
