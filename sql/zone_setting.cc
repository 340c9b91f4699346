#include "sql/zone_setting.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/expression_builder.h"
#include "types/sql_error.h"
#include "types/time_zone.h"

namespace nam::sql {
namespace {

constexpr char kName[] = "timezone";

}  // namespace

bool SetsTimeZone(const Node& node) {
  return node.Text("name") == kName;
}

absl::StatusOr<Statement> BindSetTimeZone(const Node& node) {
  const SqlText& text = node.text();
  SetStatement statement{kTimeZoneSetting, kUtc, text.Find({}, text.Start() + 1)};
  if (node.Flag("is_local")) {
    return Refusal("SET LOCAL is not supported", text.Find({"local"}), "write SET timezone = …");
  }
  NAM_RETURN_IF_ERROR(node.Only({"kind", "name", "args"}));
  if (node.Text("kind") != "VAR_SET_VALUE") return Statement(std::move(statement));
  const std::vector<Node> values = node.List("args");
  if (values.size() != 1 || !values[0].Is("A_Const")) {
    return Refusal("this kind of value for the time zone is not supported", statement.position,
                   "write SET timezone = 'Europe/Berlin'");
  }
  const Node& value = values[0];
  statement.position = value.position();
  statement.value = value.Has("sval")   ? value.Field("sval").Text("sval")
                    : value.Has("fval") ? value.Field("fval").Text("fval")
                                        : absl::StrCat(text.IntegerAt(value.position()));
  return Statement(std::move(statement));
}

bool ShowsTimeZone(const Node& node) {
  return node.Text("name") == kName;
}

Statement BindShowTimeZone(const Node& node) {
  plan::logical::Query query;
  query.relations = 1;
  plan::logical::Values values;
  values.rows.push_back({Value::String(node.text().time().zone)});
  query.root =
      plan::logical::MakeNode(std::move(values), {{{0, 0}, kTimeZoneSetting, Type::String(), false}});
  return TreeStatement{std::make_shared<plan::logical::Query>(std::move(query))};
}

absl::Status ShowInZone(plan::logical::Query& query, const std::string& zone) {
  const auto zoned = [](const plan::logical::Column& column) {
    return column.type.kind == TypeKind::kTimestampTz;
  };
  const std::vector<plan::logical::Column>& columns = query.root->columns;
  if (zone == kUtc || std::none_of(columns.begin(), columns.end(), zoned)) return absl::OkStatus();
  ExpressionBuilder builder;
  builder.UseZone(zone);
  plan::logical::Project project;
  std::vector<plan::logical::Column> shown = columns;
  const int relation = query.relations++;
  for (plan::logical::Column& column : shown) {
    plan::Expr output = plan::logical::MakeColumn(column);
    if (zoned(column)) {
      NAM_ASSIGN_OR_RETURN(output, builder.Cast(std::move(output), Type::String(), -1));
    }
    column.ref = {relation, static_cast<int>(project.outputs.size())};
    column.type = output.type;
    project.outputs.push_back(std::move(output));
  }
  query.root = plan::logical::MakeNode(std::move(project), std::move(shown), std::move(query.root));
  return absl::OkStatus();
}

}  // namespace nam::sql
