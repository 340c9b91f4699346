#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "plan/expression.h"

namespace nam::plan {
namespace {

/// The definition of LIKE, one character of the pattern at a time.
bool NaiveLike(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '%') {
    const size_t character = !text.empty() && (text[0] & 0x80) != 0 ? 2 : 1;
    return NaiveLike(text, pattern.substr(1)) ||
           (!text.empty() && NaiveLike(text.substr(character), pattern));
  }
  if (text.empty()) return false;
  if (pattern[0] == '\\' && pattern.size() > 1) {
    return pattern[1] == text[0] && NaiveLike(text.substr(1), pattern.substr(2));
  }
  // The characters that the test draws have one or two bytes.
  if (pattern[0] == '_') return NaiveLike(text.substr((text[0] & 0x80) != 0 ? 2 : 1), pattern.substr(1));
  return pattern[0] == text[0] && NaiveLike(text.substr(1), pattern.substr(1));
}

RC_GTEST_PROP(LikeProperty, AsDefined, ()) {
  const auto draw = [](std::vector<std::string> characters) {
    const auto drawn =
        *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::move(characters)));
    return absl::StrJoin(drawn, "");
  };
  const std::string text = draw({"a", "b", "é", "%", "_", "\\"});
  const std::string pattern = draw({"a", "b", "é", "%", "_", "_", "\\", "%"});
  RC_PRE(text.size() < 30 && pattern.size() < 20);
  RC_ASSERT(MatchesLike(text, pattern) == NaiveLike(text, pattern));
}

RC_GTEST_PROP(LikeProperty, MatchesWhatItWasMadeFrom, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("", "a", "bc", "é", "aé日", "日本b"));
  std::string text, pattern;
  for (size_t i = 0; i < parts.size(); ++i) {
    text += parts[i];
    pattern += i % 3 == 0 ? parts[i] : i % 3 == 1 ? "%" : std::string(CountCharacters(parts[i]), '_');
  }
  RC_ASSERT(MatchesLike(text, pattern));
}

}  // namespace
}  // namespace nam::plan
