#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/aggregate.h"
#include "plan/expression.h"
#include "plan/function.h"
#include "proto/type.pb.h"
#include "types/sql_type.h"

/// The types that PostgreSQL would declare for bound expressions. ExpressionBuilder sets them, because they
/// choose operators: `sum(bigint) / count(*)` divides numerics, although both are whole numbers to the
/// engine.
///
///     plan::Expr::declared   set where plan::Expr::type does not tell: integers of a width, numerics that
///     the
///                            engine holds as whole numbers, columns of a declared length or scale
///     otherwise              as Expr::type; a constant is the least of integer and bigint that holds it
namespace nam::sql {

SqlType DeclaredType(const plan::Expr& expr);

/// Of a table's column.
SqlType DeclaredType(const proto::Type& column);

/// The type of a column that is made for such values: of a table or a view of a query, as PostgreSQL gives
/// it.
proto::Type CreatedColumn(const plan::Expr& expr);
/// The same of values that no expression declares, such as a file's: the widest of its kind.
proto::Type CreatedColumn(Type type);

/// The declared type for messages: without the digits of a decimal, which are never the error.
std::string ShownType(const plan::Expr& expr);

/// Whether it is numeric to SQL and a whole number to the engine. Beside other operands it is a decimal.
bool IsWholeNumeric(const plan::Expr& expr);

/// The type of operands that meet in one place: branches of CASE, rows of VALUES, + of integers. They have
/// been converted to one kind. Undeclared if their common engine type tells it.
SqlType CommonDeclaredType(const std::vector<const plan::Expr*>& operands);

/// The result of a function over these operands; undeclared if its engine type tells it.
SqlType DeclaredResult(plan::Function function, std::span<const plan::Expr> operands);

/// The result of an aggregate over this argument.
SqlType DeclaredAggregate(plan::AggregateFunction function, const plan::Expr& argument);

}  // namespace nam::sql
