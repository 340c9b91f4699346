#include "types/hash.h"

#include <xxhash.h>

namespace nam {

uint64_t HashText(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace nam
