#include "plan/aggregate_slots.h"

#include <iterator>
#include <limits>
#include <vector>

#include "base/status_macros.h"
#include "plan/plan_error.h"

namespace nam::plan {
namespace {

constexpr Bounds kCounts{0, std::numeric_limits<int64_t>::max(), true};
constexpr Bounds kWords{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), true};
constexpr size_t kSumWords = 3, kProductWords = 5;
constexpr size_t kSlotsOfReals = 3, kSlotsOfTwoReals = 6;

absl::Status Ok(bool right, const char* otherwise) {
  return right ? absl::OkStatus() : BadPlan(otherwise);
}

/// Checks functions of two arguments: their arguments and result.
absl::Status CheckPair(const Type& a, const Type& b, const Type& to) {
  const bool exact = a.numeric() && b.numeric(), real = a == Type::Double() && b == Type::Double();
  return Ok((exact || real) && to == Type::Double(),
            "a function of pairs of no numbers, or that is no double");
}

size_t Products(AggregateFunction function) {
  return ArgumentsOf(function) == 2 ? 3 : 1;
}

}  // namespace

size_t ArgumentsOf(AggregateFunction function) {
  switch (function) {
    case AggregateFunction::kCountRows:
      return 0;
    case AggregateFunction::kCovarPop:
    case AggregateFunction::kCovarSamp:
    case AggregateFunction::kCorr:
    case AggregateFunction::kStringAggregate:
    case AggregateFunction::kRegrAvgX:
    case AggregateFunction::kRegrAvgY:
    case AggregateFunction::kRegrSxx:
    case AggregateFunction::kRegrSyy:
    case AggregateFunction::kRegrSxy:
    case AggregateFunction::kRegrSlope:
    case AggregateFunction::kRegrIntercept:
    case AggregateFunction::kRegrR2:
      return 2;
    default:
      return 1;
  }
}

bool HasMoments(AggregateFunction function) {
  switch (function) {
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp:
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp:
      return true;
    default:
      return ArgumentsOf(function) == 2 && function != AggregateFunction::kStringAggregate;
  }
}

bool IgnoresRepeats(AggregateFunction function) {
  switch (function) {
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
    case AggregateFunction::kBoolAnd:
    case AggregateFunction::kBoolOr:
    case AggregateFunction::kBitAnd:
    case AggregateFunction::kBitOr:
      return true;
    default:
      return false;
  }
}

const char* NameOf(AggregateFunction function) {
  static constexpr const char* kNames[] = {
      "count(*)",    "count",          "sum",        "min",      "max",
      "avg",         "count distinct", "var_pop",    "var_samp", "stddev_pop",
      "stddev_samp", "bool_and",       "bool_or",    "bit_and",  "bit_or",
      "bit_xor",     "covar_pop",      "covar_samp", "corr",     "string_agg",
      "regr_avgx",   "regr_avgy",      "regr_sxx",   "regr_syy", "regr_sxy",
      "regr_slope",  "regr_intercept", "regr_r2"};
  static_assert(std::size(kNames) == static_cast<size_t>(kLastAggregate) + 1);
  return kNames[static_cast<size_t>(function)];
}

bool IsDistinct(const Aggregate& aggregate) {
  return aggregate.distinct || aggregate.function == AggregateFunction::kCountDistinct;
}

absl::Status CheckCall(AggregateFunction function, std::span<const Type> arguments, const Type& to) {
  if (arguments.size() != ArgumentsOf(function))
    return BadPlan("an aggregate of another number of arguments");
  const Type from = arguments.empty() ? Type::Null() : arguments[0];
  switch (function) {
    case AggregateFunction::kCountRows:
    case AggregateFunction::kCount:
    case AggregateFunction::kCountDistinct:
      return Ok(to == Type::Integer(), "a count that is no integer");
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      return Ok(to == from && to.kind != TypeKind::kBool, "min or max of another type");
    case AggregateFunction::kSum:
      return Ok(to == from && (to.numeric() || to.real()), "a sum of no numbers, or of another type");
    case AggregateFunction::kAverage:
      if (from.real()) return Ok(to == Type::Double(), "an average of floating point of another type");
      return Ok(from.numeric() && to == Type::Numeric(),
                "an average of numbers of no known scale, or that is no numeric");
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp:
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp:
      if (from == Type::Double()) return Ok(to == from, "a variance of floating point of another type");
      return Ok(from.numeric() && to == Type::Numeric(),
                "a variance of numbers of no known scale, or that is no numeric");
    case AggregateFunction::kCovarPop:
    case AggregateFunction::kCovarSamp:
    case AggregateFunction::kCorr:
    case AggregateFunction::kRegrAvgX:
    case AggregateFunction::kRegrAvgY:
    case AggregateFunction::kRegrSxx:
    case AggregateFunction::kRegrSyy:
    case AggregateFunction::kRegrSxy:
    case AggregateFunction::kRegrSlope:
    case AggregateFunction::kRegrIntercept:
    case AggregateFunction::kRegrR2:
      return CheckPair(from, arguments[1], to);
    case AggregateFunction::kBoolAnd:
    case AggregateFunction::kBoolOr:
      return Ok(from == Type::Bool() && to == from, "bool_and or bool_or of something else");
    case AggregateFunction::kBitAnd:
    case AggregateFunction::kBitOr:
    case AggregateFunction::kBitXor:
      return Ok(from.kind == TypeKind::kInteger && to == from, "an aggregate of bits of something else");
    case AggregateFunction::kStringAggregate:
      return Ok(from.kind == TypeKind::kString && arguments[1].kind == TypeKind::kString &&
                    to.kind == TypeKind::kString,
                "string_agg of something else than text");
  }
  return BadPlan("an unknown aggregate");
}

