#include "terminal/suggestion.h"

#include <algorithm>
#include <cstddef>

#include "base/edit_distance.h"

namespace nam {
namespace {

constexpr size_t kWordBytesMax = 64;

}  // namespace

std::string Suggestion(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  if (word.size() > kWordBytesMax) return best;
  size_t least = SIZE_MAX;
  for (const std::string& candidate : known) {
    const size_t allowed = std::max<size_t>(1, candidate.size() / 3);
    const auto distance = static_cast<size_t>(EditDistance(word, candidate));
    if (distance <= allowed && distance < candidate.size() && distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace nam
