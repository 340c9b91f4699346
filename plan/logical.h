#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "plan/aggregate.h"
#include "plan/expression.h"
#include "plan/join_kind.h"
#include "proto/table.pb.h"

/// What a query means, as a tree of relational operators over bags of rows.
///
///     select c.name, (select max(o.sum) from orders o where o.c = c.id) from customer c order by 1
///
///     Sort #2.0
///       Project #2.0 = #0.1, #2.1 = #1.0
///         Join single, dependent           the right input names columns of the left: #0.0
///           Scan customer as #0
///           Aggregate #1.0 = max(#3.2)
///             Filter #3.1 = #0.0
///               Scan orders as #3
///
/// **Columns** are named by ColumnRef: the number of a relation, and a column of it. Scans number their
/// table's columns as the catalog does; every operator that computes columns numbers these by a relation of
/// its own (Query::relations counts them). A name stands for one value of a row wherever it occurs: operators
/// that only pass a column on keep its name. No operator has two columns of one name, and the two inputs of a
/// join have none in common. Where one subtree must occur twice, it is a CTE and its scans rename.
///
/// **Visible** to an operator's expressions are the columns of its inputs; and to everything below the right
/// input of a dependent join also the columns of the left one, unless they are defined below as well. That is
/// the only correlation there is. optimizer/unnest.h removes all dependent joins: lowering never sees one.
///
/// **Order**: Sort orders; Filter, Project, Limit, Series and With keep their (last) input's order; nothing
/// else promises one. Limit takes the first rows of its input's order.
///
/// **Types** of expressions are what the binder promised (plan/expression.h). A column that is not `nullable`
/// has no NULL.
///
/// A tree is as deep as the binder's bounds on nesting allow (a few thousand levels at most), so that what
/// walks it may recurse. Nodes are owned by their parents; tables are shared with the catalog's cache.
namespace nam::plan::logical {

struct Column {
  ColumnRef ref;
  std::string name;  // as a result shows it
  Type type;
  bool nullable = true;
};

struct Node;
using NodePtr = std::unique_ptr<Node>;

// ─── Operators. "columns" is Node::columns; an operator whose columns are not described has its input's.

/// No input. columns: those that are read; ref.column is the column's place in the table.
struct Scan {
  int relation = -1;
  std::shared_ptr<const proto::Table> table;
};

/// No input. Rows of constants, one for each of columns. One row without columns is what SELECT without FROM
/// selects from.
struct Values {
  std::vector<std::vector<Value>> rows;
};

/// Rows for which all conditions are true.
struct Filter {
  std::vector<Expr> conditions;
};

/// columns[i] is outputs[i]. An output that is a column alone may keep its name.
struct Project {
  std::vector<Expr> outputs;
};

/// Two inputs, left and right. A pair *matches* if all `conditions` are true of it: none at all is the cross
/// join. What becomes of it says JoinKind, the left input being the probe side.
///
/// columns: left, then right (inner, left, right, full, single: those of a side that may be filled with NULLs
/// become nullable); left (semi, anti, null-aware anti); left, then `mark`, a boolean (mark).
///
/// Of kMark and kNullAwareAnti `compared` is the part of IN or ANY whose NULLs count: of the pairs that
/// match, if one has all of `compared` true, the mark is true; otherwise if one has none of it false, the
/// mark is NULL; otherwise it is false. Without `compared`, as of EXISTS, the mark is never NULL.
/// kNullAwareAnti keeps the rows whose mark would be false.
struct Join {
  JoinKind kind = JoinKind::kInner;
  bool dependent = false;  // the right input names columns of the left. Inner, left, single and mark only
  std::vector<Expr> conditions;
  std::vector<Expr> compared;
  ColumnRef mark;
};

struct AggregateCall {
  AggregateFunction function = AggregateFunction::kCountRows;  // not kCountDistinct: `distinct` says it
  Expr argument;                                               // unused by kCountRows
  Expr second;                                                 // of functions of two arguments
  bool distinct = false;
  std::optional<Expr> filter;  // of the rows that count
  Type type;
};

/// GROUPING(…): of the keys, first to last, a bit each from the highest; 1 if the row's grouping set lacks
/// it.
struct GroupingCall {
  std::vector<uint32_t> keys;
};

/// columns: keys, then aggregates, then groupings. Without keys and `sets` there is one row even of no input.
struct Aggregate {
  std::vector<Expr> keys;
  std::vector<AggregateCall> aggregates;
  std::vector<GroupingCall> groupings;
  /// Grouping sets as places in `keys`: the result is that of each set, one after the other, keys that it
  /// lacks being NULL. None: one set of all keys. An empty set has one row even of no input.
  std::vector<std::vector<uint32_t>> sets;
};

enum class WindowFunction : uint8_t {
  kAggregate,  // `aggregate` over the frame
  kRowNumber,
  kRank,
  kDenseRank,
  kNtile,       // [buckets]
  kLag,         // [value, offset, default]
  kLead,        // [value, offset, default]
  kFirstValue,  // [value]
  kLastValue,   // [value]
  kNthValue,    // [value, n]
  kPercentRank,
  kCumeDist,
};

struct FrameBound {
  enum class Kind : uint8_t { kUnboundedPreceding, kPreceding, kCurrentRow, kFollowing, kUnboundedFollowing };
  Kind kind = Kind::kUnboundedPreceding;
  /// Of kPreceding and kFollowing, not negative, not NULL: of ROWS and GROUPS an integer, of RANGE a number
  /// that is added to the one order key.
  Value offset;
};

struct Frame {
  enum class Unit : uint8_t { kRows, kRange, kGroups };
  /// The rows between the bounds that do not count: none; the row itself; it and its peers; its peers alone.
  enum class Exclusion : uint8_t { kNone, kCurrentRow, kGroup, kTies };
  Unit unit = Unit::kRange;
  FrameBound start;
  FrameBound end{FrameBound::Kind::kCurrentRow, {}};
  Exclusion exclusion = Exclusion::kNone;
};

struct WindowCall {
  WindowFunction function = WindowFunction::kRowNumber;
  std::vector<Expr> arguments;
  AggregateCall aggregate;  // of kAggregate; not distinct
  Frame frame;              // of kAggregate, first, last and nth value; ranking and lag look at all rows
  Column result;
};

/// columns: the input's, then the calls' results. Rows without an order in their partition are all peers.
struct Window {
  std::vector<Expr> partition;
  std::vector<OrderKey> order;
  std::vector<WindowCall> calls;
};

struct Sort {
  std::vector<OrderKey> keys;
};

struct Limit {
  std::optional<int64_t> rows;  // none: all
  int64_t offset = 0;
  /// With these, which the input is ordered by, and one row or more: rows behind the last one that are like
  /// it in all of them come, too. NULLs are alike.
  std::vector<Expr> ties;
};

/// Each row of the input once for each number of a series: first, first + step, … as long as `last` is not
/// passed. None if one of them is NULL; 22023 if `step` is 0. All of one type, an integer or a decimal; or
/// timestamps, `step` being an interval. columns: the input's, then `result`, which has no NULL.
struct Series {
  Expr first, last, step;
  Column result;
};

/// One row of those that are alike in `on` (in all columns if `on` is empty), NULLs being alike: the first
/// one by `order`, any of its peers.
struct Distinct {
  std::vector<Expr> on;
  std::vector<OrderKey> order;
};

/// Two inputs; of union two or more. columns[i] is each input's columns[i], which have one type; rows are
/// alike if all columns are, NULLs being alike.
struct SetOperation {
  enum class Kind : uint8_t { kUnion, kIntersect, kExcept };
  Kind kind = Kind::kUnion;
  bool all = false;
};

/// Two inputs: the definition, which is computed once, and the body, whose rows these are. CteScans with this
/// number occur in the body only. The definition may be correlated as any node.
struct With {
  int cte = -1;
  std::string name;
};

/// No input. columns[i] is column fields[i] of the definition, under a name of its own.
struct CteScan {
  int cte = -1;
  std::vector<uint32_t> fields;
};

using Operator = std::variant<Scan, Values, Filter, Project, Join, Aggregate, Window, Sort, Limit, Distinct,
                              SetOperation, With, CteScan, Series>;

struct Node {
  Operator op;
  std::vector<NodePtr> inputs;
  std::vector<Column> columns;

