#include "execution/join/text_keys.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <string>
#include <thread>

#include "plan/expression.h"

namespace nam::execution {
namespace {

CodeMeaning MeaningOf(const std::set<std::string>& texts, uint64_t id) {
  CodeMeaning meaning;
  meaning.type = Type::String();
  meaning.dictionary =
      *storage::Dictionary::Decode(storage::Dictionary::Encode({texts.begin(), texts.end()}));
  meaning.dictionary_id = id;
  meaning.codes = texts.size() + 1;
  return meaning;
}

/// Few letters and blanks, so that there are many that differ by blanks alone.
std::set<std::string> RandomTexts() {
  return *rc::gen::container<std::set<std::string>>(
      rc::gen::scale(0.05, rc::gen::container<std::string>(rc::gen::element('a', 'b', ' '))));
}

TEST(TextKeys, EntriesAreEqualIfTheirTextsAre) {
  EXPECT_TRUE(rc::check("translation = text", [] {
    const CodeMeaning build = MeaningOf(RandomTexts(), 7), probe = MeaningOf(RandomTexts(), 8);
    const bool ignores_blanks = *rc::gen::arbitrary<bool>();
    const TextKeys keys(build, ignores_blanks);
    const auto entry_of = [](const std::vector<uint32_t>& to, size_t i) {
      return to.empty() ? static_cast<uint32_t>(i) : to[i];
    };
    const auto equal = [&](std::string_view a, std::string_view b) {
      return ignores_blanks ? plan::WithoutBlanks(a) == plan::WithoutBlanks(b) : a == b;
    };
    const auto& translation = keys.Of(probe);
    for (size_t p = 0; p < probe.dictionary->size(); ++p) {
      const std::string_view text = (*probe.dictionary)[p];
      RC_ASSERT(keys.EntryOf(text) == translation[p]);
      bool found = false;
      for (size_t b = 0; b < build.dictionary->size(); ++b) {
        const bool same = equal(text, (*build.dictionary)[b]);
        RC_ASSERT(same == (translation[p] == entry_of(keys.canonical(), b)));
        found |= same;
      }
      RC_ASSERT(found == (translation[p] != TextKeys::kNoEntry));
    }
  }));
}

TEST(TextKeys, ADictionaryIsTranslatedOnce) {
  const CodeMeaning build = MeaningOf({"a", "c"}, 1), probe = MeaningOf({"b", "c"}, 2);
  const TextKeys keys(build, false);
  EXPECT_TRUE(keys.Of(build).empty()) << "its own entries are the same";
  const std::vector<uint32_t>* first = nullptr;
  std::vector<std::thread> threads;
  std::vector<const std::vector<uint32_t>*> seen(4);
  for (size_t t = 0; t < seen.size(); ++t) threads.emplace_back([&, t] { seen[t] = &keys.Of(probe); });
  for (std::thread& thread : threads) thread.join();
  first = &keys.Of(probe);
  for (const auto* translation : seen) EXPECT_EQ(translation, first);
  EXPECT_EQ(*first, (std::vector<uint32_t>{TextKeys::kNoEntry, 1}));
}

TEST(TextKeys, AnEmptyDictionaryHasNoEntryOfTheOther) {
  const TextKeys keys(MeaningOf({"a"}, 1), false);
  EXPECT_FALSE(keys.Of(MeaningOf({}, 2)).empty()) << "not the same entries";
  const TextKeys none(MeaningOf({}, 3), true);
  EXPECT_EQ(none.EntryOf("a"), TextKeys::kNoEntry);
}

}  // namespace
}  // namespace nam::execution
