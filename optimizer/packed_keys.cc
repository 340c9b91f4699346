#include "optimizer/packed_keys.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "plan/aggregate_slots.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "types/sql_error.h"

namespace nam::optimizer {
namespace {

namespace lg = plan::logical;
using plan::AggregateFunction;
using plan::Expr;
using plan::Function;
using plan::Op;

bool IsPacked(const Expr& expr) {
  return expr.type.packed();
}
bool AnyPacked(const std::vector<lg::Column>& columns) {
  return std::any_of(columns.begin(), columns.end(), [](const lg::Column& c) { return c.type.packed(); });
}
bool IsNumeric(const Expr& expr) {
  return expr.type.kind == TypeKind::kNumeric;
}

Expr Call(Function function, const Type& type, std::vector<Expr> operands) {
  const int position = operands[0].position;
  Expr call = plan::MakeNode(Op::kFunction, type, position, std::move(operands));
  call.index = static_cast<int>(function);
  return call;
}

/// An interval's span, a numeric's key.
__int128 KeyNumber(const Value& value) {
  return value.type.kind == TypeKind::kNumeric ? NumericKey(value.unpacked()) : SpanOf(value.interval());
}
Expr NumberExpr(Expr packed) {
  const Type type = Type::Decimal(0);
  if (!plan::IsLiteral(packed)) {
    const Function key = IsNumeric(packed) ? Function::kNumericKey : Function::kIntervalSpan;
    return Call(key, type, {std::move(packed)});
  }
  const Value& value = packed.literal;
  return plan::MakeLiteral(value.null ? Value::Null(type) : Value::Decimal(KeyNumber(value), 0),
                           packed.position);
}
Expr OrderOf(Expr packed) {
  const Function order = IsNumeric(packed) ? Function::kNumericOrder : Function::kIntervalOrder;
  return Call(order, Type::Bytes(), {std::move(packed)});
}
Expr OfOrder(const Type& type, Expr order) {
  const bool numeric = type.kind == TypeKind::kNumeric;
  return Call(numeric ? Function::kNumericOfOrder : Function::kIntervalOfOrder, type, {std::move(order)});
}

/// The replacement of a packed value as a key.
enum class Key : uint8_t {
  kNumber,  // equal values are one
  kBits,    // only identical values are one
};
Type KeyType(Key key) {
  return key == Key::kNumber ? Type::Decimal(0) : Type::Bytes();
}
Expr KeyOf(Key key, Expr packed) {
  return key == Key::kNumber ? NumberExpr(std::move(packed)) : OrderOf(std::move(packed));
}

/// Makes comparisons of packed values compare their keys.
void CompareKeys(Key key, Expr& e) {
  for (Expr& child : e.children) CompareKeys(key, child);
  const bool compares = (e.op >= Op::kEqual && e.op <= Op::kGreaterEqual) || e.op == Op::kIn ||
                        e.op == Op::kIsNull;  // so that IS NOT DISTINCT FROM is still recognized
  if (!compares || !IsPacked(e.children[0])) return;
  for (Expr& child : e.children) {
    if (IsPacked(child)) child = KeyOf(key, std::move(child));
  }
}

/// Replaces a node's columns: a Project above restores the old ones.
class Replacement {
 public:
  explicit Replacement(lg::Query& query) : query_(query) {}

  lg::Column NewColumn(const Type& type) {
    if (relation_ < 0) relation_ = query_.relations++;
    return {{relation_, next_++}, "", type, true};
  }
  /// Computes the column from the current ones.
  void Compute(const lg::Column& column, Expr expr) { computed_.emplace_back(column.ref, std::move(expr)); }

  /// `node` has its new columns; adds the Project that restores the old ones.
  void Finish(std::vector<lg::Column> before, lg::NodePtr& node) {
    lg::Project project;
    for (const lg::Column& column : before) {
      const auto own = std::find_if(computed_.begin(), computed_.end(),
                                    [&](const auto& computed) { return computed.first == column.ref; });
      project.outputs.push_back(own != computed_.end() ? own->second : lg::MakeColumn(column));
    }
    node = lg::MakeNode(std::move(project), std::move(before), std::move(node));
  }

