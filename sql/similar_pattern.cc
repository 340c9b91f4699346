#include "sql/similar_pattern.h"

#include "types/sql_error.h"

namespace nam::sql {

absl::StatusOr<std::string> SimilarPattern(std::string_view pattern, std::string_view escape, int position) {
  // Anchored, and in a group of its own, so that | stands below everything else.
  std::string out = "^(?:";
  bool in_brackets = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (!escape.empty() && pattern.substr(i).starts_with(escape)) {
      i += escape.size();
      if (i >= pattern.size()) return out + ")$";  // PostgreSQL drops an escape at the end
      if (pattern[i] == '"')
        return Refusal("SIMILAR TO with the separators of SUBSTRING is not supported", position);
      out.push_back('\\');
      out.push_back(pattern[i]);
      continue;
    }
    const char c = pattern[i];
    if (in_brackets) {
      if (c == '\\') out.push_back('\\');
      out.push_back(c);
      in_brackets = c != ']';
    } else if (c == '[') {
      out.push_back(c);
      in_brackets = true;
    } else if (c == '%') {
      out += ".*";
    } else if (c == '_') {
      out.push_back('.');
    } else if (c == '(') {
      out += "(?:";
    } else if (c == '\\' || c == '.' || c == '^' || c == '$') {
      out.push_back('\\');
      out.push_back(c);
    } else {
      out.push_back(c);
    }
  }
  return out + ")$";
}

}  // namespace nam::sql
