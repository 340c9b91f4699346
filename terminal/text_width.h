#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nam {

/// Removes and returns the first code point of `text`, which must not be empty. Invalid UTF-8 bytes,
/// including overlong forms and surrogates, are returned one at a time as U+FFFD.
uint32_t NextCodePoint(std::string_view& text);
void AppendUtf8(uint32_t code_point, std::string& out);

/// The columns of `text` on a terminal: 2 for East Asian wide characters and emoji, 0 for combining marks.
size_t DisplayWidth(std::string_view text);

/// The text as one displayable line: control characters become `\n`, `\t`, `\x1b`, and invalid UTF-8 becomes
/// U+FFFD.
std::string Printable(std::string_view text);

}  // namespace nam
