#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "optimizer/lower_star.h"
#include "optimizer/push_semi_joins.h"
#include "optimizer/tree_lowering.h"
#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "plan/table_schema.h"

namespace nam::optimizer {

namespace lg = plan::logical;
using plan::ColumnRef;
using plan::Expr;
using plan::JoinKind;
using plan::Op;

namespace {

/// Tables and conditions of inner joins.
struct Block {
  std::vector<const lg::Node*> scans;
  std::vector<const Expr*> conditions;
};

void AddPointers(const std::vector<Expr>& exprs, std::vector<const Expr*>& pointers) {
  for (const Expr& expr : exprs) pointers.push_back(&expr);
}

/// False: something else is below.
bool CollectBlock(const lg::Node& node, Block& block) {
  if (node.As<lg::Scan>() != nullptr) {
    block.scans.push_back(&node);
    return true;
  }
  if (const auto* filter = node.As<lg::Filter>(); filter != nullptr) {
    AddPointers(filter->conditions, block.conditions);
    return CollectBlock(node.input(), block);
  }
  const auto* join = node.As<lg::Join>();
  if (join == nullptr || join->kind != JoinKind::kInner) return false;
  AddPointers(join->conditions, block.conditions);
  return CollectBlock(node.input(0), block) && CollectBlock(node.input(1), block);
}

/// Numbers of the block's tables instead of relations.
class Renaming {
 public:
  explicit Renaming(const Block& block) {
    for (const lg::Node* scan : block.scans) relations_.push_back(scan->As<lg::Scan>()->relation);
  }
  void Apply(Expr& expr) const {
    std::vector<Expr*> open{&expr};
    while (!open.empty()) {
      Expr& e = *open.back();
      open.pop_back();
      if (e.op == Op::kColumn) e.column.table = TableOf(e.column.table);
      for (Expr& child : e.children) open.push_back(&child);
    }
  }
  ColumnRef Back(ColumnRef column) const {
    return {relations_[static_cast<size_t>(column.table)], column.column};
  }
  /// Whether it names columns of the block only.
  bool HasAllOf(const Expr& expr) const {
    if (expr.op == Op::kColumn)
      return std::find(relations_.begin(), relations_.end(), expr.column.table) != relations_.end();
    return std::all_of(expr.children.begin(), expr.children.end(),
                       [&](const Expr& child) { return HasAllOf(child); });
  }
  int TableOf(int relation) const {
    const auto found = std::find(relations_.begin(), relations_.end(), relation);
    NAM_CHECK(found != relations_.end(), "a column of the block");
    return static_cast<int>(found - relations_.begin());
  }

