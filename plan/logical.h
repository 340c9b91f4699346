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

/// The meaning of a query, as a tree of relational operators over bags of rows.
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
/// its own (Query::relations counts them). A name means one value of a row wherever it occurs: operators that
/// only pass a column on keep its name. No operator has two columns of one name, and the two inputs of a join
/// share none. Where one subtree must occur twice, it is a CTE and its scans rename.
///
/// **Visible** to an operator's expressions are the columns of its inputs. Everything below the right input
/// of a dependent join also sees the columns of the left one, unless they are defined below as well. There is
/// no other correlation. optimizer/unnest.h removes all dependent joins: lowering never sees one.
///
/// **Order**: Sort orders; Filter, Project, Limit, Series and With keep their (last) input's order; no other
/// operator promises one. Limit takes the first rows of its input's order.
///
/// **Types** of expressions are as the binder promises (plan/expression.h). A column that is not `nullable`
/// has no NULL.
///
/// A tree is as deep as the binder's bounds on nesting allow (a few thousand levels at most), so walks may
/// recurse. Nodes are owned by their parents; tables are shared with the catalog's cache.
namespace nam::plan::logical {

struct Column {
  ColumnRef ref;
  std::string name;  // as results show it
  Type type;
  bool nullable = true;
  SqlType declared;  // as Expr::declared
};

struct Node;
using NodePtr = std::unique_ptr<Node>;

// ─── Operators. "columns" is Node::columns; an operator whose columns are not described has its input's.

/// No input. columns: those that are read; ref.column is the column's place in the table.
struct Scan {
  int relation = -1;
  std::shared_ptr<const proto::Table> table;
};

/// No input. Rows of files on the session's host, in the files' order. columns as of Scan.
struct FileScan {
  int relation = -1;
  uint32_t files = 0;                         // the session's number of them
  std::shared_ptr<const proto::Table> table;  // describes them; its rows are a guess
};

/// No input. Rows of constants, one for each column. One row without columns is the input of SELECT without
/// FROM.
struct Values {
  std::vector<std::vector<Value>> rows;
};

/// Rows for which all conditions are true.
struct Filter {
  std::vector<Expr> conditions;
};

/// columns[i] is outputs[i]. An output that is a plain column may keep its name.
struct Project {
  std::vector<Expr> outputs;
};

/// Two inputs, left and right. A pair *matches* if all `conditions` are true for it: without conditions it is
/// the cross join. JoinKind defines the output; the left input is the probe side.
///
/// columns: left, then right (inner, left, right, full, single: those of a side that may be filled with NULLs
/// become nullable); left (semi, anti, null-aware anti); left, then `mark`, a boolean (mark).
///
/// For kMark and kNullAwareAnti `compared` is the part of IN or ANY whose NULLs count. If `compared` is all
/// true for one of the matching pairs, the mark is true; otherwise if none of it is false for one pair, the
/// mark is NULL; otherwise it is false. Without `compared`, as for EXISTS, the mark is never NULL.
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
  Expr second;                                                 // for functions of two arguments
  bool distinct = false;
  /// kSum and kAverage of decimals: the sum may have more than 38 digits, and is a numeric.
  bool long_sum = false;
  std::optional<Expr> filter;  // selects the rows that count
  Type type;
  SqlType declared;  // as Expr::declared
};

/// GROUPING(…): a bit for each key, the first key highest; 1 if the row's grouping set lacks the key.
struct GroupingCall {
  std::vector<uint32_t> keys;
};

/// columns: keys, then aggregates, then groupings. Without keys and `sets` there is one row even without
/// input.
struct Aggregate {
  std::vector<Expr> keys;
  std::vector<AggregateCall> aggregates;
  std::vector<GroupingCall> groupings;
  /// Grouping sets as places in `keys`. The result is that of each set, one after the other, with NULL for
  /// keys that it lacks. None: one set of all keys. An empty set has one row even without input.
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
  /// For kPreceding and kFollowing; neither negative nor NULL. ROWS and GROUPS: an integer. RANGE: a number
  /// that is added to the one order key.
  Value offset;
};