 private:
  lg::Query& query_;
  int relation_ = -1, next_ = 0;
  std::vector<std::pair<plan::ColumnRef, Expr>> computed_;
};

bool NeedsParts(const lg::AggregateCall& call) {
  if (call.long_sum) return true;
  switch (call.function) {
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
    case AggregateFunction::kSum:
    case AggregateFunction::kAverage:
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp:
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp:
      return IsPacked(call.argument);
    default:
      return false;
  }
}

/// The same aggregate over another argument.
lg::AggregateCall Of(const lg::AggregateCall& call, AggregateFunction function, Expr argument,
                     const Type& type) {
  lg::AggregateCall out = call;
  out.function = function;
  out.argument = std::move(argument);
  out.type = type;
  out.long_sum = false;
  return out;
}

/// The aggregates from which one of packed values is computed, and how.
struct Parts {
  std::vector<lg::AggregateCall> calls;
  std::vector<lg::Column> columns;  // their results
  Expr result;
};

/// What several parts read, computed once for each row, below the aggregation.
class ComputedArguments {
 public:
  explicit ComputedArguments(lg::Query& query) : replacement_(query) {}

  /// The expression as a column, unless it needs no computation.
  Expr Once(Expr e) {
    if (e.op == Op::kColumn || plan::IsConstant(e)) return e;
    const auto same = [&](const Expr& output) { return plan::SameExpr(output, e); };
    const auto known = std::find_if(outputs_.begin(), outputs_.end(), same);
    const auto at = static_cast<size_t>(known - outputs_.begin());
    if (known == outputs_.end()) {
      columns_.push_back(replacement_.NewColumn(e.type));
      outputs_.push_back(std::move(e));
    }
    return lg::MakeColumn(columns_[at]);
  }

  /// Likewise the argument, of the rows alone that FILTER selects.
  void Compute(lg::AggregateCall& call) {
    if (call.filter.has_value() && call.argument.op != Op::kColumn && !plan::IsConstant(call.argument)) {
      const Type type = call.argument.type;
      call.argument =
          plan::MakeNode(Op::kCase, type, -1,
                         {*call.filter, std::move(call.argument), plan::MakeLiteral(Value::Null(type), -1)});
    }
    call.argument = Once(std::move(call.argument));
  }

  /// Adds the columns to the rows of `input`.
  void AddTo(lg::NodePtr& input) {
    if (outputs_.empty()) return;
    lg::Project project;
    std::vector<lg::Column> columns = input->columns;
    for (const lg::Column& column : columns) project.outputs.push_back(lg::MakeColumn(column));
    std::move(outputs_.begin(), outputs_.end(), std::back_inserter(project.outputs));
    columns.insert(columns.end(), columns_.begin(), columns_.end());
    input = lg::MakeNode(std::move(project), std::move(columns), std::move(input));
  }

 private:
  Replacement replacement_;
  std::vector<Expr> outputs_;
  std::vector<lg::Column> columns_;
};

/// Adds the calls of one aggregate's parts.
class PartsBuilder {
 public:
  PartsBuilder(const lg::AggregateCall& call, Replacement& replacement)
      : call_(call), replacement_(replacement) {}

  absl::StatusOr<Parts> Build() && {
    const AggregateFunction function = call_.function;
    if (function == AggregateFunction::kMin || function == AggregateFunction::kMax) {
      parts_.result = OfOrder(call_.type, Add(function, OrderOf(call_.argument), Type::Bytes()));
    } else if (call_.distinct && call_.long_sum) {
      parts_.result = OfDistinctDecimals();
    } else if (call_.distinct) {
      return ToStatus({.message = "sum, avg and variance of distinct intervals and numerics with grouping "
                                  "sets are not supported",
                       .hint = "take them of EXTRACT(EPOCH FROM …), or of a CAST to decimal(p, s)",
                       .sqlstate = sqlstate::kNotSupported});
    } else if (call_.long_sum) {
      parts_.result = OfDecimals();
    } else if (IsNumeric(call_.argument)) {
      parts_.result = OfNumerics();
    } else {
      parts_.result = OfIntervals();
    }
    return std::move(parts_);
  }

