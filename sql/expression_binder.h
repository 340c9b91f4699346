#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sql/bound_query.h"
#include "sql/expression_builder.h"
#include "sql/parse_tree.h"

namespace nam::sql {

/// The clause of an expression: decides its allowed parts, and is named in messages.
enum class Clause : uint8_t {
  kSelect,
  kWhere,
  kOn,
  kGroupBy,
  kHaving,
  kOrderBy,
  kLimit,
  kOffset,
  kValues,
  kSet,
  kCheck,
  kDefault,
  kReturning,
  kFunctionInFrom
};
const char* ClauseName(Clause clause);

/// Binds what an expression may contain beside constants and functions: columns, and more in a query.
class QueryScope {
 public:
  virtual ~QueryScope() = default;
  /// Binds a column, an aggregate, a window function or a subquery; nullopt for other nodes.
  virtual std::optional<absl::StatusOr<plan::Expr>> BindInQuery(const Node& node, Clause clause,
                                                                int depth) = 0;
  /// The columns of a subquery's one row; refused where there are no subqueries.
  virtual absl::StatusOr<std::vector<plan::Expr>> BindRowOf(const Node& sublink, size_t width, int depth);
};

/// Binds a statement's expressions.
class ExpressionBinder {
 public:
  /// Asks the scope first; borrows it.
  explicit ExpressionBinder(QueryScope& scope) : scope_(scope) {}

  /// May return an untyped literal (see ExpressionBuilder).
  absl::StatusOr<plan::Expr> BindUntyped(const Node& node, Clause clause);
  /// Makes an untyped literal a string.
  absl::StatusOr<plan::Expr> Bind(const Node& node, Clause clause);
  absl::StatusOr<plan::Expr> BindBoolean(const Node& node, Clause clause);

  ExpressionBuilder& builder() { return builder_; }

 private:
  struct Context {
    Clause clause = Clause::kSelect;
    int depth = 0;   // the binder's recursion depth
    int levels = 0;  // levels of the expression around this one: more, after chains
  };
  using ExprOr = absl::StatusOr<plan::Expr>;

  ExprOr Expression(const Node& node, Context context);
  ExprOr Boolean(const Node& node, const Context& context);
  ExprOr Constant(const Node& node);
  ExprOr ParameterValue(const Node& node);
  ExprOr NumberConstant(const std::string& text, int position);
  ExprOr BooleanExpression(const Node& node, const Context& context);
  ExprOr NullTest(const Node& node, const Context& context);
  ExprOr Operation(const Node& node, const Context& context);
  ExprOr SimpleOperation(const Node& node, const Context& context);
  ExprOr Chain(const Node& node, const Context& context);
  ExprOr Between(const Node& node, bool negated, bool symmetric, const Context& context);
  ExprOr Within(plan::Expr a, plan::Expr low, plan::Expr high, int position);
  ExprOr In(const Node& node, bool negated, const Context& context);
  ExprOr Listed(const Node& node, const Context& context);
  ExprOr ComparedWithItems(const Node& node, plan::Expr a, std::vector<plan::Expr> items);
  ExprOr SimilarPart(std::vector<plan::Expr> operands, int position);
  ExprOr Overlaps(std::vector<plan::Expr> operands, int position);
  ExprOr UnknownFunction(const Node& node, const std::string& name, const Context& context);
  ExprOr Similar(const Node& node, bool negated, const Context& context);
  ExprOr Like(const Node& node, bool negated, const Context& context);
  ExprOr NullIf(const Node& node, const Context& context);
  ExprOr Coalesce(const Node& node, const Context& context);
  ExprOr Case(const Node& node, const Context& context);
  ExprOr CastExpression(const Node& node, const Context& context);
  ExprOr Function(const Node& node, const Context& context);
  ExprOr Extract(const Node& node, const Context& context);
  ExprOr FunctionCall(const Node& node, const std::string& name, const Context& context);
  /// nullopt if the operator is not a function.
  std::optional<ExprOr> CalledOperation(const std::string& symbol, const Node& node, const Context& context);
  ExprOr MinMax(const Node& node, const Context& context);
  ExprOr BooleanTest(const Node& node, const Context& context);
  ExprOr DistinctTest(const Node& node, bool negated, const Context& context);
  ExprOr Distinct(plan::Expr a, plan::Expr b, int position);
  ExprOr CurrentTime(const Node& node);
  ExprOr IntervalConstant(const Node& node);
  absl::StatusOr<std::vector<plan::Expr>> Row(const Node& node, const Context& context);
  ExprOr CompareRows(plan::Op op, std::vector<plan::Expr> a, std::vector<plan::Expr> b, int position);
  ExprOr RowIn(const Node& node, const Context& context);
  ExprOr RowNullTest(const Node& node, const Context& context);
  ExprOr RowDistinct(const Node& node, const Context& context);

  QueryScope& scope_;
  ExpressionBuilder builder_;
};

/// Whether PostgreSQL 15 has a function of this name.
bool IsPostgresFunction(std::string_view name);

/// A comparison with ANY or ALL, and the one that is true where it is false.
struct QuantifiedComparison {
  const char* name;
  plan::Op op, opposite;
};
/// 0A000 for other operators.
absl::StatusOr<QuantifiedComparison> QuantifiedComparisonOf(const std::vector<std::string>& name,
                                                            int position);

/// The elements of an array written as text, `{a,"b c",NULL}`: nullopt for NULL. 22P02 if it is malformed;
/// arrays of arrays are refused.
absl::StatusOr<std::vector<std::optional<std::string>>> ArrayElements(const std::string& text, int position);

const std::vector<std::string>& AggregateNames();
/// The function of this name; count is kCount.
plan::AggregateFunction AggregateOfName(const std::string& name);
/// The type of an aggregate's result; an error if the function does not take arguments of these types.
/// `second_argument` counts for functions of two.
absl::StatusOr<Type> AggregateType(plan::AggregateFunction function, const plan::Expr& argument,
                                   const plan::Expr& second_argument, const std::string& name, int position);

/// Name of an output column without AS, as in PostgreSQL.
std::string OutputName(const Node& expression);

/// The target type of CAST … AS.
struct CastTarget {
  Type type;
  /// 2, 4 or 8 bytes of an integer; digits of a decimal, -1 for the maximum.
  int width = -1;
  SqlType declared = {};  // if type and width do not tell it
};

/// The type of a TypeName node; `from` is the operand's, which a decimal without scale keeps.
absl::StatusOr<CastTarget> TypeOfName(const Node& type_name, const plan::Expr& from);

/// The type of the elements of an array type, `int[]`.
absl::StatusOr<CastTarget> ElementTypeOfName(const Node& type_name, const plan::Expr& from);

bool IsIntervalConstant(const Node& node);

}  // namespace nam::sql
