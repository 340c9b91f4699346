#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace nam {

/// Bytes of the UTF-8 character that begins at text[at], as far as the text goes.
inline size_t CharacterBytes(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return std::min(bytes, text.size() - at);
}
/// Characters of UTF-8 text.
size_t CountCharacters(std::string_view text);
/// Where its first `characters` end, in bytes.
size_t EndOfCharacters(std::string_view text, size_t characters);

/// Whether every byte belongs to a well-formed UTF-8 sequence and none is NUL; if not, `*bad` is where.
bool IsCleanUtf8(std::string_view text, int* bad);

}  // namespace nam