struct Frame {
  enum class Unit : uint8_t { kRows, kRange, kGroups };
  /// The excluded rows between the bounds: none; the row itself; it and its peers; its peers alone.
  enum class Exclusion : uint8_t { kNone, kCurrentRow, kGroup, kTies };
  Unit unit = Unit::kRange;
  FrameBound start;
  FrameBound end{FrameBound::Kind::kCurrentRow, {}};
  Exclusion exclusion = Exclusion::kNone;
};

struct WindowCall {
  WindowFunction function = WindowFunction::kRowNumber;
  std::vector<Expr> arguments;
  AggregateCall aggregate;  // for kAggregate; not distinct
  Frame frame;              // for kAggregate, first, last and nth value; ranking and lag read all rows
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
  /// The columns that the input is ordered by, with at least one row wanted: rows after the last one that
  /// equal it in all of them are included. NULLs are equal.
  std::vector<Expr> ties;
};

/// Repeats each row of the input for each number of a series: first, first + step, … up to `last`. The series
/// is empty if one of them is NULL; 22023 if `step` is 0. All have one type, an integer or a decimal; or
/// timestamps, `step` being an interval. columns: the input's, then `result`, which has no NULL.
struct Series {
  Expr first, last, step;
  Column result;
};

/// One row of those that are equal in `on` (in all columns if `on` is empty), NULLs being equal: the first
/// one by `order`, any of its peers.
struct Distinct {
  std::vector<Expr> on;
  std::vector<OrderKey> order;
};

/// Two inputs; at least two for union. columns[i] is each input's columns[i], which have one type; rows are
/// equal if all columns are, NULLs being equal.
struct SetOperation {
  enum class Kind : uint8_t { kUnion, kIntersect, kExcept };
  Kind kind = Kind::kUnion;
  bool all = false;
};

/// Two inputs: the definition, which is computed once, and the body, whose rows these are. CteScans with this
/// number occur in the body only. The definition may be correlated like any node.
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
                              SetOperation, With, CteScan, Series, FileScan>;

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
  int relations = 0;  // numbers in use
  int ctes = 0;
};

// ─── Making nodes. Columns follow from the inputs where the operator has no choice.

NodePtr MakeNode(Operator op, std::vector<Column> columns, NodePtr a = nullptr, NodePtr b = nullptr);
NodePtr MakeFilter(NodePtr input, std::vector<Expr> conditions);  // returns the input if there are none
NodePtr MakeJoin(JoinKind kind, NodePtr left, NodePtr right, std::vector<Expr> conditions = {});
/// One row without columns.
NodePtr MakeOneRow();
/// A reference to a column.
Expr MakeColumn(const Column& column, int position = -1);
/// a IS NOT DISTINCT FROM b, two columns or expressions of one type: `a = b` if one of them has no NULL,
/// otherwise `a = b OR (a IS NULL AND b IS NULL)`, which NotDistinctSides recognizes.
Expr MakeNotDistinct(const Expr& a, bool a_nullable, const Expr& b, bool b_nullable);
/// The two sides of an expression of the second form.
std::optional<std::pair<const Expr*, const Expr*>> NotDistinctSides(const Expr& expr);

/// Sets the columns that follow from the inputs: all of Filter, Sort, Limit, Distinct, Join, Window, Series
/// and With; `nullable` for the others. The inputs' columns are already right.
void DeriveColumns(Node& node);
/// DeriveColumns of every node, inputs first.
void DeriveAllColumns(Node& root);

// ─── Reading

using VisitExpr = std::function<void(Expr&)>;
using VisitConstExpr = std::function<void(const Expr&)>;
/// Visits every expression of the node itself, as a whole.
void ForExpressions(Node& node, const VisitExpr& visit);
void ForExpressions(const Node& node, const VisitConstExpr& visit);

using ColumnSet = std::set<ColumnRef>;
ColumnSet ColumnsIn(const Node& node);
/// The columns that expressions below (and of) the node name but nothing below defines: its correlation.
ColumnSet FreeColumns(const Node& root);
/// Whether the expression names one of these columns.
bool Names(const Expr& expr, const ColumnSet& columns);
const Column* FindColumn(const std::vector<Column>& columns, ColumnRef ref);
/// Whether the expression may be NULL; columns outside of `columns` may.
bool MayBeNull(const Expr& expr, const std::vector<Column>& columns);
/// The condition's conjuncts, as the list below splits them.
std::vector<Expr> Conjuncts(Expr condition);
/// Splits ANDs of a list, drops conditions that are true, and makes NULL false.
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
