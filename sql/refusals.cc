#include <algorithm>
#include <cctype>
#include <string>

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
  return Refusal(absl::StrCat(known != nullptr ? known->name : SpellOut(node.kind()), " is not supported"),
                 node.text().Start(), hint);
}

}  // namespace nam::sql
