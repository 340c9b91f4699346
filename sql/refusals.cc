#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "sql/parse_tree.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

struct RefusedNode {
  const char* kind;
  const char* name;
  const char* hint;
};

constexpr RefusedNode kExpressions[] = {
    {"A_ArrayExpr", "arrays are", "list the values with IN (…)"},
    {"ArrayExpr", "arrays are", "list the values with IN (…)"},
    {"RowExpr", "row values by themselves are", "compare them with each other, or column by column"},
    {"ParamRef", "parameters are", "write the value itself"},
    {"CollateClause", "COLLATE is", "strings are compared by bytes"},
    {"A_Indirection", "subscripts and field selections are", "name the column itself"},
    {"GroupingFunc", "GROUPING is", "run one query for each grouping"},
    {"XmlExpr", "XML functions are", ""},
    {"XmlSerialize", "XML functions are", ""},
    {"CurrentOfExpr", "WHERE CURRENT OF is", ""},
    {"SetToDefault", "DEFAULT is", "write the value itself"},
    {"NamedArgExpr", "named arguments are", "give arguments by position"},
};

constexpr RefusedNode kStatements[] = {
    {"MergeStmt", "MERGE", nullptr}, {"DeclareCursorStmt", "DECLARE CURSOR", "run the query itself"},
    {"CallStmt", "CALL", nullptr},   {"DoStmt", "DO", nullptr},
    {"LockStmt", "LOCK", nullptr},
};

/// `CreateRoleStmt` as `CREATE ROLE`.
std::string SpellOut(const std::string& kind) {
  const std::string stem = kind.substr(0, kind.rfind("Stmt"));
  std::string name;
  for (const char c : stem) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !name.empty()) name.push_back(' ');
    name.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  }
  return name;
}

/// The words of a statement from a place on, in capital letters.
class StatementWords {
 public:
  StatementWords(const SqlText& text, int from) : text_(text), at_(from) {}

  /// Empty at what is no word.
  std::string Next() {
    if (at_ < 0) return {};
    at_ = text_.Find({}, at_);
    std::string word;
    const std::string& all = text_.text();
    for (; at_ >= 0 && at_ < static_cast<int>(all.size()) && IsOfWord(all[static_cast<size_t>(at_)]); ++at_)
      word.push_back(absl::ascii_toupper(static_cast<unsigned char>(all[static_cast<size_t>(at_)])));
    return word;
  }

 private:
  static bool IsOfWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  const SqlText& text_;
  int at_;
};

bool IsAmong(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// As the statement itself writes its name: CREATE [OR REPLACE] MATERIALIZED VIEW. Empty if it is inside
/// another one.
std::string NameInText(const SqlText& text) {
  StatementWords words(text, text.Start());
  std::string name = words.Next();
  if (IsAmong(name, {"EXPLAIN", "PREPARE"})) return {};
  if (!IsAmong(name, {"CREATE", "ALTER", "DROP", "REFRESH", "SET", "SECURITY", "REASSIGN", "IMPORT"}))
    return name;
  std::string word = words.Next();
  while (IsAmong(word,
                 {"OR", "REPLACE", "TEMP", "TEMPORARY", "UNLOGGED", "TRUSTED", "PROCEDURAL", "CONSTRAINT"}))
    word = words.Next();
  absl::StrAppend(&name, " ", word);
  const bool two =
      IsAmong(word, {"MATERIALIZED", "FOREIGN", "EVENT", "TEXT", "ACCESS", "DEFAULT", "LARGE", "USER"});
  const std::string second = two ? words.Next() : "";
  const bool user = word == "USER" && second != "MAPPING";
  if (!second.empty() && !user) absl::StrAppend(&name, " ", second);
  return name;
}

const RefusedNode* Lookup(const RefusedNode* begin, const RefusedNode* end, const std::string& kind) {
  const RefusedNode* found = std::find_if(begin, end, [&](const RefusedNode& n) { return kind == n.kind; });
  return found == end ? nullptr : found;
}

}  // namespace

absl::Status RefuseExpression(const Node& node) {
  const std::string& kind = node.kind();
  if (kind == "SQLValueFunction") {
    // SVFOP_CURRENT_DATE
    return Refusal(absl::StrCat(absl::StripPrefix(node.Text("op"), "SVFOP_"), " is not supported"),
                   node.position(), "write the value itself");
  }
  if (const RefusedNode* known = Lookup(std::begin(kExpressions), std::end(kExpressions), kind)) {
    return Refusal(absl::StrCat(known->name, " not supported"), node.position(), known->hint);
  }
  return Refusal(absl::StrCat("this expression (", kind, ") is not supported"), node.position());
}

absl::Status RefuseStatement(const Node& node) {
  const RefusedNode* known = Lookup(std::begin(kStatements), std::end(kStatements), node.kind());
  const char* hint =
      known != nullptr && known->hint != nullptr
          ? known->hint
          : "statements are SELECT, EXPLAIN [ANALYZE], INSERT, UPDATE, DELETE, BEGIN, COMMIT, "
            "ROLLBACK, SAVEPOINT, CREATE and DROP of TABLE, VIEW, SCHEMA and INDEX, ALTER TABLE, COPY, "
            "TRUNCATE, VACUUM, ANALYZE, PREPARE, EXECUTE, DEALLOCATE, SET, RESET and SHOW";
  std::string name = known != nullptr ? known->name : NameInText(node.text());
  if (name.empty()) name = SpellOut(node.kind());
  return Refusal(absl::StrCat(name, " is not supported"), node.text().Start(), hint);
}

}  // namespace nam::sql
