#include "sql/zoned_result.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "sql/expression_builder.h"
#include "types/time_zone.h"

namespace nam::sql {

absl::Status ShowInZone(plan::logical::Query& query, const std::string& zone, size_t shown_columns) {
  const auto zoned = [](const plan::logical::Column& column) {
    return column.type.kind == TypeKind::kTimestampTz;
  };
  const std::vector<plan::logical::Column>& columns = query.root->columns;
  const auto behind = columns.begin() + static_cast<std::ptrdiff_t>(std::min(shown_columns, columns.size()));
  if (zone == kUtc || std::none_of(columns.begin(), behind, zoned)) return absl::OkStatus();
  ExpressionBuilder builder;
  builder.UseZone(zone);
  plan::logical::Project project;
  std::vector<plan::logical::Column> shown = columns;
  const int relation = query.relations++;
  for (plan::logical::Column& column : shown) {
    plan::Expr output = plan::logical::MakeColumn(column);
    if (zoned(column) && project.outputs.size() < shown_columns) {
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
