#include "sql/similar_pattern.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

/// The part between separators. `lazy`: it matches as little as possible.
struct Subpattern {
  std::string expression;
  bool branches = false;  // it has |
};

/// The pattern's subpatterns, between its separators.
std::vector<Subpattern> SubpatternsOf(std::string_view pattern, std::string_view escape, bool lazy_first) {
  std::vector<Subpattern> subpatterns(1);
  bool in_brackets = false, in_bounds = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    std::string& out = subpatterns.back().expression;
    const char* const lazy = lazy_first && subpatterns.size() == 1 ? "?" : "";
    if (!escape.empty() && pattern.substr(i).starts_with(escape)) {
      i += escape.size();
      if (i >= pattern.size()) break;  // PostgreSQL drops an escape at the end
      if (pattern[i] == '"') {
        subpatterns.emplace_back();
        continue;
      }
      out.push_back('\\');
      out.push_back(pattern[i]);
      continue;
    }
    const char c = pattern[i];
    if (in_brackets) {
      if (c == '\\') out.push_back('\\');
      out.push_back(c);
      in_brackets = c != ']';
      continue;
    }
    in_bounds = in_bounds || c == '{';
    if (c == '[') {
      out.push_back(c);
      in_brackets = true;
    } else if (c == '%') {
      absl::StrAppend(&out, ".*", lazy);
    } else if (c == '_') {
      out.push_back('.');
    } else if (c == '(') {
      out += "(?:";
    } else if (c == '\\' || c == '.' || c == '^' || c == '$') {
      out.push_back('\\');
      out.push_back(c);
    } else {
      out.push_back(c);
      if (c == '*' || c == '+' || c == '?' || (in_bounds && c == '}')) out += lazy;
      if (c == '}') in_bounds = false;
      if (c == '|') subpatterns.back().branches = true;
    }
  }
  return subpatterns;
}

}  // namespace

// Anchors, and puts each subpattern in a group of its own, so that | binds weakest.
absl::StatusOr<std::string> SimilarPattern(std::string_view pattern, std::string_view escape, int position) {
  const std::vector<Subpattern> subpatterns = SubpatternsOf(pattern, escape, /*lazy_first=*/false);
  if (subpatterns.size() > 1)
    return Refusal("SIMILAR TO with the separators of SUBSTRING is not supported", position);
  return absl::StrCat("^(?:", subpatterns[0].expression, ")$");
}

absl::StatusOr<std::string> SimilarParts(std::string_view pattern, std::string_view escape, int position) {
  if (CountCharacters(escape) > 1)
    return UserError(sqlstate::kBadEscape, "the escape is one character or none", position);
  const bool divided = SubpatternsOf(pattern, escape, false).size() > 1;
  const std::vector<Subpattern> subpatterns = SubpatternsOf(pattern, escape, divided);
  if (subpatterns.size() > 3) {
    return UserError(sqlstate::kBadEscapeUse,
                     "SQL regular expression may not contain more than two escape-double-quote separators",
                     position);
  }
  if (!divided) return absl::StrCat("^(?:", subpatterns[0].expression, ")$");
  if (subpatterns[0].branches) {
    return Refusal("| in front of the separators of SUBSTRING is not supported", position,
                   "use SUBSTRING(x FROM 'expression')");
  }
  return absl::StrCat("^(?:", subpatterns[0].expression, ")(", subpatterns[1].expression,
                      ")(?:", subpatterns.size() > 2 ? subpatterns[2].expression : "", ")$");
}

}  // namespace nam::sql