 private:
  std::vector<int> relations_;
};

/// Whether edges lead from the first table to every other.
bool Connected(size_t tables, const std::vector<JoinEdge>& edges) {
  std::vector<bool> seen(tables);
  std::vector<int> open{0};
  seen[0] = true;
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (const JoinEdge& edge : edges) {
      for (const auto& [from, to] :
           {std::pair(edge.left.table, edge.right.table), std::pair(edge.right.table, edge.left.table)}) {
        if (from != at || seen[static_cast<size_t>(to)]) continue;
        seen[static_cast<size_t>(to)] = true;
        open.push_back(to);
      }
    }
  }
  return std::all_of(seen.begin(), seen.end(), [](bool s) { return s; });
}

/// Adds an edge only once, in either direction.
void AddEdge(const JoinEdge& edge, StarQuery& query) {
  const bool known = std::any_of(query.joins.begin(), query.joins.end(), [&](const JoinEdge& other) {
    return (other.left == edge.left && other.right == edge.right) ||
           (other.left == edge.right && other.right == edge.left);
  });
  if (!known) query.joins.push_back(edge);
}

/// Whether the condition repeats one of the last. Repeats only cost time, but so does a search among all of
/// the hundred thousands that a statement may have.
bool IsAmongLast(const std::vector<Expr>& conditions, const Expr& condition) {
  constexpr size_t kMostCompared = 256;
  const size_t compared = std::min(conditions.size(), kMostCompared);
  return std::any_of(conditions.end() - static_cast<std::ptrdiff_t>(compared), conditions.end(),
                     [&](const Expr& other) { return plan::SameExpr(other, condition); });
}

constexpr int kIntegerDigits = 19;

/// Whether all numbers of so many digits fit the larger scale, too.
bool FitsAtScale(int digits, int from, int to) {
  return digits + to - from <= kMaxDecimalDigits;
}

/// Whether the columns of an equality can be brought to one scale, as keys are.
bool FitOneScale(const Expr& equality, const TableRefs& tables) {
  const uint8_t scale = std::max(equality.children[0].type.scale, equality.children[1].type.scale);
  return std::all_of(equality.children.begin(), equality.children.end(), [&](const Expr& side) {
    if (!side.type.numeric() || side.type.scale == scale) return true;
    const proto::Table& table = *tables[static_cast<size_t>(side.column.table)];
    const int digits = static_cast<int>(table.columns(side.column.column).type().precision());
    const int most = side.type.kind == TypeKind::kInteger ? kIntegerDigits
                     : digits > 0                         ? digits
                                                          : kMaxDecimalDigits;
    return FitsAtScale(most, side.type.scale, scale);
  });
}

StarQuery QueryOf(const Block& block, const Renaming& renaming, const ColumnSet& needed) {
  StarQuery query;
  for (const lg::Node* scan : block.scans) {
    const auto& table = scan->As<lg::Scan>()->table;
    for (const lg::Column& column : scan->columns) {
      if (needed.contains(column.ref))
        query.output.push_back({static_cast<int>(query.tables.size()), column.ref.column});
    }
    query.tables.push_back(table);
  }
  for (const Expr* of_block : block.conditions) {
    Expr condition = *of_block;
    renaming.Apply(condition);
    if (plan::EquatesTables(condition) && FitOneScale(condition, query.tables)) {
      AddEdge({condition.children[0].column, condition.children[1].column}, query);
    } else if (!IsAmongLast(query.conjuncts, condition)) {
      query.conjuncts.push_back(std::move(condition));
    }
  }
  return query;
}

/// Whether both sides of a = b can get equal bytes, for keys of a build.
bool CanBeKey(const Type& a, const Type& b) {
  if (a.numeric() && b.numeric()) return true;
  if (a.packed()) return false;
  return a.kind == b.kind && a.scale == b.scale;
}

Expr AtScale(Expr e, uint8_t scale) {
  if (!e.type.numeric() || e.type.scale == scale) return e;
  return plan::MakeNode(Op::kCast, Type::Decimal(scale), e.position, {std::move(e)});
}

bool NamesOnly(const Expr& expr, const lg::ColumnSet& columns) {
  ColumnSet names;
  AddColumns(expr, names);
  return !names.empty() &&
         std::all_of(names.begin(), names.end(), [&](ColumnRef column) { return columns.contains(column); });
}

lg::ColumnSet ColumnsBelow(const lg::Node& node) {
  lg::ColumnSet columns;
  for (const lg::Column& column : node.columns) columns.insert(column.ref);
  return columns;
}

/// A join's conditions by their use.
struct Keys {
  std::vector<Expr> left, right;
  std::vector<Expr> residuals;
};

/// False: the condition must be checked beside the keys. If it is an equality of the two sides whose numbers
/// do not fit the larger scale, they are keys at the smaller one: equal numbers stay equal there.
bool AddKey(const Expr& condition, const lg::ColumnSet& left, const lg::ColumnSet& right, Keys& keys) {
  if (condition.op != Op::kEqual) return false;
  Expr a = condition.children[0], b = condition.children[1];
  if (NamesOnly(a, right) && NamesOnly(b, left)) std::swap(a, b);
  if (!NamesOnly(a, left) || !NamesOnly(b, right) || !CanBeKey(a.type, b.type)) return false;
  const uint8_t smaller = std::min(a.type.scale, b.type.scale);
  const uint8_t larger = std::max(a.type.scale, b.type.scale);
  const auto fits = [&](const Type& type) {
    const int digits = type.kind == TypeKind::kInteger ? kIntegerDigits : kMaxDecimalDigits;
    return !type.numeric() || FitsAtScale(digits, type.scale, larger);
  };
  const bool exact = fits(a.type) && fits(b.type);
  const uint8_t scale = exact ? larger : smaller;
  keys.left.push_back(AtScale(std::move(a), scale));
  keys.right.push_back(AtScale(std::move(b), scale));
  return exact;
}

/// a IS NOT DISTINCT FROM b as equalities that are never NULL: of a replacement for NULL, and of whether it
/// is NULL.
std::vector<Expr> EqualitiesOf(const Expr& condition) {
  const auto sides = lg::NotDistinctSides(condition);
  if (!sides.has_value() || !CanBeKey(sides->first->type, sides->second->type)) return {condition};
  std::vector<Expr> values, tests;
  for (const Expr* side : {sides->first, sides->second}) {
    const Expr instead = plan::MakeLiteral(Value{side->type, false, 0, {}}, side->position);
    Expr test = plan::MakeNode(Op::kIsNull, Type::Bool(), side->position, {*side});
    values.push_back(plan::MakeNode(Op::kCase, side->type, side->position, {test, instead, *side}));
    tests.push_back(std::move(test));
  }
  return {plan::MakeNode(Op::kEqual, Type::Bool(), condition.position, std::move(values)),
          plan::MakeNode(Op::kEqual, Type::Bool(), condition.position, std::move(tests))};
}

Keys JoinKeysOf(const std::vector<Expr>& conditions, const lg::Node& left, const lg::Node& right) {
  Keys keys;
  const lg::ColumnSet of_left = ColumnsBelow(left), of_right = ColumnsBelow(right);
  for (const Expr& condition : conditions) {
    for (Expr& equality : EqualitiesOf(condition)) {
      if (!AddKey(equality, of_left, of_right, keys)) keys.residuals.push_back(std::move(equality));
    }
  }
  return keys;
}

}  // namespace

