#pragma once

#include <string_view>

namespace nam {

/// The number of edits (insert, delete, replace, swap adjacent) that turn a into b.
int EditDistance(std::string_view a, std::string_view b);

}  // namespace nam
