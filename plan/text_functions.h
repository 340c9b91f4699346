#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Functions of text, over characters of UTF-8. Case is that of C.UTF-8.
namespace nam::plan {

std::string UpperCase(std::string_view text);
std::string LowerCase(std::string_view text);
/// `characters` characters from the 1-based `from` on; the caller ensures that they are not negative. A view
/// into `text`.
std::string_view Substring(std::string_view text, __int128 from, __int128 characters);

}  // namespace nam::plan