double EstimatedRows(const lg::Node& node) {
  if (const auto* scan = node.As<lg::Scan>(); scan != nullptr)
    return static_cast<double>(scan->table->rows());
  if (const auto* files = node.As<lg::FileScan>(); files != nullptr)
    return static_cast<double>(files->table->rows());
  if (const auto* values = node.As<lg::Values>(); values != nullptr)
    return static_cast<double>(values->rows.size());
  if (node.inputs.empty()) return 1000;
  double rows = 0;
  for (const lg::NodePtr& input : node.inputs) rows = std::max(rows, EstimatedRows(*input));
  if (node.As<lg::Filter>() != nullptr) return rows / 3;
  if (const auto* aggregate = node.As<lg::Aggregate>(); aggregate != nullptr)
    return aggregate->keys.empty() ? 1 : rows / 10;
  return rows;
}

std::optional<absl::StatusOr<Flow>> TreeLowering::LowerStarBlock(const Node& node, const ColumnSet& needed) {
  const auto* join = node.As<lg::Join>();
  if (join == nullptr && node.As<lg::Filter>() == nullptr && node.As<lg::Scan>() == nullptr)
    return std::nullopt;
  Block block;
  if (!CollectBlock(node, block)) return std::nullopt;
  const Renaming renaming(block);
  if (!std::all_of(block.conditions.begin(), block.conditions.end(),
                   [&](const Expr* condition) { return renaming.HasAllOf(*condition); }))
    return std::nullopt;
  StarQuery query = QueryOf(block, renaming, needed);
  const bool records = std::any_of(query.tables.begin(), query.tables.end(),
                                   [](const auto& table) { return table->has_record(); });
  const bool served = options_.records != nullptr && options_.records->servers_read();
  if (records && (query.tables.size() == 1 || !served)) return std::nullopt;
  if (!Connected(query.tables.size(), query.joins)) return std::nullopt;
  const auto lower = [&]() -> absl::StatusOr<Flow> {
    TableRefs tables = query.tables;
    NAM_ASSIGN_OR_RETURN(const std::vector<size_t> prepared, PrepareRecords(query));
    for (const size_t t : prepared) {  // rows of a load of the transaction lie in another table
      if (query.tables[t]->allocation() != tables[t]->allocation()) tables[t] = query.tables[t];
    }
    NAM_ASSIGN_OR_RETURN(Plan star, MakePlan(query, options_.cluster.workers()));
    if (options_.whole_tuples) ReadWholeTuples(tables, star);
    for (const lg::Node* scan : block.scans) NoteValues(*scan);
    // The plan's number of each table.
    std::vector<uint32_t> number_of(tables.size());
    NAM_ASSIGN_OR_RETURN(const StarChoices choices, ChooseStarJoins(star, tables));
    NAM_ASSIGN_OR_RETURN(Flow flow, LowerStarFrom(std::move(star), tables, choices, number_of));
    for (const size_t table : prepared) prepared_tables_.push_back(number_of[table]);
    for (ColumnRef& column : flow.layout) column = renaming.Back(column);
    return flow;
  };
  return lower();
}

