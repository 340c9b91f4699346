#include "session/result_batch.h"

#include <algorithm>
#include <charconv>

#include "types/date.h"

namespace nam::session {
namespace {

void AppendNumber(int64_t number, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  out.append(digits, static_cast<size_t>(end - digits));
}

/// `-12.05` for -1205 with two decimals.
void AppendDecimal(int64_t unscaled, uint8_t scale, std::string& out) {
  if (scale == 0) return AppendNumber(unscaled, out);
  char digits[24];
  const uint64_t magnitude =
      unscaled < 0 ? uint64_t{0} - static_cast<uint64_t>(unscaled) : static_cast<uint64_t>(unscaled);
  const auto count =
      static_cast<size_t>(std::to_chars(digits, digits + sizeof(digits), magnitude).ptr - digits);
  if (unscaled < 0) out.push_back('-');
  if (count > scale) {
    out.append(digits, count - scale);
  } else {
    out.push_back('0');
  }
  out.push_back('.');
  out.append(scale - std::min<size_t>(count, scale), '0');
  out.append(digits + count - std::min<size_t>(count, scale), std::min<size_t>(count, scale));
}

void AppendDate(int64_t days, std::string& out) {
  const auto [year, month, day] = CivilFromDays(days);  // years have four digits: types/date.h
  const auto digit = [](int n) { return static_cast<char>('0' + n % 10); };
  const char text[] = {digit(year / 1000),
                       digit(year / 100),
                       digit(year / 10),
                       digit(year),
                       '-',
                       digit(month / 10),
                       digit(month),
                       '-',
                       digit(day / 10),
                       digit(day)};
  out.append(text, sizeof(text));
}

}  // namespace

void ResultBatch::AppendText(size_t column, size_t row, std::string& out) const {
  if (is_text(column, row)) {
    out += text(column, row);
    return;
  }
  const __int128 wide = number(column, row);
  const auto value = static_cast<int64_t>(wide);
  const Type& of = type(column, row);
  if (value == wide && of.kind == TypeKind::kInteger) return AppendNumber(value, out);
  if (value == wide && of.kind == TypeKind::kDecimal) return AppendDecimal(value, of.scale, out);
  if (of.kind == TypeKind::kDate) return AppendDate(value, out);
  out += Boxed(column, row).ToString();
}

}  // namespace nam::session
