#include "fabric/strangers.h"

#include <sys/resource.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/check.h"

namespace nam::fabric {
namespace {

constexpr size_t kPlaces = 256;
constexpr size_t kPlacesLeast = 8;
constexpr size_t kPartOfDescriptors = 8;
constexpr size_t kCrowdPartOfPlaces = 4;

}  // namespace

size_t StrangersMax() {
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return kPlacesLeast;
  return std::clamp<size_t>(descriptors.rlim_cur / kPartOfDescriptors, kPlacesLeast, kPlaces);
}

size_t ChooseLeaver(std::span<const uint64_t> sources, uint64_t random) {
  NAM_CHECK(!sources.empty());
  std::unordered_map<uint64_t, size_t> counts;
  for (const uint64_t source : sources) ++counts[source];
  const auto largest = std::max_element(counts.begin(), counts.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool crowd = largest->second * kCrowdPartOfPlaces > sources.size();
  std::vector<size_t> candidates;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!crowd || sources[i] == largest->first) candidates.push_back(i);
  }
  const size_t older = (candidates.size() + 1) / 2;
  return candidates[random % older];
}

}  // namespace nam::fabric
