#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/aggregate_slots.h"
#include "plan/expression_tree.h"
#include "sql/declared_type.h"
#include "sql/logical_place.h"
#include "sql/logical_select.h"
#include "types/interval.h"
#include "types/sql_error.h"

/// Window functions and their windows.
namespace nam::sql {
namespace {

using plan::Expr;
using plan::OrderKey;
using plan::SameExpr;
using plan::logical::Column;
using plan::logical::Frame;
using plan::logical::FrameBound;
using plan::logical::MakeColumn;
using plan::logical::WindowCall;
using plan::logical::WindowFunction;

struct Known {
  const char* name;
  WindowFunction function;
  size_t least, most;  // arguments
};
constexpr Known kWindowFunctions[] = {
    {"row_number", WindowFunction::kRowNumber, 0, 0},
    {"rank", WindowFunction::kRank, 0, 0},
    {"dense_rank", WindowFunction::kDenseRank, 0, 0},
    {"ntile", WindowFunction::kNtile, 1, 1},
    {"lag", WindowFunction::kLag, 1, 3},
    {"lead", WindowFunction::kLead, 1, 3},
    {"first_value", WindowFunction::kFirstValue, 1, 1},
    {"last_value", WindowFunction::kLastValue, 1, 1},
    {"nth_value", WindowFunction::kNthValue, 2, 2},
    {"percent_rank", WindowFunction::kPercentRank, 0, 0},
    {"cume_dist", WindowFunction::kCumeDist, 0, 0},
};

const Known* Find(const std::string& name) {
  const Known* found = std::find_if(std::begin(kWindowFunctions), std::end(kWindowFunctions),
                                    [&](const Known& known) { return name == known.name; });
  return found == std::end(kWindowFunctions) ? nullptr : found;
}

/// Bits of PostgreSQL's frameOptions.
constexpr int64_t kNonDefault = 0x1, kRange = 0x2, kRows = 0x4, kGroups = 0x8;
constexpr int64_t kStartUnboundedPreceding = 0x20, kEndUnboundedFollowing = 0x100;
constexpr int64_t kStartCurrentRow = 0x200, kEndCurrentRow = 0x400;
constexpr int64_t kStartPreceding = 0x800, kEndPreceding = 0x1000, kStartFollowing = 0x2000,
                  kEndFollowing = 0x4000;
constexpr int64_t kExcludeCurrentRow = 0x8000, kExcludeGroup = 0x10000, kExcludeTies = 0x20000;

/// Whether RANGE may have an offset.
bool HasDistances(const Type& key) {
  return key.numeric() || key.real() || key.kind == TypeKind::kDate || key.kind == TypeKind::kTimestamp;
}

bool Same(const plan::logical::Window& a, const std::vector<Expr>& partition,
          const std::vector<OrderKey>& order) {
  const auto same_key = [](const OrderKey& x, const OrderKey& y) {
    return x.descending == y.descending && x.nulls_first == y.nulls_first && SameExpr(x.expr, y.expr);
  };
  return std::equal(a.partition.begin(), a.partition.end(), partition.begin(), partition.end(), SameExpr) &&
         std::equal(a.order.begin(), a.order.end(), order.begin(), order.end(), same_key);
}

}  // namespace

bool IsWindowFunction(const std::string& name) {
  return Find(name) != nullptr;
}

absl::Status LogicalSelect::MayUseWindows(const Node& node, const std::string& name) const {
  const int position = node.position();
  if (!node.Has("over")) {
    return UserError(sqlstate::kWrongObjectType, absl::StrCat("window function ", name, " needs OVER"),
                     position, absl::StrCat("write ", name, "(…) OVER (ORDER BY …)"));
  }
  if (in_aggregate_) {
    return UserError(sqlstate::kGroupingError, "aggregates cannot be over window functions", position,
                     "compute the window function in a subquery in FROM");
  }
  if (in_window_) {
    return UserError(sqlstate::kWindowingError, "window functions cannot be nested", position,
                     "compute the inner one in a subquery in FROM");
  }
  if ((clause_ == Clause::kSelect || clause_ == Clause::kOrderBy) && !in_from_) return absl::OkStatus();
  return UserError(sqlstate::kWindowingError,
                   absl::StrCat("window functions are not allowed in ", ClauseName(clause_)), position,
                   "compute them in a subquery in FROM");
}

absl::StatusOr<Expr> LogicalSelect::WindowExpr(const Node& node, const std::string& name, Clause clause) {
  const int position = node.position();
  const absl::Status may = MayUseWindows(node, name);
  NAM_RETURN_IF_ERROR(
      node.Only({"funcname", "args", "agg_star", "agg_distinct", "agg_filter", "funcformat", "over"}));
  const SavedPlace place(*this, clause_);
  in_window_ = true;
  NAM_ASSIGN_OR_RETURN(WindowCall call, WindowArguments(node, name, clause));
  NAM_RETURN_IF_ERROR(may);
  Node over = node.Field("over");
  if (over.Has("name")) {
    NAM_ASSIGN_OR_RETURN(over, NamedWindow(over.Text("name"), over.position()));
  }
  absl::StatusOr<WindowDefinition> definition = Over(over, clause);
  absl::StatusOr<Frame> frame =
      definition.ok() ? FrameOf(*definition, clause) : absl::StatusOr<Frame>(definition.status());
  if (!frame.ok()) {  // PostgreSQL binds windows after the other clauses
    windowing_.Update(frame.status());
    return MakeColumn(call.result, position);
  }
  call.frame = *std::move(frame);
  const auto same = [&](const WindowGroup& group) {
    return Same(group.window, definition->partition, definition->order);
  };
  auto group = std::find_if(windows_.begin(), windows_.end(), same);
  if (group == windows_.end()) {
    group = windows_.insert(windows_.end(), WindowGroup());
    group->relation = context_.AddRelation(nullptr);
    group->window.partition = std::move(definition->partition);
    group->window.order = std::move(definition->order);
  }
  call.result.ref = {group->relation, static_cast<int>(group->window.calls.size())};
  Expr result = MakeColumn(call.result, position);
  group->window.calls.push_back(std::move(call));
  return result;
}

absl::StatusOr<WindowCall> LogicalSelect::WindowArguments(const Node& node, const std::string& name,
                                                          Clause clause) {
  const int position = node.position();
  WindowCall call;
  call.result = {{}, name, Type::Integer(), true, SqlType::BigInt()};
  const Known* known = Find(name);
  if (known == nullptr) {
    const auto& aggregates = AggregateNames();
    if (std::find(aggregates.begin(), aggregates.end(), name) == aggregates.end()) {
      return Refusal(
          absl::StrCat("window function ", Quote(name), " is not supported"), position,
          "there are the aggregates, row_number, rank, dense_rank, percent_rank, cume_dist, ntile, lag, "
          "lead, first_value, last_value and nth_value");
    }
    if (node.Flag("agg_distinct")) {
      return Refusal("DISTINCT in a window function is not supported", position, "use GROUP BY");
    }
    if (node.Has("agg_order"))
      return Refusal("ORDER BY in an aggregate with OVER is not supported", position, "OVER (ORDER BY …)");
    call.function = WindowFunction::kAggregate;
    NAM_ASSIGN_OR_RETURN(call.aggregate, AggregateArguments(node, name, clause));
    call.result.type = call.aggregate.type;
    call.result.declared = call.aggregate.declared;
    return call;
  }
  if (node.Has("agg_filter")) {
    return Refusal("FILTER of a window function that is no aggregate is not supported", position,
                   "FILTER goes with aggregates");
  }
  const std::vector<Node> args = node.List("args");
  if (args.size() < known->least || args.size() > known->most || node.Flag("agg_star")) {
    return UserError(sqlstate::kNoSuchOperator,
                     absl::StrCat("function does not exist: ", name, " with ", args.size(), " arguments"),
                     position,
                     absl::StrCat("it takes ", known->least, known->least == known->most ? "" : " or more"));
  }
  call.function = known->function;
  if (call.function == WindowFunction::kPercentRank || call.function == WindowFunction::kCumeDist)
    call.result.type = Type::Double(), call.result.declared = {};
  if (call.function == WindowFunction::kNtile) call.result.declared = SqlType::Integer();
  for (const Node& arg : args) {
    NAM_ASSIGN_OR_RETURN(Expr argument, BindUntyped(arg, clause));
    call.arguments.push_back(std::move(argument));
  }
  NAM_RETURN_IF_ERROR(ResolveArguments(call, name, position));
  return call;
}

absl::Status LogicalSelect::ResolveArguments(WindowCall& call, const std::string& name, int position) {
  std::vector<Expr>& arguments = call.arguments;
  if (arguments.empty()) return absl::OkStatus();
  const bool buckets = call.function == WindowFunction::kNtile;
  if (!buckets) {
    std::vector<Expr*> values = {&arguments[0]};
    if (arguments.size() == 3) values.push_back(&arguments[2]);
    NAM_RETURN_IF_ERROR(builder().Unify(values, name.c_str()));
    for (const Expr* value : values) {
      call.result.type = value == values[0] ? value->type : CommonType(call.result.type, value->type);
    }
    call.result.declared = CommonDeclaredType(std::vector<const Expr*>(values.begin(), values.end()));
  }
  if (!buckets && arguments.size() == 1) return absl::OkStatus();
  Expr& count = arguments[buckets ? 0 : 1];
  NAM_RETURN_IF_ERROR(builder().ResolveType(count, Type::Integer()));
  if (count.type.kind == TypeKind::kInteger) return absl::OkStatus();
  return UserError(sqlstate::kNoSuchOperator,
                   absl::StrCat("function does not exist: ", name, " with ", ShownType(count)), position,
                   "it takes an integer there");
}

/// Windows that no call names are checked, too.
absl::Status LogicalSelect::BindWindowClause() {
  const std::vector<Node> definitions = select_.List("windowClause");
  for (size_t i = 0; i < definitions.size(); ++i) {
    const std::string name = definitions[i].Text("name");
    for (size_t j = 0; j < i; ++j) {
      if (definitions[j].Text("name") != name) continue;
      return UserError(sqlstate::kWindowingError, absl::StrCat("window ", Quote(name), " is there twice"),
                       definitions[i].position(), "give each its own name");
    }
    const SavedPlace place(*this, Clause::kSelect);
    in_window_ = true;
    NAM_ASSIGN_OR_RETURN(const WindowDefinition definition, Over(definitions[i], clause_));
    NAM_RETURN_IF_ERROR(FrameOf(definition, clause_).status());
  }
  return windowing_;
}

absl::StatusOr<Node> LogicalSelect::NamedWindow(const std::string& name, int position) const {
  for (const Node& definition : select_.List("windowClause")) {
    if (definition.Text("name") == name) return definition;
  }
  return UserError(sqlstate::kUndefinedObject, absl::StrCat("window ", Quote(name), " does not exist"),
                   position, "define it with WINDOW name AS (…)");
}

absl::StatusOr<LogicalSelect::WindowDefinition> LogicalSelect::Over(const Node& over, Clause clause) {
  const int position = over.position();
  NAM_RETURN_IF_ERROR(over.Only(
      {"name", "refname", "partitionClause", "orderClause", "frameOptions", "startOffset", "endOffset"}));
  WindowDefinition definition;
  if (const std::string base = over.Text("refname"); !base.empty()) {
    if (base == over.Text("name")) {
      return UserError(sqlstate::kUndefinedObject, absl::StrCat("window ", Quote(base), " does not exist"),
                       position);
    }
    const NestingLevel level(context_, 1);
    NAM_RETURN_IF_ERROR(level.Check(over));
    NAM_ASSIGN_OR_RETURN(const Node continued, NamedWindow(base, position));
    NAM_ASSIGN_OR_RETURN(definition, Over(continued, clause));
    const char* wrong = over.Has("partitionClause")                                      ? "PARTITION BY"
                        : over.Has("orderClause") && !definition.order.empty()           ? "ORDER BY"
                        : (definition.frame->Integer("frameOptions") & kNonDefault) != 0 ? "a frame"
                                                                                         : nullptr;
    if (wrong != nullptr) {
      return UserError(sqlstate::kWindowingError,
                       absl::StrCat("window ", Quote(base), " cannot be continued: ", wrong), position,
                       "a window that another one continues has no frame, and keeps its clauses");
    }
  }
  for (const Node& item : over.List("partitionClause")) {
    NAM_ASSIGN_OR_RETURN(Expr key, BindTyped(item, clause));
    definition.partition.push_back(std::move(key));
  }
  for (const Node& item : over.List("orderClause")) {
    OrderKey key;
    NAM_RETURN_IF_ERROR(BindDirection(item, key));
    NAM_ASSIGN_OR_RETURN(key.expr, BindTyped(item.Field("node"), clause));
    definition.order.push_back(std::move(key));
  }
  definition.frame = over;
  return definition;
}

absl::StatusOr<Frame> LogicalSelect::FrameOf(const WindowDefinition& definition, Clause clause) {
  const Node& node = *definition.frame;
  const int64_t options = node.Integer("frameOptions");
  const int position = node.position();
  Frame frame;
  frame.exclusion = (options & kExcludeCurrentRow) != 0 ? Frame::Exclusion::kCurrentRow
                    : (options & kExcludeGroup) != 0    ? Frame::Exclusion::kGroup
                    : (options & kExcludeTies) != 0     ? Frame::Exclusion::kTies
                                                        : Frame::Exclusion::kNone;
  frame.unit = (options & kRows) != 0     ? Frame::Unit::kRows
               : (options & kGroups) != 0 ? Frame::Unit::kGroups
                                          : Frame::Unit::kRange;
  using Kind = FrameBound::Kind;
  frame.start.kind = (options & kStartUnboundedPreceding) != 0 ? Kind::kUnboundedPreceding
                     : (options & kStartPreceding) != 0        ? Kind::kPreceding
                     : (options & kStartCurrentRow) != 0       ? Kind::kCurrentRow
                     : (options & kStartFollowing) != 0        ? Kind::kFollowing
                                                               : Kind::kUnboundedFollowing;
  frame.end.kind = (options & kEndUnboundedFollowing) != 0 ? Kind::kUnboundedFollowing
                   : (options & kEndPreceding) != 0        ? Kind::kPreceding
                   : (options & kEndCurrentRow) != 0       ? Kind::kCurrentRow
                   : (options & kEndFollowing) != 0        ? Kind::kFollowing
                                                           : Kind::kUnboundedPreceding;
  if (frame.unit == Frame::Unit::kGroups && definition.order.empty()) {
    return UserError(sqlstate::kWindowingError, "a frame of GROUPS needs ORDER BY", position, "add ORDER BY");
  }
  for (const auto& [name, bound] :
       {std::pair("startOffset", &frame.start), std::pair("endOffset", &frame.end)}) {
    if (!node.Has(name)) continue;
    NAM_ASSIGN_OR_RETURN(bound->offset, FrameOffset(node.Field(name), definition, frame.unit, clause));
  }
  return frame;
}

absl::StatusOr<Value> LogicalSelect::FrameOffset(const Node& node, const WindowDefinition& definition,
                                                 Frame::Unit unit, Clause clause) {
  const int position = node.position();
  Type type = Type::Integer();
  if (unit == Frame::Unit::kRange) {
    if (definition.order.size() != 1) {
      return UserError(sqlstate::kWindowingError, "a frame of RANGE with an offset needs one ORDER BY column",
                       position, "order by one number, or use ROWS");
    }
    const Type& key = definition.order[0].expr.type;
    if (!HasDistances(key)) {
      return Refusal(absl::StrCat("RANGE with an offset over ", TypeName(key), " is not supported"), position,
                     key.kind == TypeKind::kNumeric
                         ? "order by a number of a known scale, as round(x, 6), or use ROWS"
                         : "order by a number, a date or a timestamp, or use ROWS");
    }
    type = key.numeric() ? key : key.real() ? Type::Double() : Type::Interval();
  }
  NAM_ASSIGN_OR_RETURN(Expr offset, BindUntyped(node, clause));
  NAM_RETURN_IF_ERROR(builder().ResolveType(offset, type));
  ExpressionBuilder::AsKnownScale(offset);
  if (type.real() && (offset.type.numeric() || offset.type.real())) {
    NAM_ASSIGN_OR_RETURN(offset, builder().Cast(std::move(offset), type, position));
  }
  const bool fits = type.kind == TypeKind::kDecimal ? offset.type.numeric() : offset.type.kind == type.kind;
  if (!fits) {
    return UserError(unit == Frame::Unit::kRange ? sqlstate::kNotSupported : sqlstate::kTypeMismatch,
                     absl::StrCat("a frame's offset must be ", TypeName(type), ", not ", ShownType(offset)),
                     position,
                     type.kind == TypeKind::kInterval ? "write an interval, as in INTERVAL '1 day'"
                                                      : "write a number of the column's type");
  }
  if (!IsLiteral(offset)) {
    if (!plan::IsConstant(offset)) {
      return UserError(sqlstate::kBadColumnReference, "a frame's offset must not contain columns", position,
                       "write a number");
    }
    NAM_ASSIGN_OR_RETURN(Value value, Evaluate(offset, plan::Resolver()));
    offset = plan::MakeLiteral(std::move(value), position);
  }
  const Parameters* parameters = node.text().parameters();
  if (offset.literal.null && parameters != nullptr && parameters->without_values())
    return Value{offset.type, false, 0, {}};
  if (offset.literal.null)
    return UserError(sqlstate::kNullNotAllowed, "a frame's offset must not be NULL", position);
  const bool negative = type.kind == TypeKind::kInterval ? SpanOf(offset.literal.interval()) < 0
                        : type.real()                    ? !(offset.literal.real() >= 0)
                                                         : offset.literal.number < 0;
  if (negative)
    return UserError(sqlstate::kBadFrameOffset, "a frame's offset must not be negative", position,
                     "PRECEDING and FOLLOWING say where");
  return offset.literal;
}

}  // namespace nam::sql