namespace {

/// Over columns of table 0.
std::vector<Expr> OfTheOnlyTable(std::vector<Expr> conditions) {
  for (Expr& condition : conditions) {
    std::vector<Expr*> open{&condition};
    while (!open.empty()) {
      Expr& e = *open.back();
      open.pop_back();
      if (e.op == Op::kColumn) e.column.table = 0;
      for (Expr& child : e.children) open.push_back(&child);
    }
  }
  return conditions;
}

/// Conditions on one table of a block only.
std::vector<Expr> ConditionsOn(const StarQuery& query, size_t table) {
  std::vector<Expr> conditions;
  for (const Expr& condition : query.conjuncts) {
    const std::vector<ColumnRef> columns = plan::ColumnsOf(condition);
    if (!columns.empty() && std::all_of(columns.begin(), columns.end(), [&](ColumnRef column) {
          return column.table == static_cast<int>(table);
        }))
      conditions.push_back(condition);
  }
  return OfTheOnlyTable(std::move(conditions));
}

}  // namespace

absl::StatusOr<std::vector<size_t>> TreeLowering::PrepareRecords(StarQuery& query) {
  std::vector<size_t> prepared;
  for (size_t t = 0; t < query.tables.size(); ++t) {
    if (!query.tables[t]->has_record()) continue;
    NAM_ASSIGN_OR_RETURN(query.tables[t], options_.records->Prepare(query.tables[t], ConditionsOn(query, t)));
    prepared.push_back(t);
  }
  return prepared;
}

absl::StatusOr<Flow> TreeLowering::LowerTableScan(const Node& node, const ColumnSet& needed,
                                                  const std::vector<Expr>& conditions, int64_t rows_wanted) {
  const auto& scan = *node.As<lg::Scan>();
  NAM_CHECK(scan.table->has_record(), "columnar tables are stars");
  TransactionScan found{.conditions = OfTheOnlyTable(conditions),
                        .layout = std::make_shared<const partitioner::RecordLayout>(*scan.table),
                        .path = {},
                        .rows_wanted = rows_wanted};
  const bool wished = wish_.has_value() && wish_->relation == scan.relation;
  if (options_.records != nullptr) {
    sql::AccessWishes wishes{.snapshot = options_.records->snapshot()};
    if (wished) wishes.order = wish_->columns;
    found.path = sql::ChooseAccessPath(*scan.table, *found.layout, found.conditions, wishes);
  } else {
    found.path.ranges.emplace_back();
    for (const Expr& condition : found.conditions) found.path.filter.push_back(&condition);
  }
  if (wished) {
    wish_->met = found.path.ordered;
    if (!wish_->met) found.rows_wanted = -1;
  }
  std::vector<Expr> left;
  for (const Expr* condition : found.path.filter)
    left.push_back(conditions[static_cast<size_t>(condition - found.conditions.data())]);

  ColumnSet wanted = needed;
  AddColumns(left, wanted);
  plan::RecordScan source;
  found.table = source.table = builder_.AddTable(scan.table);
  Layout read;
  for (const Column& column : node.columns) {
    if (wanted.contains(column.ref)) read.push_back(column.ref);
  }
  std::sort(read.begin(), read.end());
  for (const ColumnRef column : read) {
    source.columns.push_back(static_cast<uint32_t>(column.column));
    NAM_ASSIGN_OR_RETURN(plan::Slot slot, plan::SlotOfColumn(*scan.table, source.columns.back()));
    source.slots.push_back(std::move(slot));
  }
  NAM_ASSIGN_OR_RETURN(source.filters, OverSlots(left, read));
  source.output = SlotsWhere(read, needed);
  Flow flow;
  for (const uint32_t slot : source.output) flow.layout.push_back(read[slot]);
  NAM_ASSIGN_OR_RETURN(plan::Schema flows, plan::ScanOutput(source));
  auto rows = static_cast<double>(scan.table->rows());
  if (!found.path.keys.empty()) rows = static_cast<double>(found.path.keys.size());
  transaction_scans_.push_back(std::move(found));
  flow.pipeline.source = std::move(source);
  flow.pipeline.schemas.push_back(std::move(flows));
  flow.pipeline.estimates.push_back({rows, 1});
  flow.pipeline.stage = Flow::kSession;
  return flow;
}

