#pragma once

#include <array>
#include <string_view>

/// English names of months and days. Their first three letters are their short names.
namespace nam {

inline constexpr std::array<std::string_view, 12> kMonthNames = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
/// As WeekDay counts them (types/date.h).
inline constexpr std::array<std::string_view, 7> kWeekDayNames = {
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
inline constexpr size_t kShortNameLetters = 3;

}  // namespace nam
