#include "sql/file_names.h"

#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"

namespace nam::sql {
namespace {

/// Follows the clauses of a statement, a token at a time.
///
///     select substring(x from 'a') from a join 'b.csv' b on x is distinct from 'c', 'd.csv'
///                      no SELECT in            └ here        here none ┘          └ and here
///                      these parentheses
class FileNameFinder {
 public:
  explicit FileNameFinder(const std::string& text) : text_(text), scan_(Scan(text)) {}

  std::string Replace() {
    std::string out = text_;
    levels_.emplace_back();
    for (const Token& token : scan_.tokens) {
      if (token.comment()) continue;
      if (NamesFile(token)) {
        out.replace(Start(token), Bytes(token), Placeholder(Bytes(token)));
        if (begins_query_) out.replace(before_, 5, "TABLE");
      }
      Follow(token);
    }
    return out;
  }

 private:
  struct Level {
    bool selects = false;  // a SELECT, or an UPDATE, has begun
    bool in_from = false;
  };

  static size_t Start(const Token& token) { return static_cast<size_t>(token.start); }
  static size_t Bytes(const Token& token) { return static_cast<size_t>(token.end - token.start); }
  std::string Word(const Token& token) const {
    return absl::AsciiStrToLower(text_.substr(Start(token), Bytes(token)));
  }
  /// A quoted name of the same length that nothing else has.
  static std::string Placeholder(size_t bytes) { return "\"" + std::string(bytes - 2, 'f') + "\""; }

  bool NamesFile(const Token& token) {
    begins_query_ = false;
    if (text_[Start(token)] != '\'' || Bytes(token) < 3) return false;
    const Level& level = levels_.back();
    if (level.in_from && (word_ == "from" || word_ == "join" || word_ == ",")) return true;
    // TABLE is a byte longer than FROM.
    begins_query_ = word_ == "from" && !level.selects && kBeforeQuery.contains(word_before_) &&
                    before_ + 5 <= Start(token);
    return begins_query_;
  }

  void Follow(const Token& token) {
    std::string word = Word(token);
    Level& level = levels_.back();
    if (word == "(") {
      levels_.emplace_back();
    } else if (word == ")") {
      if (levels_.size() > 1) levels_.pop_back();
    } else if (word == "select" || word == "update") {
      level = {.selects = true};
    } else if (word == "from") {
      const bool compares = word_ == "distinct" && (word_before_ == "is" || word_before_ == "not");
      level.in_from |= level.selects && !compares;
    } else if (kSetOperations.contains(word)) {
      level = {};
    } else if (kBehindFrom.contains(word)) {
      level.in_from = false;
    }
    word_before_ = std::move(word_);
    word_ = std::move(word);
    before_ = Start(token);
  }

  inline static const std::set<std::string> kBeforeQuery = {"", "as", "explain", "analyze", ")"};
  inline static const std::set<std::string> kSetOperations = {"union", "intersect", "except", "delete"};
  inline static const std::set<std::string> kBehindFrom = {"where",  "group", "having", "order",     "limit",
                                                           "offset", "fetch", "window", "returning", "set"};
  const std::string& text_;
  const ScanResult scan_;
  std::vector<Level> levels_;  // of parentheses
  std::string word_, word_before_;
  size_t before_ = 0;          // the place of word_
  bool begins_query_ = false;  // the FROM before the file's name
};

}  // namespace

std::string WithFilesAsTables(const std::string& text) {
  return FileNameFinder(text).Replace();
}

std::optional<std::string> FileNameAt(const SqlText& text, int position) {
  const std::string& all = text.text();
  if (position < 0 || static_cast<size_t>(position) >= all.size() ||
      all[static_cast<size_t>(position)] != '\'')
    return std::nullopt;
  const ScanResult scan = Scan(all);
  for (const Token& token : scan.tokens) {
    if (token.start != position) continue;
    const auto bytes = static_cast<size_t>(token.end - token.start);
    return absl::StrReplaceAll(all.substr(static_cast<size_t>(position) + 1, bytes - 2), {{"''", "'"}});
  }
  return std::nullopt;
}

}  // namespace nam::sql
