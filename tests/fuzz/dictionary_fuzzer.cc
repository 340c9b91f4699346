// A dictionary as a memory server sent it.

#include <string>

#include "base/check.h"
#include "storage/dictionary.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const std::vector<std::string_view>& entries :
       {std::vector<std::string_view>{}, {""}, {"ASIA", "EUROPE"}, {"", "a", "ab", "b"}}) {
    const std::vector<std::byte> bytes = storage::Dictionary::Encode(entries);
    seeds.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return seeds;
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto dictionary = storage::Dictionary::Decode({bytes, bytes + size});
  if (!dictionary.ok()) return 0;
  size_t text_bytes = 0;
  std::vector<std::string_view> entries;
  for (size_t i = 0; i < (*dictionary)->size(); ++i) {
    entries.push_back((**dictionary)[i]);
    text_bytes += entries.back().size();
    NAM_CHECK((*dictionary)->LowerBound(entries.back()) <= (*dictionary)->size());
  }
  NAM_CHECK(text_bytes <= size);
  NAM_CHECK(storage::Dictionary::Encode(entries) == std::vector<std::byte>(bytes, bytes + size));
  return 0;
}
