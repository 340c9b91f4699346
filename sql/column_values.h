#pragma once

#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/expression_builder.h"
#include "sql/parse_tree.h"

/// What statements put into columns of a record table.
namespace nam::sql {

/// Whether it is gen_random_uuid(), which has a value in DEFAULT and as one of INSERT alone.
bool CallsRandomUuid(const Node& node);

/// As expressions know the column: without its length.
Type TypeOfColumn(const proto::Column& column);

/// The column of a ResTarget's name; 42703 if the table has none. Hidden columns have no name.
absl::StatusOr<int> TargetColumn(const proto::Table& table, const Node& target);

/// The expression as the column's type, where PostgreSQL converts on assignment; 42804 where it does not.
absl::StatusOr<plan::Expr> AsColumn(const ExpressionBuilder& builder, plan::Expr value,
                                    const proto::Column& column, int position);

/// DEFAULT's expression, of the column's type; a constant, once now() is known. `times`: may be nullptr.
absl::StatusOr<plan::Expr> BindDefault(const Node& expression, const proto::Column& column,
                                       ExpressionBuilder::FixedTimes* times);

/// The defaults of the wanted columns, one for each column of the table: NULL for columns without one,
/// nothing for numbered ones.
absl::StatusOr<std::vector<ChangeValue>> BindDefaults(const proto::Table& table, const std::set<int>& wanted,
                                                      const StatementTime& time);

}  // namespace nam::sql
