#include "terminal/suggestion.h"

#include <algorithm>
#include <cstddef>

namespace nam {
namespace {

constexpr size_t kWordBytesMax = 64;

/// Optimal string alignment: Levenshtein's distance, and a swap of neighbours counts as one.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min(
          {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string Suggestion(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  if (word.size() > kWordBytesMax) return best;
  size_t least = SIZE_MAX;
  for (const std::string& candidate : known) {
    const size_t allowed = std::max<size_t>(1, candidate.size() / 3);
    const size_t distance = Distance(word, candidate);
    if (distance <= allowed && distance < candidate.size() && distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace nam
