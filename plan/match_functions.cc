#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "plan/function_families.h"
#include "plan/regular_expression.h"
#include "types/sql_error.h"

/// Functions that search for a regular expression's matches.
namespace nam::plan {
namespace {

using MatchPart = RegularExpression::Part;
using Expression = std::shared_ptr<const RegularExpression>;

struct Flags {
  bool ignore_case = false;
  bool all = false;
};

/// Parses flags as PostgreSQL does; `all` where a function may take all matches.
absl::StatusOr<Flags> FlagsOf(const Expr& call, std::string_view text, bool may_be_all) {
  Flags flags;
  for (const char flag : text) {
    switch (flag) {
      case 'i':
        flags.ignore_case = true;
        break;
      case 'c':
        flags.ignore_case = false;
        break;
      case 'g':
        if (!may_be_all) {
          return UserError(
              sqlstate::kBadParameter,
              absl::StrCat(NameOf(FunctionOf(call)), "() does not support the \"global\" option"),
              call.position);
        }
        flags.all = true;
        break;
      case 's':
      case 't':
        break;  // the default
      default: {
        const std::string shown(1, flag);
        if (std::string_view("bemnpqwx").find(flag) != std::string_view::npos) {
          return Refusal(absl::StrCat("the option ", shown, " of a regular expression is not supported"),
                         call.position, "options are i, c, g, s and t");
        }
        return UserError(sqlstate::kBadParameter,
                         absl::StrCat("invalid regular expression option: ", Quote(shown)), call.position);
      }
    }
  }
  return flags;
}

/// The calls' common arguments, with their defaults.
struct Search {
  Expression expression;
  size_t from = 0;  // a byte
  __int128 which = 1;
  bool end = false;  // for kMatchPlace: after the match
  size_t group = 0;
  bool beyond = false;  // there is nothing to search
};

absl::Status AtLeast(const Expr& call, const char* name, const Value& value, int least) {
  if (value.number >= least) return absl::OkStatus();
  return UserError(
      sqlstate::kBadParameter,
      absl::StrCat("invalid value for parameter ", Quote(name), ": ", Int128ToString(value.number)),
      call.position);
}

/// Parses [text, expression (, start (, which (, end)) (, flags (, group)))].
absl::StatusOr<Search> SearchOf(const Expr& call, std::span<const Value> a) {
  const F function = FunctionOf(call);
  Search search;
  size_t next = 2;
  const auto number = [&] { return next < a.size() && a[next].type.kind == TypeKind::kInteger; };
  if (number()) {
    NAM_RETURN_IF_ERROR(AtLeast(call, "start", a[next], 1));
    const __int128 before = a[next].number - 1;
    search.beyond = before > static_cast<__int128>(CountCharacters(a[0].text));
    if (!search.beyond) search.from = EndOfCharacters(a[0].text, static_cast<size_t>(before));
    ++next;
  }
  if (number()) {
    NAM_RETURN_IF_ERROR(AtLeast(call, "n", a[next], 1));
    search.which = a[next++].number;
  }
  if (number()) {
    NAM_RETURN_IF_ERROR(AtLeast(call, "endoption", a[next], 0));
    if (a[next].number > 1) {
      return UserError(
          sqlstate::kBadParameter,
          absl::StrCat("invalid value for parameter \"endoption\": ", Int128ToString(a[next].number)),
          call.position);
    }
    search.end = a[next++].number == 1;
  }
  Flags flags;
  if (next < a.size()) {
    NAM_ASSIGN_OR_RETURN(flags, FlagsOf(call, a[next++].text, false));
  }
  if (next < a.size()) {
    NAM_RETURN_IF_ERROR(AtLeast(call, "subexpr", a[next], 0));
    search.group = static_cast<size_t>(std::min<__int128>(a[next].number, INT32_MAX));
  }
  const auto purpose =
      function == F::kHasMatch ? RegularExpression::Purpose::kTest : RegularExpression::Purpose::kFind;
  NAM_ASSIGN_OR_RETURN(search.expression,
                       CachedRegularExpression(a[1].text, flags.ignore_case, call.position, purpose));
  // For an expression without groups PostgreSQL takes the whole match as the first one.
  if (search.group == 1 && search.expression->groups() == 0) search.group = 0;
  return search;
}

/// Calls visit(parts), with so many groups, for each match from byte `from` on, until it returns false.
template <typename Visit>
void ForMatches(const RegularExpression& expression, std::string_view text, size_t from, size_t groups,
                Visit&& visit) {
  std::vector<MatchPart> parts(1 + groups);
  while (from <= text.size() && expression.Find(text, from, parts)) {
    if (!visit(parts)) return;
    from = parts[0].end;
    // Skips a character, or an empty match would be found again.
    if (parts[0].size() == 0) from += from < text.size() ? CharacterBytes(text, from) : 1;
  }
}

absl::StatusOr<Value> Count(const Expr& call, std::span<const Value> a) {
  NAM_ASSIGN_OR_RETURN(const Search search, SearchOf(call, a));
  int64_t count = 0;
  if (!search.beyond) {
    ForMatches(*search.expression, a[0].text, search.from, 0, [&](const std::vector<MatchPart>&) {
      ++count;
      return true;
    });
  }
  return Value::Integer(count);
}

/// The requested group of the requested match; not found if there is none.
absl::StatusOr<MatchPart> Wanted(const Search& search, std::string_view text) {
  MatchPart wanted;
  if (search.beyond || search.group > search.expression->groups()) return wanted;
  __int128 seen = 0;
  ForMatches(*search.expression, text, search.from, search.group, [&](const std::vector<MatchPart>& parts) {
    if (++seen < search.which) return true;
    wanted = parts[search.group];
    return false;
  });
  return wanted;
}

absl::StatusOr<Value> NthMatch(const Expr& call, std::span<const Value> a) {
  NAM_ASSIGN_OR_RETURN(const Search search, SearchOf(call, a));
  NAM_ASSIGN_OR_RETURN(const MatchPart part, Wanted(search, a[0].text));
  if (!part.found()) return Value::Null(call.type);
  return Value::String(a[0].text.substr(part.begin, part.size()));
}

absl::StatusOr<Value> Place(const Expr& call, std::span<const Value> a) {
  NAM_ASSIGN_OR_RETURN(const Search search, SearchOf(call, a));
  NAM_ASSIGN_OR_RETURN(const MatchPart part, Wanted(search, a[0].text));
  if (!part.found()) return Value::Integer(0);
  const std::string_view before = std::string_view(a[0].text).substr(0, search.end ? part.end : part.begin);
  return Value::Integer(static_cast<int64_t>(CountCharacters(before)) + 1);
}

/// The first match: its first group, or all of it if there is no group.
absl::StatusOr<Value> MatchedPart(const Expr& call, std::span<const Value> a) {
  const auto purpose = FunctionOf(call) == F::kSimilarPart ? RegularExpression::Purpose::kDivide
                                                           : RegularExpression::Purpose::kFind;
  NAM_ASSIGN_OR_RETURN(const Expression expression,
                       CachedRegularExpression(a[1].text, false, call.position, purpose));
  std::vector<MatchPart> parts(std::min<size_t>(expression->groups(), 1) + 1);
  if (!expression->Find(a[0].text, 0, parts) || !parts.back().found()) return Value::Null(call.type);
  return Value::String(a[0].text.substr(parts.back().begin, parts.back().size()));
}

/// The replacement of a match: \1 to \9 are its groups, \& is all of it.
class Replacement {
 public:
  explicit Replacement(std::string_view text) : text_(text) {
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] != '\\') continue;
      const char c = text[++i];
      if (c >= '1' && c <= '9') groups_ = std::max<size_t>(groups_, static_cast<size_t>(c - '0'));
    }
  }
  size_t groups() const { return groups_; }

  void AppendTo(std::string& out, std::string_view text, const std::vector<MatchPart>& parts) const {
    for (size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] != '\\' || i + 1 == text_.size()) {
        out.push_back(text_[i]);
        continue;
      }
      const char c = text_[++i];
      if (c == '&' || (c >= '1' && c <= '9')) {
        const auto group = c == '&' ? 0 : static_cast<size_t>(c - '0');
        if (group < parts.size() && parts[group].found())
          out.append(text.substr(parts[group].begin, parts[group].size()));
      } else {
        if (c != '\\') out.push_back('\\');
        out.push_back(c);
      }
    }
  }

 private:
  const std::string_view text_;
  size_t groups_ = 0;
};