absl::StatusOr<Flow> TreeLowering::LowerJoin(const Node& node, const ColumnSet& needed) {
  const auto& join = *node.As<lg::Join>();
  const Node *probe_side = &node.input(0), *build_side = &node.input(1);
  JoinKind kind = join.kind;
  // A right join is a left one from the other side, which servers can make alone.
  if (kind == JoinKind::kRight) {
    kind = JoinKind::kLeft;
    std::swap(probe_side, build_side);
  } else if (kind == JoinKind::kInner && EstimatedRows(*probe_side) < EstimatedRows(*build_side)) {
    std::swap(probe_side, build_side);
  }
  Keys keys = JoinKeysOf(join.conditions, *probe_side, *build_side);
  std::vector<Expr> compared = join.compared;
  bool null_aware = false;
  if (compared.size() == 1 && join.conditions.empty()) {
    // IN over one comparison: its key.
    Keys of_in = JoinKeysOf(compared, *probe_side, *build_side);
    if (of_in.residuals.empty()) {
      keys = std::move(of_in);
      compared.clear();
      null_aware = kind == JoinKind::kMark;
    }
  }

  JoinOf out{.kind = kind, .null_aware = null_aware, .mark = join.mark, .behind = needed};
  AddColumns(keys.residuals, out.behind);
  AddColumns(compared, out.behind);
  ColumnSet below = out.behind;
  AddColumns(keys.left, below);
  AddColumns(keys.right, below);
  out.left = std::move(keys.left);
  out.right = std::move(keys.right);
  out.residuals = std::move(keys.residuals);
  out.compared = std::move(compared);
  NAM_ASSIGN_OR_RETURN(Flow build, Lower(*build_side, below));
  if (IsOfParts(build)) {
    if (auto first = LowerSemiJoinFirst(node, needed, build); first.has_value()) return *std::move(first);
  }
  NAM_ASSIGN_OR_RETURN(Flow flow, Lower(*probe_side, below));
  if (out.left.size() == 1 && out.left[0].op == Op::kColumn) {
    const auto known = heaviest_of_.find(out.left[0].column);
    if (known != heaviest_of_.end()) out.heaviest = known->second;
  }
  return Join(std::move(out), std::move(flow), std::move(build));
}

std::optional<absl::StatusOr<Flow>> TreeLowering::LowerSemiJoinFirst(const Node& node,
                                                                     const ColumnSet& needed, Flow& build) {
  if (!CanBeWhole(build)) return std::nullopt;
  // The lowered input already has a name.
  lg::CteScan scan{.cte = -1 - static_cast<int>(common_tables_.size()), .fields = {}};
  std::vector<Column> columns;
  for (uint32_t i = 0; i < build.layout.size(); ++i) {
    const Column* column = lg::FindColumn(node.input(1).columns, build.layout[i]);
    if (column == nullptr) continue;
    scan.fields.push_back(i);
    columns.push_back(*column);
  }
  const int cte = scan.cte;
  const lg::NodePtr tree = WithSemiJoinFirst(node, lg::MakeNode(std::move(scan), std::move(columns)));
  if (tree == nullptr) return std::nullopt;
  common_tables_[cte] = ToParts(std::move(build));
  return Lower(*tree, needed);
}

}  // namespace nam::optimizer
