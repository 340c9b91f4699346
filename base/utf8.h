#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace nam {

/// Bytes of the UTF-8 character at text[at], limited by the end of the text.
inline size_t CharacterBytes(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return std::min(bytes, text.size() - at);
}
/// The number of characters in UTF-8 text.
size_t CountCharacters(std::string_view text);
/// The position in bytes after the first `characters`.
size_t EndOfCharacters(std::string_view text, size_t characters);

/// True if all bytes belong to well-formed UTF-8 sequences and none is NUL. Otherwise sets `*bad` to the
/// position.
bool IsCleanUtf8(std::string_view text, int* bad);

}  // namespace nam