absl::Status CheckAggregate(const Aggregate& aggregate) {
  const size_t count = ArgumentsOf(aggregate.function);
  // Only arguments are ever evaluated, but walks over expressions reach the others.
  const Expr* const exprs[] = {&aggregate.argument, &aggregate.second};
  std::vector<Type> types;
  for (size_t i = 0; i < std::size(exprs); ++i) {
    if (i < count) {
      types.push_back(exprs[i]->type);
    } else if (!exprs[i]->children.empty() || exprs[i]->op != Op::kLiteral) {
      return BadPlan("an aggregate of something that it does not take");
    }
  }
  NAM_RETURN_IF_ERROR(CheckCall(aggregate.function, types, aggregate.type));
  if (aggregate.function == AggregateFunction::kStringAggregate)
    return BadPlan("string_agg without an order");
  if (!aggregate.distinct) return absl::OkStatus();
  switch (aggregate.function) {
    case AggregateFunction::kSum:
    case AggregateFunction::kAverage:
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp:
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp:
    case AggregateFunction::kBitXor:
      return absl::OkStatus();
    default:
      return BadPlan("an aggregate of distinct values that does not know them");
  }
}

Slot AggregateResult(AggregateFunction function, const Type& type, std::span<const Slot> arguments) {
  switch (function) {
    case AggregateFunction::kCountRows:
    case AggregateFunction::kCount:
    case AggregateFunction::kCountDistinct:
      return {type, false, kCounts};
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      return {type, true, arguments[0].bounds};
    case AggregateFunction::kBitAnd:
    case AggregateFunction::kBitOr:
    case AggregateFunction::kBitXor:
      return {type, true, kWords};
    default:
      return {type, true, {}};
  }
}

size_t StateSlotsOf(const Aggregate& aggregate) {
  if (IsDistinct(aggregate)) return 0;
  if (HasMoments(aggregate.function)) {
    const bool two = ArgumentsOf(aggregate.function) > 1;
    if (aggregate.argument.type.real()) return two ? kSlotsOfTwoReals : kSlotsOfReals;
    return 1 + kSumWords * ArgumentsOf(aggregate.function) + kProductWords * Products(aggregate.function);
  }
  return aggregate.function == AggregateFunction::kAverage ? 3
         : aggregate.function == AggregateFunction::kSum   ? 2
                                                           : 1;
}

Schema StatesOf(std::span<const Slot> keys, std::span<const Aggregate> aggregates,
                std::span<const Slot> arguments) {
  Schema out(keys.begin(), keys.end());
  const Slot count{Type::Integer(), false, kCounts};
  for (size_t a = 0; a < aggregates.size(); ++a) {
    const AggregateFunction function = aggregates[a].function;
    if (IsDistinct(aggregates[a])) continue;
    // Floating point has no bounds: its words are the sum and its rounding error.
    const Slot word{arguments[a].type, false, arguments[a].type.real() ? Bounds{} : kWords};
    switch (function) {
      case AggregateFunction::kCountRows:
      case AggregateFunction::kCount:
        out.push_back(count);
        break;
      case AggregateFunction::kSum:
      case AggregateFunction::kAverage:
        out.push_back({word.type, true, word.bounds});
        out.push_back(word);
        if (function == AggregateFunction::kAverage) out.push_back(count);
        break;
      case AggregateFunction::kMin:
      case AggregateFunction::kMax:
        out.push_back({arguments[a].type, true, arguments[a].bounds});
        break;
      case AggregateFunction::kBoolAnd:
      case AggregateFunction::kBoolOr:
        out.push_back({Type::Bool(), true, {}});
        break;
      case AggregateFunction::kBitAnd:
      case AggregateFunction::kBitOr:
      case AggregateFunction::kBitXor:
        out.push_back({arguments[a].type, true, kWords});
        break;
      default:
        out.push_back(count);
        out.insert(out.end(), StateSlotsOf(aggregates[a]) - 1, word);
    }
  }
  if (out.empty()) out.push_back({Type::Integer(), false, {0, 0, true}});
  return out;
}

}  // namespace nam::plan
