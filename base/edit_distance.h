#pragma once

#include <string_view>

namespace nam {

/// Edits (insert, delete, replace, swap neighbours) that turn a into b.
int EditDistance(std::string_view a, std::string_view b);

}  // namespace nam
