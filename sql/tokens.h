#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sql/parameters.h"
#include "sql/statement_time.h"

namespace nam::sql {

struct Token {
  int start = 0;  // byte offsets
  int end = 0;
  int kind = 0;           // PostgreSQL's token number; for a single character, the character
  bool reserved = false;  // a word that names nothing unless quoted

  bool comment() const;
  /// Numbers, strings and commas: tokens that make a statement longer but never deeper.
  bool flat() const;
};

/// A scanner's error, in bytes.
struct ScanError {
  std::string message;
  int position = -1;
};

/// Tokens by PostgreSQL's own scanner, comments included. On an error `tokens` is empty.
struct ScanResult {
  std::vector<Token> tokens;
  std::vector<ScanError> error;  // at most one
};
ScanResult Scan(const std::string& text);

/// Returns an upper bound of the depth of the statement's tree, at one level per token that is not flat. Rows
/// of VALUES are siblings, and so are the terms of a chain of AND and OR: of these only the longest counts.
///
///     insert into t (a, b) values (1, -2), (3 + 4, now()) on conflict do nothing
///     └────────────────────────────┘       └───────────┘  └───────────────────┘
///     select a from t where b = 1 or b between 2 and c or b = 5
///     └───────────────────┘          └──────────────┘
size_t NestingTokens(std::string_view text, const std::vector<Token>& tokens);

/// Byte offset of the 1-based character `cursor`; -1 for 0.
int ByteOffset(std::string_view text, int cursor);

/// A statement's text with its tokens. The parser gives positions of expressions, but not of a clause's
/// words, which refusals point at.
class SqlText {
 public:
  SqlText() = default;
  SqlText(std::string text, std::vector<Token> tokens);

  const std::string& text() const { return text_; }
  /// The time and place of the statement.
  const StatementTime& time() const { return time_; }
  void set_time(StatementTime time) { time_ = std::move(time); }
  /// The statement's parameters, if any; borrowed.
  Parameters* parameters() const { return parameters_; }
  void set_parameters(Parameters* parameters) { parameters_ = parameters; }
  std::string_view Spelling(size_t token) const;
  /// Start of the first token; 0 if there is none.
  int Start() const;
  /// Start of the first occurrence of consecutive `words`, at or after `from`; -1 if none. Without words: of
  /// the first token there.
  int Find(std::initializer_list<std::string_view> words, int from = 0) const;
  /// Start of the last occurrence of `word` before `before`; -1 if none.
  int FindBefore(std::string_view word, int before) const;
  /// The end of a list's item that begins before `from`: at its comma or closing parenthesis, or the text's
  /// end.
  int EndOfItem(int from) const;
  /// The tokens from `from` to `to` on one line, without comments; string constants replace those that begin
  /// at a position of `instead`.
  std::string Excerpt(int from, int to, const std::map<int, std::string>& instead) const;
  /// The integer constant at byte `position` with its signs and parentheses: `-(5)`. 0 if there is none.
  int64_t IntegerAt(int position) const;

 private:
  bool Spells(size_t token, std::string_view word) const;

  std::string text_;
  std::vector<Token> tokens_;  // without comments
  StatementTime time_;
  Parameters* parameters_ = nullptr;
};

/// Start of a setting's name in SET, RESET or SHOW: after SESSION or LOCAL, if present.
int SettingPosition(const SqlText& text);

}  // namespace nam::sql