 private:
  Expr Add(AggregateFunction function, Expr argument, const Type& type) {
    parts_.calls.push_back(Of(call_, function, std::move(argument), type));
    parts_.columns.push_back(replacement_.NewColumn(type));
    return lg::MakeColumn(parts_.columns.back());
  }

  Expr OfIntervals() {
    std::vector<Expr> sums;
    for (const Function part : {Function::kIntervalMonths, Function::kIntervalDays, Function::kIntervalTime})
      sums.push_back(
          Add(AggregateFunction::kSum, Call(part, Type::Integer(), {call_.argument}), Type::Integer()));
    Expr sum = Call(Function::kIntervalOfParts, Type::Interval(), std::move(sums));
    if (call_.function == AggregateFunction::kSum) return sum;
    Expr count = Add(AggregateFunction::kCount, call_.argument, Type::Integer());
    return Call(Function::kIntervalQuotient, Type::Interval(),
                {std::move(sum), plan::MakeNode(Op::kCast, Type::Double(), -1, {std::move(count)})});
  }

  /// Beside grouping sets: more than 38 digits of a sum are an error.
  Expr OfDistinctDecimals() {
    if (call_.function == AggregateFunction::kAverage)
      return Add(call_.function, call_.argument, Type::Numeric());
    return plan::MakeNode(Op::kCast, Type::Numeric(), -1,
                          {Add(call_.function, call_.argument, call_.argument.type)});
  }

  Expr OfDecimals() {
    std::vector<Expr> operands;
    AddLimbs(Function::kDecimalLimb, kDecimalLimbs, operands);
    operands.push_back(plan::MakeLiteral(Value::Integer(call_.argument.type.scale), -1));
    if (call_.function == AggregateFunction::kSum)
      return Call(Function::kDecimalOfLimbs, Type::Numeric(), std::move(operands));
    operands.push_back(Add(AggregateFunction::kCount, call_.argument, Type::Integer()));
    return Call(Function::kDecimalAverage, Type::Numeric(), std::move(operands));
  }

  void AddLimbs(Function limb, int limbs, std::vector<Expr>& sums) {
    for (int i = 0; i < limbs; ++i) {
      Expr which = plan::MakeLiteral(Value::Integer(i), -1);
      sums.push_back(Add(AggregateFunction::kSum,
                         Call(limb, Type::Decimal(0), {call_.argument, std::move(which)}), Type::Decimal(0)));
    }
  }

  static Function ResultOf(AggregateFunction function) {
    switch (function) {
      case AggregateFunction::kSum:
        return Function::kNumericOfLimbs;
      case AggregateFunction::kAverage:
        return Function::kNumericAverage;
      case AggregateFunction::kVarPop:
        return Function::kNumericVarPop;
      case AggregateFunction::kVarSamp:
        return Function::kNumericVarSamp;
      case AggregateFunction::kStddevPop:
        return Function::kNumericStddevPop;
      default:
        return Function::kNumericStddevSamp;
    }
  }

  /// Sums of limbs are exact and in no order, as sums of whole numbers are.
  Expr OfNumerics() {
    const Function result = ResultOf(call_.function);
    std::vector<Expr> operands;
    AddLimbs(Function::kNumericLimb, kNumericLimbs, operands);
    if (result >= Function::kNumericVarPop)
      AddLimbs(Function::kNumericSquareLimb, kNumericSquareLimbs, operands);
    operands.push_back(Add(AggregateFunction::kMax,
                           Call(Function::kNumericScale, Type::Integer(), {call_.argument}),
                           Type::Integer()));
    if (result != Function::kNumericOfLimbs)
      operands.push_back(Add(AggregateFunction::kCount, call_.argument, Type::Integer()));
    return Call(result, Type::Numeric(), std::move(operands));
  }

