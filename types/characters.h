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

constexpr char SmallLetter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
/// Whether the text begins with the word, in any case of letters.
constexpr bool BeginsWithWord(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
           return SmallLetter(a) == SmallLetter(b);
         });
}

inline constexpr std::string_view kBlanks = " \t\n\v\f\r";

/// Removes surrounding blanks.
constexpr std::string_view TrimBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

}  // namespace nam
