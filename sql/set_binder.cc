#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/record_binder.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

absl::StatusOr<std::string> SettingText(const Node& value) {
  if (value.Is("A_Const")) {
    if (value.Has("sval")) return value.Field("sval").Text("sval");
    if (value.Has("fval")) return value.Field("fval").Text("fval");
    if (value.Has("ival")) return absl::StrCat(value.text().IntegerAt(value.position()));
    if (value.Has("boolval")) return std::string(value.Field("boolval").Flag("boolval") ? "true" : "false");
  }
  return Refusal("this kind of value in SET is not supported", value.position(),
                 "write a number, a word or a string");
}

}  // namespace

absl::StatusOr<Statement> BindSet(const Node& node) {
  const std::string kind = node.Text("kind");
  if (kind == "VAR_SET_MULTI") return BindSetTransaction(node);
  if (kind == "VAR_SET_CURRENT") {
    return Refusal("SET … FROM CURRENT is not supported", node.text().Find({"from"}),
                   "a setting has its current value already");
  }
  NAM_RETURN_IF_ERROR(node.Only({"kind", "name", "args", "is_local"}));
  SetStatement statement;
  statement.name = node.Text("name");
  statement.local = node.Flag("is_local");
  statement.reset = kind == "VAR_RESET" || kind == "VAR_RESET_ALL";
  statement.position = SettingPosition(node.text());
  for (const Node& arg : node.List("args")) {
    NAM_ASSIGN_OR_RETURN(std::string value, SettingText(arg));
    if (statement.values.empty()) statement.value_position = arg.position();
    statement.values.push_back(std::move(value));
  }
  return Statement(std::move(statement));
}

absl::StatusOr<Statement> BindShow(const Node& node) {
  NAM_RETURN_IF_ERROR(node.Only({"name"}));
  const std::string name = node.Text("name");
  return Statement(ShowStatement{name == "all" ? "" : name, SettingPosition(node.text())});
}

}  // namespace nam::sql
