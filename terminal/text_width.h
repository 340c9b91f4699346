#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nam {

/// Takes one code point off the front of `text`, which must not be empty. Bytes that are not UTF-8
/// (also overlong forms and surrogates) come out one at a time as U+FFFD.
uint32_t NextCodePoint(std::string_view& text);
void AppendUtf8(uint32_t code_point, std::string& out);

/// Columns that `text` takes on a terminal: 2 for East Asian wide characters and emoji, 0 for
/// combining marks.
size_t DisplayWidth(std::string_view text);

/// One line that a terminal can show: control characters are written as `\n`, `\t`, `\x1b`, and
/// what is not UTF-8 as U+FFFD.
std::string Printable(std::string_view text);

}  // namespace nam
