#include "csv/time_format.h"

#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "types/calendar_names.h"
#include "types/characters.h"
#include "types/date.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

constexpr std::string_view kFields = "YymbBdHIMSfpaA%";

struct ReadFields {
  CivilDate date{1900, 1, 1};
  int hour = 0, minute = 0, second = 0;
  bool has_time = false, twelve_hours = false, afternoon = false;
  std::string fraction;
};

/// A name, or its first three letters, as the place in the list; -1 for another text.
int TakeName(std::string_view& text, std::span<const std::string_view> names, bool whole) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = whole ? names[i] : names[i].substr(0, kShortNameLetters);
    if (!BeginsWithWord(text, name)) continue;
    text.remove_prefix(name.size());
    return static_cast<int>(i);
  }
  return -1;
}

bool TakeNumber(std::string_view& text, size_t digits_max, int least, int most, int& number) {
  size_t digits = 0;
  number = 0;
  for (; digits < digits_max && digits < text.size() && IsDigit(text[digits]); ++digits)
    number = 10 * number + (text[digits] - '0');
  text.remove_prefix(digits);
  return digits > 0 && number >= least && number <= most;
}

bool TakeTimeField(char field, std::string_view& text, ReadFields& out) {
  constexpr int kCenturyBegins = 69;
  out.has_time = true;
  int half = -1;
  switch (field) {
    case 'H':
      return TakeNumber(text, 2, 0, 23, out.hour);
    case 'I':
      out.twelve_hours = true;
      return TakeNumber(text, 2, 1, 12, out.hour);
    case 'M':
      return TakeNumber(text, 2, 0, 59, out.minute);
    case 'S':
      return TakeNumber(text, 2, 0, 59, out.second);
    case 'f':
      while (!text.empty() && IsDigit(text[0])) {
        out.fraction += text[0];
        text.remove_prefix(1);
      }
      return !out.fraction.empty() && out.fraction.size() <= 9;
    case 'p':
      half = BeginsWithWord(text, "am") ? 0 : BeginsWithWord(text, "pm") ? 1 : -1;
      if (half < 0) return false;
      out.afternoon = half == 1;
      text.remove_prefix(2);
      return true;
    default:
      break;
  }
  out.has_time = false;
  switch (field) {
    case 'Y':
      return TakeNumber(text, 4, 1, 9999, out.date.year);
    case 'y':
      if (!TakeNumber(text, 2, 0, 99, out.date.year)) return false;
      out.date.year += out.date.year < kCenturyBegins ? 2000 : 1900;
      return true;
    case 'm':
      return TakeNumber(text, 2, 1, 12, out.date.month);
    case 'd':
      return TakeNumber(text, 2, 1, 31, out.date.day);
    case 'b':
    case 'B':
      out.date.month = TakeName(text, kMonthNames, field == 'B') + 1;
      return out.date.month > 0;
    case 'a':
    case 'A':
      return TakeName(text, kWeekDayNames, field == 'A') >= 0;
    default:
      if (text.empty() || text[0] != '%') return false;
      text.remove_prefix(1);
      return true;
  }
}

}  // namespace

absl::Status CheckTimeFormat(std::string_view format) {
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') continue;
    ++at;
    if (at < format.size() && kFields.find(format[at]) != std::string_view::npos) continue;
    return UserError(sqlstate::kBadParameter,
                     absl::StrCat("the format ", Quote(format), " has a % that means nothing"), -1,
                     "write %d/%m/%Y, with %H:%M:%S behind it for timestamps; % itself is %%");
  }
  return absl::OkStatus();
}

std::optional<std::string> ReadByFormat(std::string_view text, std::string_view format) {
  ReadFields read;
  bool had_time = false;
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] == '%') {
      if (++at == format.size() || !TakeTimeField(format[at], text, read)) return std::nullopt;
      had_time = had_time || read.has_time;
    } else {
      if (text.empty() || text[0] != format[at]) return std::nullopt;
      text.remove_prefix(1);
    }
  }
  if (!text.empty() || read.date.day > DaysInMonth(read.date.year, read.date.month)) return std::nullopt;
  if (read.twelve_hours) read.hour = read.hour % 12 + (read.afternoon ? 12 : 0);
  std::string out = absl::StrFormat("%04d-%02d-%02d", read.date.year, read.date.month, read.date.day);
  if (!had_time) return out;
  absl::StrAppendFormat(&out, " %02d:%02d:%02d", read.hour, read.minute, read.second);
  if (!read.fraction.empty()) absl::StrAppend(&out, ".", read.fraction);
  return out;
}

}  // namespace nam::csv
