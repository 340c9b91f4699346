#include "plan/regular_expression.h"

#include <re2/re2.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::plan {
namespace {

/// Rewrites PostgreSQL's advanced regular expressions for RE2.
class Translator {
 public:
  Translator(std::string_view pattern, int position) : left_(pattern), position_(position) {}

  absl::StatusOr<std::string> Translate(bool* ignore_case) {
    if (left_.starts_with("***")) return Lacks("the director ***");
    NAM_RETURN_IF_ERROR(Options(ignore_case));
    while (!left_.empty()) {
      const char c = left_[0];
      if (c == '\\') {
        NAM_RETURN_IF_ERROR(Escape(false));
      } else if (c == '[') {
        NAM_RETURN_IF_ERROR(Bracket());
      } else if (left_.starts_with("(?")) {
        if (left_.starts_with("(?=") || left_.starts_with("(?!")) return Lacks("looking ahead");
        if (left_.starts_with("(?<")) return Lacks("looking behind");
        if (!left_.starts_with("(?:")) return Bad("quantifier operand invalid");
        Consume(3);
      } else if (c == '{' && left_.size() > 1 && left_[1] >= '0' && left_[1] <= '9') {
        const bool of_one_size = left_.find(',') > left_.find('}');
        NAM_RETURN_IF_ERROR(Bound());
        if (of_one_size && !left_.starts_with('?')) continue;
        Quantified();
      } else if (c == '*' || c == '+' || c == '?') {
        Consume(1);
        Quantified();
      } else {
        alternates_ = alternates_ || c == '|';
        Consume(1);
      }
    }
    return std::move(out_);
  }

  /// Whether lazy quantifiers occur beside greedy ones or |: PostgreSQL then decides for the whole
  /// expression, RE2 for each.
  bool mixes_greed() const { return lazy_ && (greedy_ || alternates_); }
  bool lazy() const { return lazy_; }

 private:
  void Quantified() {
    const bool lazy = left_.starts_with('?');
    (lazy ? lazy_ : greedy_) = true;
    if (lazy) Consume(1);
  }
  absl::Status Bad(std::string_view what) const {
    return UserError(sqlstate::kBadExpression,
                     absl::StrCat("invalid regular expression: ", std::string(what)), position_);
  }
  absl::Status Lacks(std::string what) const {
    return Refusal(absl::StrCat(what, " in a regular expression is not supported"), position_,
                   "expressions are matched in linear time, by RE2");
  }
  void Consume(size_t bytes) {
    out_.append(left_.substr(0, bytes));
    left_.remove_prefix(bytes);
  }

  /// `(?i)` and similar, allowed only at the beginning.
  absl::Status Options(bool* ignore_case) {
    if (!left_.starts_with("(?")) return absl::OkStatus();
    const size_t end = left_.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 2);
    if (end == std::string_view::npos || end == 2 || left_[end] != ')') return absl::OkStatus();
    for (const char option : left_.substr(2, end - 2)) {
      if (option == 'i') {
        *ignore_case = true;
      } else if (option == 'c') {
        *ignore_case = false;
      } else if (option != 's' && option != 't') {
        return Lacks(absl::StrCat("the option ", std::string(1, option)));
      }
    }
    left_.remove_prefix(end + 1);
    return absl::OkStatus();
  }

  /// `{m}`, `{m,}`, `{m,n}`.
  absl::Status Bound() {
    const size_t end = left_.find('}');
    if (end == std::string_view::npos) return Bad("braces {} not balanced");
    Consume(end + 1);
    return absl::OkStatus();
  }