  const lg::AggregateCall& call_;
  Replacement& replacement_;
  Parts parts_;
};

absl::StatusOr<Parts> PartsOf(lg::AggregateCall call, Replacement& replacement, ComputedArguments& computed) {
  const bool one_part = call.function == AggregateFunction::kMin || call.function == AggregateFunction::kMax;
  if (!one_part) computed.Compute(call);
  return PartsBuilder(call, replacement).Build();
}

class Rewriting {
 public:
  Rewriting(lg::Query& query, Key key) : query_(query), key_(key) {}

  absl::Status Visit(lg::NodePtr& node) {
    for (lg::NodePtr& input : node->inputs) NAM_RETURN_IF_ERROR(Visit(input));
    lg::ForExpressions(*node, [this](Expr& e) { CompareKeys(key_, e); });
    if (auto* sort = node->As<lg::Sort>()) Keys(sort->keys);
    if (auto* limit = node->As<lg::Limit>()) Keys(limit->ties);
    if (auto* distinct = node->As<lg::Distinct>()) Distinct(*node, *distinct);
    if (node->As<lg::SetOperation>() != nullptr) return SetOperation(node);
    if (node->As<lg::Aggregate>() != nullptr) return Aggregate(node);
    if (node->As<lg::Window>() != nullptr) return Window(node);
    return absl::OkStatus();
  }

 private:
  void Keys(std::vector<Expr>& keys) const {
    for (Expr& key : keys) {
      if (IsPacked(key)) key = KeyOf(key_, std::move(key));
    }
  }
  void Keys(std::vector<plan::OrderKey>& keys) const {
    for (plan::OrderKey& key : keys) {
      if (IsPacked(key.expr)) key.expr = KeyOf(key_, std::move(key.expr));
    }
  }

  void Distinct(const lg::Node& node, lg::Distinct& distinct) const {
    Keys(distinct.order);
    if (distinct.on.empty() && AnyPacked(node.columns)) {
      for (const lg::Column& column : node.columns) distinct.on.push_back(lg::MakeColumn(column));
    }
    Keys(distinct.on);
  }