  template <typename T>
  T* As() {
    return std::get_if<T>(&op);
  }
  template <typename T>
  const T* As() const {
    return std::get_if<T>(&op);
  }
  Node& input(size_t i = 0) { return *inputs[i]; }
  const Node& input(size_t i = 0) const { return *inputs[i]; }
};

struct Query {
  NodePtr root;       // its columns are the result's
  int relations = 0;  // numbers that are taken
  int ctes = 0;
};

// ─── Making nodes. Columns follow from the inputs where the operator has no say in them.

NodePtr MakeNode(Operator op, std::vector<Column> columns, NodePtr a = nullptr, NodePtr b = nullptr);
NodePtr MakeFilter(NodePtr input, std::vector<Expr> conditions);  // the input itself if there are none
NodePtr MakeJoin(JoinKind kind, NodePtr left, NodePtr right, std::vector<Expr> conditions = {});
/// One row without columns.
NodePtr MakeOneRow();
/// A reference to a column.
Expr MakeColumn(const Column& column, int position = -1);
/// a IS NOT DISTINCT FROM b, two columns or expressions of one type: `a = b` where one of them has no NULL,
/// otherwise `a = b OR (a IS NULL AND b IS NULL)`, which NotDistinctSides recognizes.
Expr MakeNotDistinct(const Expr& a, bool a_nullable, const Expr& b, bool b_nullable);
/// The two sides of an expression of the second form.
std::optional<std::pair<const Expr*, const Expr*>> NotDistinctSides(const Expr& expr);

/// Sets the columns that follow from the inputs: all of Filter, Sort, Limit, Distinct, Join, Window, Series
/// and With; `nullable` of the others. Inputs' columns are right already.
void DeriveColumns(Node& node);
/// DeriveColumns of every node, inputs first.
void DeriveAllColumns(Node& root);

// ─── Reading

using VisitExpr = std::function<void(Expr&)>;
using VisitConstExpr = std::function<void(const Expr&)>;
/// Every expression of the node itself, as a whole.
void ForExpressions(Node& node, const VisitExpr& visit);
void ForExpressions(const Node& node, const VisitConstExpr& visit);

using ColumnSet = std::set<ColumnRef>;
ColumnSet ColumnsIn(const Node& node);
/// Columns that expressions below (and of) the node name but nothing below defines: what it is correlated by.
ColumnSet FreeColumns(const Node& root);
/// Whether the expression names one of these columns.
bool Names(const Expr& expr, const ColumnSet& columns);
const Column* FindColumn(const std::vector<Column>& columns, ColumnRef ref);
/// Whether the expression may be NULL; columns that are not among `columns` may.
bool MayBeNull(const Expr& expr, const std::vector<Column>& columns);
/// Whether all conditions are one condition: as ANDs below are taken apart.
std::vector<Expr> Conjuncts(Expr condition);
/// Splits ANDs of a list, leaves out what is true, and makes NULL false.
std::vector<Expr> Conjuncts(std::vector<Expr> conditions);
/// The conditions as one expression; true if there are none.
Expr Conjunction(std::vector<Expr> conditions);

/// A copy of the whole tree, with the same names.
NodePtr Clone(const Node& root);

/// INTERNAL if the tree breaks one of the rules above: for tests and before lowering. `unnested`: no
/// dependent join and no free column may be left.
absl::Status CheckTree(const Query& query, bool unnested);

/// One operator a line, inputs indented, columns as #relation.column.
std::string ToString(const Node& root);

}  // namespace nam::plan::logical
