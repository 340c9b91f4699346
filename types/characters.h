#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

/// Characters in the text of values: ASCII, whatever the locale.
namespace nam {

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

inline constexpr std::string_view kBlanks = " \t\n\v\f\r";

/// Removes surrounding blanks.
constexpr std::string_view TrimBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

}  // namespace nam