  absl::Status Aggregate(lg::NodePtr& node) {
    auto& aggregate = *node->As<lg::Aggregate>();
    const bool keys =
        std::any_of(aggregate.keys.begin(), aggregate.keys.end(), [](const Expr& e) { return IsPacked(e); });
    Replacement replacement(query_);
    ComputedArguments computed(query_);
    const std::vector<lg::Column> before = node->columns;
    const size_t first_call = aggregate.keys.size(), calls = aggregate.aggregates.size();
    std::vector<lg::AggregateCall> now;
    std::vector<lg::Column> of_keys, of_calls;
    for (size_t k = 0; k < first_call; ++k) {
      if (!IsPacked(aggregate.keys[k])) {
        of_keys.push_back(before[k]);
        continue;
      }
      aggregate.keys[k] = computed.Once(std::move(aggregate.keys[k]));
      // One of the group's values; none in a grouping set without the key.
      now.push_back({.function = AggregateFunction::kMin,
                     .argument = OrderOf(aggregate.keys[k]),
                     .type = Type::Bytes()});
      of_calls.push_back(replacement.NewColumn(Type::Bytes()));
      aggregate.keys[k] = KeyOf(key_, std::move(aggregate.keys[k]));
      of_keys.push_back(replacement.NewColumn(KeyType(key_)));
      Expr missing = plan::MakeNode(Op::kIsNull, Type::Bool(), -1, {lg::MakeColumn(of_keys.back())});
      const Type type = before[k].type;
      Expr shown = plan::MakeNode(Op::kCase, type, -1,
                                  {std::move(missing), plan::MakeLiteral(Value::Null(type), -1),
                                   OfOrder(type, lg::MakeColumn(of_calls.back()))});
      replacement.Compute(before[k], std::move(shown));
    }
    bool changed = keys;
    for (size_t i = 0; i < calls; ++i) {
      lg::AggregateCall& call = aggregate.aggregates[i];
      const lg::Column& result = before[first_call + i];
      if (NeedsParts(call)) {
        NAM_ASSIGN_OR_RETURN(Parts parts, PartsOf(call, replacement, computed));
        std::move(parts.calls.begin(), parts.calls.end(), std::back_inserter(now));
        of_calls.insert(of_calls.end(), parts.columns.begin(), parts.columns.end());
        replacement.Compute(result, std::move(parts.result));
        changed = true;
        continue;
      }
      const bool counts = call.distinct && plan::ArgumentsOf(call.function) > 0 && IsPacked(call.argument);
      if (counts) call.argument = KeyOf(key_, std::move(call.argument));
      now.push_back(std::move(call));
      of_calls.push_back(result);
    }
    aggregate.aggregates = std::move(now);
    if (!changed) return absl::OkStatus();
    computed.AddTo(node->inputs[0]);
    std::vector<lg::Column> columns = std::move(of_keys);
    columns.insert(columns.end(), of_calls.begin(), of_calls.end());
    columns.insert(columns.end(), before.begin() + static_cast<std::ptrdiff_t>(first_call + calls),
                   before.end());
    node->columns = std::move(columns);
    lg::DeriveColumns(*node);
    replacement.Finish(before, node);
    return absl::OkStatus();
  }

  absl::Status Window(lg::NodePtr& node) {
    auto& window = *node->As<lg::Window>();
    Keys(window.partition);
    Keys(window.order);
    const auto needs = [](const lg::WindowCall& call) {
      return call.function == lg::WindowFunction::kAggregate && NeedsParts(call.aggregate);
    };
    if (std::none_of(window.calls.begin(), window.calls.end(), needs)) return absl::OkStatus();
    Replacement replacement(query_);
    ComputedArguments computed(query_);
    const std::vector<lg::Column> before = node->columns;
    std::vector<lg::WindowCall> now;
    for (lg::WindowCall& call : window.calls) {
      if (!needs(call)) {
        now.push_back(std::move(call));
        continue;
      }
      NAM_ASSIGN_OR_RETURN(Parts parts, PartsOf(call.aggregate, replacement, computed));
      for (size_t i = 0; i < parts.calls.size(); ++i) {
        lg::WindowCall& of_part = now.emplace_back(call);
        of_part.aggregate = std::move(parts.calls[i]);
        of_part.result = parts.columns[i];
      }
      replacement.Compute(call.result, std::move(parts.result));
    }
    window.calls = std::move(now);
    computed.AddTo(node->inputs[0]);
    lg::DeriveColumns(*node);
    replacement.Finish(before, node);
    return absl::OkStatus();
  }