/// Takes [text, expression, by], then flags, or start, which and flags.
absl::StatusOr<Value> Replaced(const Expr& call, std::span<const Value> a) {
  const bool of_place = a.size() > 3 && a[3].type.kind == TypeKind::kInteger;
  Flags flags;
  if (a.size() == 4 && !of_place) {
    NAM_ASSIGN_OR_RETURN(flags, FlagsOf(call, a[3].text, true));
  } else if (a.size() > 5) {
    NAM_ASSIGN_OR_RETURN(flags, FlagsOf(call, a[5].text, true));
  }
  const std::string_view text = a[0].text;
  __int128 which = flags.all ? 0 : 1;  // 0: all
  size_t from = 0;
  if (of_place) {
    NAM_RETURN_IF_ERROR(AtLeast(call, "start", a[3], 1));
    if (a[3].number - 1 > static_cast<__int128>(CountCharacters(text))) return a[0];
    from = EndOfCharacters(text, static_cast<size_t>(a[3].number - 1));
  }
  if (a.size() > 4) {
    NAM_RETURN_IF_ERROR(AtLeast(call, "n", a[4], 0));
    which = a[4].number;
  }
  NAM_ASSIGN_OR_RETURN(const Expression expression,
                       CachedRegularExpression(a[1].text, flags.ignore_case, call.position,
                                               RegularExpression::Purpose::kFind));
  const Replacement replacement(a[2].text);
  std::string out;
  size_t copied = 0;
  __int128 seen = 0;
  ForMatches(*expression, text, from, std::min(replacement.groups(), expression->groups()),
             [&](const std::vector<MatchPart>& parts) {
               if (++seen < which) return true;
               out.append(text.substr(copied, parts[0].begin - copied));
               replacement.AppendTo(out, text, parts);
               copied = parts[0].end;
               return which == 0 && out.size() <= kTextBytesMax;
             });
  out.append(text.substr(copied));
  if (out.size() > kTextBytesMax) return TextTooLong(call.position);
  return Value::String(std::move(out));
}

}  // namespace

absl::StatusOr<Value> ApplyToMatches(const Expr& call, std::span<const Value> a) {
  switch (FunctionOf(call)) {
    case F::kReplaceMatches:
      return Replaced(call, a);
    case F::kCountMatches:
      return Count(call, a);
    case F::kHasMatch: {
      NAM_ASSIGN_OR_RETURN(const Search search, SearchOf(call, a));
      return Value::Bool(search.expression->Matches(a[0].text));
    }
    case F::kNthMatch:
      return NthMatch(call, a);
    case F::kMatchPlace:
      return Place(call, a);
    default:
      return MatchedPart(call, a);
  }
}

}  // namespace nam::plan