  absl::Status Escape(bool in_bracket) {
    if (left_.size() == 1) return Bad("invalid escape \\ sequence");
    const char c = left_[1];
    switch (c) {
      case 'd':
        Consume(2);
        return absl::OkStatus();
      case 'D':
        if (in_bracket) return Bad("invalid escape \\ sequence");
        Consume(2);
        return absl::OkStatus();
      case 's':
        return Put(2, in_bracket ? "\\s\\v" : "[\\s\\v]");
      case 'S':
        if (in_bracket) return Bad("invalid escape \\ sequence");
        return Put(2, "[^\\s\\v]");
      case 'w':
        return Put(2, in_bracket ? "\\p{L}\\p{N}_" : "[\\p{L}\\p{N}_]");
      case 'W':
        if (in_bracket) return Bad("invalid escape \\ sequence");
        return Put(2, "[^\\p{L}\\p{N}_]");
      case 'y':
      case 'Y':
      case 'm':
      case 'M':
        return Lacks(absl::StrCat("\\", std::string(1, c)));
      case 'A':
        if (in_bracket) return Bad("invalid escape \\ sequence");
        Consume(2);
        return absl::OkStatus();
      case 'Z':
        if (in_bracket) return Bad("invalid escape \\ sequence");
        return Put(2, "\\z");
      case 'a':
      case 'f':
      case 'n':
      case 'r':
      case 't':
      case 'v':
        Consume(2);
        return absl::OkStatus();
      case 'b':
        return Put(2, "\\x08");
      case 'B':
        return Put(2, "\\\\");
      case 'e':
        return Put(2, "\\x1b");
      case '0':
        return Lacks("\\0");
      case 'u':
        return Code(4);
      case 'U':
        return Code(8);
      case 'x': {
        const size_t digits = left_.substr(2).find_first_not_of("0123456789abcdefABCDEF");
        const size_t n = std::min(digits, left_.size() - 2);
        return n == 0 ? Bad("invalid escape \\ sequence") : Code(n);
      }
      default:
        break;
    }
    if (c >= '1' && c <= '9') return Lacks("a back reference");
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == 'c') return Lacks("\\c");
    if (letter) return Bad("invalid escape \\ sequence");
    Consume(static_cast<uint8_t>(c) < 0x80 ? 2 : 1);
    return absl::OkStatus();
  }

  absl::Status Put(size_t bytes, std::string_view instead) {
    out_.append(instead);
    left_.remove_prefix(bytes);
    return absl::OkStatus();
  }

  absl::Status Code(size_t digits) {
    const std::string_view hex = left_.substr(2, digits);
    if (hex.size() < digits || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      return Bad("invalid escape \\ sequence");
    const std::string_view last = hex.substr(hex.size() - std::min<size_t>(hex.size(), 6));
    return Put(2 + digits, absl::StrCat("\\x{", std::string(last), "}"));
  }

  /// `[…]`: a set of characters.
  absl::Status Bracket() {
    if (left_.starts_with("[[:<:]]") || left_.starts_with("[[:>:]]")) return Lacks("a word's end");
    Consume(left_.starts_with("[^") ? 2 : 1);
    for (bool first = true;; first = false) {
      if (left_.empty()) return Bad("brackets [] not balanced");
      if (left_[0] == ']' && !first) break;
      if (left_.starts_with("[.") || left_.starts_with("[=")) return Lacks("a collating element");
      if (left_.starts_with("[:")) {
        NAM_RETURN_IF_ERROR(Class());
      } else if (left_[0] == '\\') {
        NAM_RETURN_IF_ERROR(Escape(true));
      } else if (left_[0] == '[' || left_[0] == ']') {
        out_ += '\\';
        Consume(1);
      } else {
        Consume(1);
      }
    }
    Consume(1);
    return absl::OkStatus();
  }

  absl::Status Class() {
    constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
        {"alpha", "\\p{L}"}, {"alnum", "\\p{L}\\p{N}"}, {"upper", "\\p{Lu}"},      {"lower", "\\p{Ll}"},
        {"digit", "0-9"},    {"space", "\\s\\v"},       {"punct", "[:punct:]"},    {"xdigit", "[:xdigit:]"},
        {"blank", " \\t"},   {"cntrl", "[:cntrl:]"},    {"word", "\\p{L}\\p{N}_"},
    };
    const size_t end = left_.find(":]");
    if (end == std::string_view::npos) return Bad("brackets [] not balanced");
    const std::string_view name = left_.substr(2, end - 2);
    for (const auto& [known, instead] : kClasses) {
      if (name == known) return Put(end + 2, instead);
    }
    if (name == "graph" || name == "print") return Lacks(absl::StrCat("[:", std::string(name), ":]"));
    return Bad("invalid character class");
  }

  std::string_view left_;
  const int position_;
  std::string out_;
  bool lazy_ = false, greedy_ = false, alternates_ = false;
};