  /// UNION is DISTINCT over UNION ALL. INTERSECT and EXCEPT group all rows and count those of either side.
  absl::Status SetOperation(lg::NodePtr& node) {
    auto& set = *node->As<lg::SetOperation>();
    using Kind = lg::SetOperation::Kind;
    if (!AnyPacked(node->columns) || (set.kind == Kind::kUnion && set.all)) return absl::OkStatus();
    if (set.kind == Kind::kUnion) {
      set.all = true;
      lg::DeriveColumns(*node);
      node = lg::MakeNode(lg::Distinct(), {}, std::move(node));
      Distinct(*node, *node->As<lg::Distinct>());
      return absl::OkStatus();
    }
    const Kind kind = set.kind;
    const bool all = set.all;
    const std::vector<lg::Column> before = node->columns;
    Replacement names(query_);
    std::vector<lg::Column> columns;  // of both sides, then the counts of rows of each
    for (const lg::Column& column : before) columns.push_back(names.NewColumn(column.type));
    for (int side = 0; side < 2; ++side) columns.push_back(names.NewColumn(Type::Integer()));
    std::vector<lg::NodePtr> sides;
    for (size_t side = 0; side < 2; ++side) {
      Replacement own(query_);
      lg::Project project;
      std::vector<lg::Column> of_side;
      for (const lg::Column& column : node->input(side).columns) {
        project.outputs.push_back(lg::MakeColumn(column));
        of_side.push_back(own.NewColumn(column.type));
      }
      for (size_t counted = 0; counted < 2; ++counted) {
        project.outputs.push_back(plan::MakeLiteral(Value::Integer(counted == side ? 1 : 0), -1));
        of_side.push_back(own.NewColumn(Type::Integer()));
      }
      sides.push_back(lg::MakeNode(std::move(project), std::move(of_side), std::move(node->inputs[side])));
    }
    lg::NodePtr both =
        lg::MakeNode(lg::SetOperation{Kind::kUnion, true}, columns, std::move(sides[0]), std::move(sides[1]));
    lg::Aggregate groups;
    std::vector<lg::Column> of_groups = before;
    for (size_t i = 0; i < before.size(); ++i) groups.keys.push_back(lg::MakeColumn(columns[i]));
    std::vector<Expr> counts;
    for (size_t side = 0; side < 2; ++side) {
      groups.aggregates.push_back({.function = AggregateFunction::kSum,
                                   .argument = lg::MakeColumn(columns[before.size() + side]),
                                   .type = Type::Integer()});
      of_groups.push_back(names.NewColumn(Type::Integer()));
      counts.push_back(lg::MakeColumn(of_groups.back()));
    }
    node = lg::MakeNode(std::move(groups), of_groups, std::move(both));
    NAM_RETURN_IF_ERROR(Aggregate(node));
    Keep(kind, all, counts, names, node);
    names.Finish(before, node);
    return absl::OkStatus();
  }

  /// Keeps as many rows of each group as INTERSECT or EXCEPT has.
  static void Keep(lg::SetOperation::Kind kind, bool all, const std::vector<Expr>& counts, Replacement& names,
                   lg::NodePtr& node) {
    const auto compare = [](Op op, const Expr& a, const Expr& b) {
      return plan::MakeNode(op, Type::Bool(), -1, {a, b});
    };
    const Expr &left = counts[0], &right = counts[1];
    const Expr zero = plan::MakeLiteral(Value::Integer(0), -1),
               one = plan::MakeLiteral(Value::Integer(1), -1);
    const bool both = kind == lg::SetOperation::Kind::kIntersect;
    if (!all) {
      node = lg::MakeFilter(std::move(node), {compare(Op::kGreater, left, zero),
                                              compare(both ? Op::kGreater : Op::kEqual, right, zero)});
      return;
    }
    lg::Series series{.first = one, .step = one, .result = names.NewColumn(Type::Integer())};
    series.last =
        both ? plan::MakeNode(Op::kCase, Type::Integer(), -1, {compare(Op::kLess, left, right), left, right})
             : plan::MakeNode(Op::kSubtract, Type::Integer(), -1, {left, right});
    node = lg::MakeNode(std::move(series), {}, std::move(node));
  }

  lg::Query& query_;
  const Key key_;
};

absl::Status RewritePacked(lg::Query& query, Key key) {
  NAM_RETURN_IF_ERROR(Rewriting(query, key).Visit(query.root));
  lg::DeriveAllColumns(*query.root);
  return absl::OkStatus();
}

}  // namespace

absl::Status UseKeysOfPackedValues(lg::Query& query) {
  return RewritePacked(query, Key::kNumber);
}

absl::Status UseBitsOfPackedValues(lg::Query& query) {
  return RewritePacked(query, Key::kBits);
}

}  // namespace nam::optimizer
