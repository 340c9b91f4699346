#pragma once

#include <cstdint>
#include <cstdlib>

namespace nam {

/// A number from the environment, such as NAM_SEED, the one seed of a random test to run again, and
/// NAM_SEEDS, how many to run; `otherwise` if it is not set.
inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace nam