RE2::Options OptionsOf(bool ignore_case, bool longest) {
  RE2::Options options;
  options.set_case_sensitive(!ignore_case);
  options.set_dot_nl(true);
  options.set_log_errors(false);
  options.set_longest_match(longest);
  return options;
}

}  // namespace

struct RegularExpression::Impl {
  Impl(const std::string& pattern, bool ignore_case, bool finds_longest)
      : expression(pattern, OptionsOf(ignore_case, false)) {
    if (finds_longest && expression.ok()) longest.emplace(pattern, OptionsOf(ignore_case, true));
  }
  const RE2 expression;
  std::optional<RE2> longest;  // nullopt: the first match is the wanted one
};

RegularExpression::RegularExpression(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
RegularExpression::~RegularExpression() = default;

absl::StatusOr<std::shared_ptr<const RegularExpression>> RegularExpression::Compile(std::string_view pattern,
                                                                                    bool ignore_case,
                                                                                    int position,
                                                                                    Purpose purpose) {
  Translator translator(pattern, position);
  NAM_ASSIGN_OR_RETURN(const std::string translated, translator.Translate(&ignore_case));
  if (purpose == Purpose::kFind && translator.mixes_greed()) {
    return Refusal("a quantifier with ? beside others or | in a regular expression is not supported here",
                   position, "use either *, +, ? or *?, +?, ??");
  }
  const bool finds_longest = purpose == Purpose::kFind && !translator.lazy();
  auto impl = std::make_unique<const Impl>(translated, ignore_case, finds_longest);
  if (!impl->expression.ok()) {
    const bool too_large = impl->expression.error_code() == RE2::ErrorPatternTooLarge;
    return UserError(too_large ? sqlstate::kTooComplex : sqlstate::kBadExpression,
                     absl::StrCat("invalid regular expression: ", impl->expression.error()), position);
  }
  return std::shared_ptr<const RegularExpression>(new RegularExpression(std::move(impl)));
}

bool RegularExpression::Matches(std::string_view text) const {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), impl_->expression);
}

size_t RegularExpression::groups() const {
  return static_cast<size_t>(impl_->expression.NumberOfCapturingGroups());
}

bool RegularExpression::Find(std::string_view text, size_t from, std::span<Part> parts) const {
  const re2::StringPiece piece(text.data(), text.size());
  std::vector<re2::StringPiece> found(parts.size());
  if (impl_->longest.has_value()) {
    if (!impl_->longest->Match(piece, from, text.size(), RE2::UNANCHORED, found.data(), 1)) return false;
    const auto begin = static_cast<size_t>(found[0].data() - text.data());
    // The groups are those of this match.
    if (parts.size() > 1 && !impl_->expression.Match(piece, begin, begin + found[0].size(), RE2::ANCHOR_BOTH,
                                                     found.data(), static_cast<int>(found.size())))
      return false;
  } else if (!impl_->expression.Match(piece, from, text.size(), RE2::UNANCHORED, found.data(),
                                      static_cast<int>(found.size()))) {
    return false;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = Part();
    if (found[i].data() == nullptr) continue;
    parts[i].begin = static_cast<size_t>(found[i].data() - text.data());
    parts[i].end = parts[i].begin + found[i].size();
  }
  return true;
}

absl::StatusOr<std::shared_ptr<const RegularExpression>> CachedRegularExpression(
    std::string_view pattern, bool ignore_case, int position, RegularExpression::Purpose purpose) {
  struct Kept {
    std::string pattern;
    bool ignore_case = false;
    RegularExpression::Purpose purpose = RegularExpression::Purpose::kTest;
    std::shared_ptr<const RegularExpression> expression;
  };
  constexpr size_t kMostKept = 4;
  static thread_local std::array<Kept, kMostKept> kept;
  static thread_local size_t next = 0;
  for (const Kept& one : kept) {
    if (one.expression != nullptr && one.ignore_case == ignore_case && one.purpose == purpose &&
        one.pattern == pattern)
      return one.expression;
  }
  NAM_ASSIGN_OR_RETURN(auto expression, RegularExpression::Compile(pattern, ignore_case, position, purpose));
  kept[next++ % kMostKept] = {std::string(pattern), ignore_case, purpose, expression};
  return expression;
}

}  // namespace nam::plan
