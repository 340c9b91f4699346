#include "storage/dictionary.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace nam::storage {
namespace {

TEST(Dictionary, KeepsOrderAndFindsEntries) {
  EXPECT_TRUE(rc::check(
      "dictionary = sorted set", [](const std::set<std::string>& strings, const std::string& probe) {
        const std::vector<std::string_view> sorted(strings.begin(), strings.end());
        const auto dictionary = Dictionary::Decode(Dictionary::Encode(sorted));
        RC_ASSERT(dictionary.ok());
        RC_ASSERT((*dictionary)->size() == sorted.size());
        for (size_t i = 0; i < sorted.size(); ++i) {
          RC_ASSERT((**dictionary)[i] == sorted[i]);
          RC_ASSERT((*dictionary)->Find(sorted[i]) == std::optional<size_t>(i));
        }
        RC_ASSERT((*dictionary)->LowerBound(probe) ==
                  static_cast<size_t>(std::distance(strings.begin(), strings.lower_bound(probe))));
        RC_ASSERT((*dictionary)->Find(probe).has_value() == strings.contains(probe));
      }));
}

TEST(Dictionary, ArbitraryBytesAreRefusedOrReadWithinBounds) {
  EXPECT_TRUE(rc::check("decode never reads outside", [](const std::vector<uint8_t>& noise) {
    std::vector<std::byte> bytes(noise.size());
    std::transform(noise.begin(), noise.end(), bytes.begin(), [](uint8_t b) { return std::byte(b); });
    const auto dictionary = Dictionary::Decode(bytes);
    if (!dictionary.ok()) return;
    size_t text = 0;
    for (size_t i = 0; i < (*dictionary)->size(); ++i) text += (**dictionary)[i].size();
    RC_ASSERT(text <= bytes.size());
  }));
  std::vector<std::byte> cut = Dictionary::Encode({"a", "bb", "ccc"});
  for (; !cut.empty(); cut.pop_back()) {
    if (cut.size() < Dictionary::Encode({"a", "bb", "ccc"}).size()) {
      EXPECT_FALSE(Dictionary::Decode(cut).ok()) << cut.size();
    }
  }
}

}  // namespace
}  // namespace nam::storage
