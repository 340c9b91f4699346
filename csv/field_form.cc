#include "csv/field_form.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "csv/time_format.h"
#include "types/characters.h"
#include "types/date.h"
#include "types/type.h"

namespace nam::csv {
namespace {

constexpr uint32_t Bit(FieldForm form) {
  return uint32_t{1} << static_cast<uint32_t>(form);
}

constexpr uint32_t kNumbers = Bit(FieldForm::kWhole) | Bit(FieldForm::kWide) | Bit(FieldForm::kNumber);

/// Abseil's own string_view is another type here.
absl::string_view AbseilText(std::string_view text) {
  return {text.data(), text.size()};
}

bool EqualsWord(std::string_view text, std::string_view word) {
  return absl::EqualsIgnoreCase(AbseilText(text), AbseilText(word));
}

/// Removes digits from the text's begin, and returns them.
std::string_view TakeDigits(std::string_view& text) {
  const auto end = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

bool TakeCharacter(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// The number that one to four digits write.
int NumberOf(std::string_view digits) {
  int number = 0;
  for (const char c : digits) number = 10 * number + (c - '0');
  return number;
}

bool IsBoolean(std::string_view text) {
  return EqualsWord(text, "true") || EqualsWord(text, "false") || EqualsWord(text, "t") ||
         EqualsWord(text, "f") || EqualsWord(text, "yes") || EqualsWord(text, "no");
}

bool IsNan(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return EqualsWord(text, "nan") || EqualsWord(text, "infinity");
}

uint32_t WholeForms(std::string_view digits, std::string_view text) {
  const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  if (digits.size() - zeros > static_cast<size_t>(kMaxDecimalDigits)) return 0;
  int64_t number = 0;
  const uint32_t wide = Bit(FieldForm::kWide) | Bit(FieldForm::kNumber);
  return absl::SimpleAtoi(AbseilText(text), &number) ? wide | Bit(FieldForm::kWhole) : wide;
}

/// Removes what stands between three and three digits before the decimals, and makes a point of what stands
/// before those. False if the text has others than the formats say.
bool MakePlain(std::string& number, const FieldFormats& formats) {
  std::string plain;
  size_t group = 0;  // digits since the last separator
  bool grouped = false, whole = true;
  for (const char c : number) {
    const bool digit = IsDigit(c);
    if (whole && c == formats.thousands && formats.thousands != FieldFormats::kNoThousands) {
      if (group == 0 || group > 3 || (grouped && group != 3)) return false;
      grouped = true;
      group = 0;
      continue;
    }
    if (whole && !digit && !plain.empty() && plain != "-") {
      if (grouped && group != 3) return false;
      whole = false;
    }
    if (c == '.' && formats.decimal_separator != '.') return false;
    plain += c == formats.decimal_separator ? '.' : c;
    group += digit ? 1 : 0;
  }
  if (whole && grouped && group != 3) return false;
  number = std::move(plain);
  return true;
}

bool HasOtherSeparators(const FieldFormats& formats) {
  return formats.decimal_separator != '.' || formats.thousands != FieldFormats::kNoThousands;
}

uint32_t NumberForms(std::string_view text) {
  if (HasLeadingZero(text)) return 0;
  std::string_view rest = text;
  TakeCharacter(rest, '-');
  const std::string_view whole = TakeDigits(rest);
  if (rest.empty()) return whole.empty() ? 0 : WholeForms(whole, text);
  size_t digits = whole.size();
  if (TakeCharacter(rest, '.')) digits += TakeDigits(rest).size();
  if (digits == 0) return 0;
  if (TakeCharacter(rest, 'e') || TakeCharacter(rest, 'E')) {
    if (!TakeCharacter(rest, '-')) TakeCharacter(rest, '+');
    if (TakeDigits(rest).empty()) return 0;
  }
  double number = 0;
  const bool finite = rest.empty() && absl::SimpleAtod(AbseilText(text), &number) && std::isfinite(number);
  return finite ? Bit(FieldForm::kNumber) : 0;
}

enum class DateOrder : uint8_t { kYearFirst, kDayFirst, kMonthFirst };

constexpr FieldForm kDates[] = {FieldForm::kDate, FieldForm::kDateDayFirst, FieldForm::kDateMonthFirst};
constexpr FieldForm kTimestamps[] = {FieldForm::kTimestamp, FieldForm::kTimestampDayFirst,
                                     FieldForm::kTimestampMonthFirst};
constexpr FieldForm kZoneds[] = {FieldForm::kZoned, FieldForm::kZonedDayFirst, FieldForm::kZonedMonthFirst};

/// A date of a year with four digits, so that which of the three is the year needs no guess.
bool TakeDate(std::string_view& text, DateOrder order, CivilDate& date) {
  std::string_view fields[3];
  fields[0] = TakeDigits(text);
  if (text.empty()) return false;
  const char separator = text.front();
  if (separator != '-' && separator != '/' && separator != '.') return false;
  text.remove_prefix(1);
  fields[1] = TakeDigits(text);
  if (!TakeCharacter(text, separator)) return false;
  fields[2] = TakeDigits(text);
  const size_t year = order == DateOrder::kYearFirst ? 0 : 2;
  const size_t month = order == DateOrder::kMonthFirst ? 0 : 1, day = 3 - year - month;
  const auto short_one = [&](size_t i) { return !fields[i].empty() && fields[i].size() <= 2; };
  if (fields[year].size() != 4 || !short_one(month) || !short_one(day)) return false;
  date = {NumberOf(fields[year]), NumberOf(fields[month]), NumberOf(fields[day])};
  return date.year >= 1 && date.month >= 1 && date.month <= 12 && date.day >= 1 &&
         date.day <= DaysInMonth(date.year, date.month);
}

struct ClockTime {
  int hour = 0, minute = 0, second = 0;
  std::string_view fraction;  // with its point
};

/// `9:30`, `09:30:15.25`. The day's end, 24:00:00, is one.
bool TakeClockTime(std::string_view& text, ClockTime& time) {
  constexpr size_t kFractionDigits = 9;
  const auto take = [&](size_t least, int& number) {
    const std::string_view digits = TakeDigits(text);
    if (digits.size() < least || digits.size() > 2) return false;
    number = NumberOf(digits);
    return true;
  };
  if (!take(1, time.hour) || !TakeCharacter(text, ':') || !take(2, time.minute)) return false;
  if (TakeCharacter(text, ':')) {
    if (!take(2, time.second)) return false;
    if (text.starts_with('.')) {
      const std::string_view point = text;
      text.remove_prefix(1);
      const size_t digits = TakeDigits(text).size();
      if (digits == 0 || digits > kFractionDigits) return false;
      time.fraction = point.substr(0, digits + 1);
    }
  }
  if (time.hour == 24) return time.minute == 0 && time.second == 0 && time.fraction.empty();
  return time.hour < 24 && time.minute < 60 && time.second < 60;
}

/// `AM` or `PM` behind the time, with a blank or without: makes it one of 24 hours.
bool TakeHalfOfDay(std::string_view& text, ClockTime& time) {
  std::string_view rest = text;
  TakeCharacter(rest, ' ');
  const bool am = EqualsWord(rest, "am");
  if (!am && !EqualsWord(rest, "pm")) return true;
  text = {};
  if (time.hour < 1 || time.hour > 12) return false;
  time.hour = time.hour % 12 + (am ? 0 : 12);
  return true;
}

/// `+02`, `-05:30`, `+0530`, `Z`, `UTC`.
bool IsZone(std::string_view text) {
  TakeCharacter(text, ' ');
  if (EqualsWord(text, "z") || EqualsWord(text, "utc")) return true;
  if (!TakeCharacter(text, '+') && !TakeCharacter(text, '-')) return false;
  const std::string_view hours = TakeDigits(text);
  if (text.empty()) return hours.size() == 2 || hours.size() == 4;
  return hours.size() == 2 && TakeCharacter(text, ':') && TakeDigits(text).size() == 2 && text.empty();
}

struct Moment {
  CivilDate date{};
  bool has_time = false;
  ClockTime time;
  std::string_view zone;
};

std::optional<Moment> ReadMoment(std::string_view text, DateOrder order) {
  Moment moment;
  if (!TakeDate(text, order, moment.date)) return std::nullopt;
  if (text.empty()) return moment;
  moment.has_time = true;
  if (!TakeCharacter(text, 'T')) {
    const size_t blanks = std::min(text.find_first_not_of(' '), text.size());
    if (blanks == 0) return std::nullopt;
    text.remove_prefix(blanks);
  }
  if (!TakeClockTime(text, moment.time) || !TakeHalfOfDay(text, moment.time)) return std::nullopt;
  if (!text.empty() && !IsZone(text)) return std::nullopt;
  moment.zone = text;
  return moment;
}

uint32_t MomentForms(std::string_view text) {
  uint32_t forms = 0;
  for (const DateOrder order : {DateOrder::kYearFirst, DateOrder::kDayFirst, DateOrder::kMonthFirst}) {
    const std::optional<Moment> moment = ReadMoment(text, order);
    if (!moment.has_value()) continue;
    const auto at = static_cast<size_t>(order);
    forms |= Bit(kZoneds[at]);
    if (moment->zone.empty()) forms |= Bit(kTimestamps[at]);
    if (!moment->has_time) forms |= Bit(kDates[at]);
  }
  ClockTime time;
  std::string_view rest = text;
  if (TakeClockTime(rest, time) && rest.empty()) forms |= Bit(FieldForm::kTime);
  return forms;
}

/// As above, where the user says how dates or timestamps are written.
uint32_t MomentForms(std::string_view text, const FieldFormats& formats) {
  uint32_t forms = MomentForms(text);
  if (!formats.date.empty()) {
    for (const FieldForm form : kDates) forms &= ~Bit(form);
    if (ReadByFormat(text, formats.date).has_value()) forms |= Bit(FieldForm::kDate);
  }
  if (!formats.timestamp.empty()) {
    for (const FieldForm form : kTimestamps) forms &= ~Bit(form);
    for (const FieldForm form : kZoneds) forms &= ~Bit(form);
    if (ReadByFormat(text, formats.timestamp).has_value()) forms |= Bit(FieldForm::kTimestamp);
  }
  return forms;
}

/// All that read a value, which has no blanks around.
uint32_t FormsOf(std::string_view text, const FieldFormats& formats) {
  if (HasOtherSeparators(formats)) {
    std::string plain(text);
    const uint32_t numbers = MakePlain(plain, formats) && !plain.empty() ? NumberForms(plain) : 0;
    if (numbers != 0) return Bit(FieldForm::kText) | numbers;
    if (NumberForms(text) != 0) return Bit(FieldForm::kText);
  }
  if (!formats.date.empty() || !formats.timestamp.empty()) {
    if (const uint32_t moments = MomentForms(text, formats); moments != 0)
      return Bit(FieldForm::kText) | moments | NumberForms(text);
  }
  const uint32_t always = Bit(FieldForm::kText);
  if (IsLetter(text[0])) {
    if (IsBoolean(text)) return always | Bit(FieldForm::kBoolean);
    return IsNan(text) ? always | Bit(FieldForm::kNumber) : always;
  }
  if (!IsDigit(text[0]) && text[0] != '-' && text[0] != '.') return always;
  if (const uint32_t numbers = NumberForms(text); numbers != 0) return always | numbers;
  if (IsNan(text)) return always | Bit(FieldForm::kNumber);
  return always | MomentForms(text, formats);
}

/// Also one with a sign or zeros before it, or with commas between its digits.
bool LooksLikeNumber(std::string_view text) {
  if (IsNan(text) || NumberForms(text) != 0) return true;
  if (text[0] == '+' || text[0] == '-') text.remove_prefix(1);
  return !text.empty() && IsDigit(text[0]) && MomentForms(text) == 0 &&
         text.find_first_not_of("0123456789.,") == std::string_view::npos;
}

/// The order of the form's dates, in the group of forms; nullopt: it is of another group.
std::optional<DateOrder> OrderIn(const FieldForm (&group)[3], FieldForm form) {
  for (const DateOrder order : {DateOrder::kYearFirst, DateOrder::kDayFirst, DateOrder::kMonthFirst}) {
    if (group[static_cast<size_t>(order)] == form) return order;
  }
  return std::nullopt;
}

std::string Written(const Moment& moment, bool dates, bool zoned) {
  std::string out = absl::StrFormat("%04d-%02d-%02d", moment.date.year, moment.date.month, moment.date.day);
  if (dates || !moment.has_time) return out;
  absl::StrAppendFormat(&out, " %02d:%02d:%02d", moment.time.hour, moment.time.minute, moment.time.second);
  out += moment.time.fraction;
  if (!zoned || moment.zone.empty()) return out;
  const std::string_view zone = TrimBlanks(moment.zone);
  out += IsLetter(zone[0]) ? "+00" : zone;
  return out;
}

}  // namespace

const char* Described(FieldForm form) {
  switch (form) {
    case FieldForm::kNone:
    case FieldForm::kText:
    case FieldForm::kGiven:
      return "texts";
    case FieldForm::kBoolean:
      return "booleans";
    case FieldForm::kWhole:
    case FieldForm::kWide:
      return "whole numbers";
    case FieldForm::kNumber:
      return "numbers";
    case FieldForm::kDate:
      return "dates, the year first";
    case FieldForm::kDateDayFirst:
      return "dates, the day first";
    case FieldForm::kDateMonthFirst:
      return "dates, the month first";
    case FieldForm::kTime:
      return "times";
    case FieldForm::kTimestamp:
    case FieldForm::kZoned:
      return "timestamps, the year first";
    case FieldForm::kTimestampDayFirst:
    case FieldForm::kZonedDayFirst:
      return "timestamps, the day first";
    case FieldForm::kTimestampMonthFirst:
    case FieldForm::kZonedMonthFirst:
      return "timestamps, the month first";
  }
  return "texts";
}

FieldForm AsTimestamp(FieldForm form, bool zoned) {
  for (size_t order = 0; order < std::size(kDates); ++order) {
    if (form == kDates[order] || form == kTimestamps[order] || (zoned && form == kZoneds[order]))
      return zoned ? kZoneds[order] : kTimestamps[order];
  }
  return FieldForm::kGiven;
}

std::optional<std::string_view> Canonical(std::string_view field, FieldForm form, const FieldFormats& formats,
                                          std::string& buffer) {
  if (form == FieldForm::kText || form == FieldForm::kNone) return field;
  const std::string_view text = TrimBlanks(field);
  if (text.empty()) return text;
  const std::optional<DateOrder> date = OrderIn(kDates, form), timestamp = OrderIn(kTimestamps, form),
                                 zoned = OrderIn(kZoneds, form);
  if (form == FieldForm::kGiven) {
    buffer = std::string(text);
    const bool number = HasOtherSeparators(formats) && MakePlain(buffer, formats) && NumberForms(buffer) != 0;
    return number ? std::string_view(buffer) : text;
  }
  if (!date.has_value() && !timestamp.has_value() && !zoned.has_value()) {
    if ((FormsOf(text, formats) & Bit(form)) == 0) return std::nullopt;
    if ((kNumbers & Bit(form)) == 0 || !HasOtherSeparators(formats)) return text;
    buffer = std::string(text);
    MakePlain(buffer, formats);
    return buffer;
  }
  const std::string& format = date.has_value() ? formats.date : formats.timestamp;
  if (!format.empty()) {
    std::optional<std::string> read = ReadByFormat(text, format);
    if (!read.has_value()) return std::nullopt;
    buffer = *std::move(read);
    return buffer;
  }
  const std::optional<Moment> moment =
      ReadMoment(text, date.value_or(timestamp.value_or(zoned.value_or(DateOrder::kYearFirst))));
  if (!moment.has_value() || (date.has_value() && moment->has_time) ||
      (!zoned.has_value() && !moment->zone.empty()))
    return std::nullopt;
  buffer = Written(*moment, date.has_value(), zoned.has_value());
  return buffer;
}

void FieldForms::Add(std::string_view field) {
  any_ = true;
  if (forms_ == Bit(FieldForm::kText)) return;
  const std::string_view text = TrimBlanks(field);
  if (!text.empty()) forms_ &= FormsOf(text, formats_);
}

void FieldForms::Add(const FieldForms& others) {
  any_ = any_ || others.any_;
  forms_ &= others.forms_;
}

FieldForm FieldForms::First() const {
  if (!any_) return FieldForm::kNone;
  if (forms_ == UINT32_MAX) return FieldForm::kText;  // blanks alone
  for (auto form = static_cast<uint32_t>(FieldForm::kBoolean);; ++form) {
    if ((forms_ & (uint32_t{1} << form)) != 0) return static_cast<FieldForm>(form);
  }
}

bool FieldForms::IsAlike(std::string_view field) const {
  const FieldForm form = First();
  const std::string_view text = TrimBlanks(field);
  if (form == FieldForm::kText || form == FieldForm::kNone || text.empty()) return true;
  if (form == FieldForm::kBoolean) return IsBoolean(text);
  if ((kNumbers & Bit(form)) != 0) return LooksLikeNumber(text);
  return (FormsOf(text, formats_) & ~(Bit(FieldForm::kText) | Bit(FieldForm::kBoolean) | kNumbers)) != 0;
}

}  // namespace nam::csv
