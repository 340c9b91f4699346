#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "sql/tokens.h"

namespace nam::sql {
namespace {

/// Words of conditions, which do not end a chain of AND and OR although they are reserved.
constexpr std::string_view kWordsOfTerms[] = {"all",          "any",
                                              "array",        "asymmetric",
                                              "collate",      "current_date",
                                              "current_time", "current_timestamp",
                                              "distinct",     "false",
                                              "from",         "in",
                                              "localtime",    "localtimestamp",
                                              "not",          "null",
                                              "some",         "symmetric",
                                              "true"};

/// What stands between two parentheses, between CASE and END, or outside of all of them.
struct Level {
  size_t outside = 0;                 // tokens outside of chains and rows
  size_t term = 0, longest_term = 0;  // of the chain of AND and OR
  size_t longest_row = 0;             // of VALUES
  int betweens = 0;                   // whose AND has not come
  bool after_values = false;          // the last token is VALUES, or a comma between its rows
  bool after_row = false;
  bool is_case = false;

  void EndTerm() {
    longest_term = std::max(longest_term, term);
    term = 0;
  }
  void EndChain() {
    EndTerm();
    outside += longest_term;
    longest_term = 0;
    betweens = 0;
  }
  /// Of a level that has ended.
  size_t Depth() {
    EndChain();
    return outside + longest_row;
  }
};

class NestingCounter {
 public:
  explicit NestingCounter(std::string_view text) : text_(text), levels_(1) {}

  void Add(const Token& token) {
    // Behind a dot or AS even these words are names.
    const bool name = std::exchange(before_name_, token.kind == '.' || Is(token, "as"));
    if (token.kind == '(' || token.kind == '[') return Open(false);
    if (token.kind == ')' || token.kind == ']') return Close(false);
    if (name) return AddPlain(token);
    if (Is(token, "case")) return Open(true);
    if (Is(token, "end") && levels_.back().is_case) return Close(true);
    Level& level = levels_.back();
    level.after_values = Is(token, "values") || (level.after_row && token.kind == ',');
    level.after_row = false;
    if (Is(token, "between")) ++level.betweens;
    if (Is(token, "and") && level.betweens > 0) {
      --level.betweens;  // the end of the range, not of the term
    } else if (Is(token, "and") || Is(token, "or")) {
      return level.EndTerm();
    } else if (token.reserved && !IsOfTerm(token)) {
      level.EndChain();
      ++level.outside;
      return;
    }
    level.term += token.flat() ? 0 : 1;
  }

  void AddPlain(const Token& token) {
    levels_.back().after_values = levels_.back().after_row = false;
    levels_.back().term += token.flat() ? 0 : 1;
  }

  /// What is not closed counts as if it were.
  size_t Depth() {
    while (levels_.size() > 1) Close(levels_.back().is_case);
    return levels_[0].Depth();
  }

 private:
  static constexpr size_t kBrackets = 2;

  bool Is(const Token& token, std::string_view word) const {
    const auto begin = static_cast<size_t>(token.start);
    const std::string_view spelling = text_.substr(begin, static_cast<size_t>(token.end) - begin);
    return spelling.size() == word.size() &&
           absl::EqualsIgnoreCase({spelling.data(), spelling.size()}, {word.data(), word.size()});
  }
  bool IsOfTerm(const Token& token) const {
    return std::any_of(std::begin(kWordsOfTerms), std::end(kWordsOfTerms),
                       [&](std::string_view word) { return Is(token, word); });
  }

  void Open(bool is_case) {
    levels_.emplace_back();
    levels_.back().is_case = is_case;
  }
  void Close(bool is_case) {
    if (levels_.size() == 1 || levels_.back().is_case != is_case) return;  // the parser reports it
    const size_t depth = levels_.back().Depth() + kBrackets;
    levels_.pop_back();
    Level& level = levels_.back();
    level.after_row = level.after_values && !is_case;
    if (level.after_row) {
      level.longest_row = std::max(level.longest_row, depth);
    } else {
      level.term += depth;
    }
    level.after_values = false;
  }

  const std::string_view text_;
  std::vector<Level> levels_;
  bool before_name_ = false;
};

}  // namespace

size_t NestingTokens(std::string_view text, const std::vector<Token>& tokens) {
  NestingCounter counter(text);
  for (const Token& token : tokens) {
    if (!token.comment()) counter.Add(token);
  }
  return counter.Depth();
}

}  // namespace nam::sql
