#pragma once

#include <string>
#include <vector>

namespace nam {

/// The likely intended word: the one of `known` with the fewest letters added, left out, changed or swapped,
/// if these are few for its length. Empty if there is none.
std::string Suggestion(const std::string& word, const std::vector<std::string>& known);

}  // namespace nam
