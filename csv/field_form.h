#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "csv/dialect.h"

namespace nam::csv {

/// How the values of a file's column are written. A column has the first form in this order that reads all of
/// its values. Blanks around a value belong to none but texts.
enum class FieldForm : uint8_t {
  kNone,     // there is no value
  kBoolean,  // true, t, yes; false, f, no
  kWhole,    // a number that 64 bits hold
  kWide,     // a whole number of up to 38 digits
  kNumber,   // with decimals or an exponent, nan, infinity
  kDate,     // 2020-12-31, with - / or .
  kDateDayFirst,
  kDateMonthFirst,
  kTime,
  kTimestamp,  // a date alone is one, too
  kTimestampDayFirst,
  kTimestampMonthFirst,
  kZoned,  // a timestamp without a zone is one, too
  kZonedDayFirst,
  kZonedMonthFirst,
  kText,
  kGiven,  // the user says the type: what PostgreSQL's input reads
};

/// `whole numbers`, for messages.
const char* Described(FieldForm form);

/// The form of timestamps, perhaps with a zone, whose dates are as those of a column's form; kGiven if it has
/// none.
FieldForm AsTimestamp(FieldForm form, bool zoned);

/// The value of a field as PostgreSQL's input reads it: without blanks around, a date as 2020-12-31. Empty:
/// there is none. Nullopt if the field has another form. The result may lie in `buffer`.
std::optional<std::string_view> Canonical(std::string_view field, FieldForm form, const FieldFormats& formats,
                                          std::string& buffer);

/// Whether a number begins with a zero that it does not need. A code does, such as 01234, and it is text: as
/// a number it would be another one.
constexpr bool HasLeadingZero(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/// The forms that read all of some values.
class FieldForms {
 public:
  FieldForms() = default;
  explicit FieldForms(const FieldFormats& formats) : formats_(formats) {}

  void Add(std::string_view field);
  void Add(const FieldForms& others);
  /// The column's.
  FieldForm First() const;
  /// Whether the field is of the same family as the values: booleans, numbers, dates and times. Numbers are
  /// taken broadly: 007 looks like one. Any field is like texts, or like none.
  bool IsAlike(std::string_view field) const;

 private:
  FieldFormats formats_;
  uint32_t forms_ = UINT32_MAX;
  bool any_ = false;
};

}  // namespace nam::csv
