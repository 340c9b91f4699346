#include "optimizer/selectivity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "types/wire.h"

namespace nam::optimizer {
namespace {

using plan::ColumnRef;
using plan::Expr;
using plan::Op;
using sql::BoundQuery;

/// Where the statistics say nothing: comparisons of text, of expressions, of columns with each other.
constexpr double kUnknown = 1.0 / 3;
constexpr double kLike = 0.1;
/// No condition is taken to leave less, so that estimates stay in order when they are multiplied.
constexpr double kLeast = 0.001;

/// From the share below it to the share up to it: what a range leaves of a column.
struct Range {
  double low = 0;
  double high = 1;
};

double NotNull(const BoundQuery& query, ColumnRef ref) {
  const auto rows = static_cast<double>(query.tables[static_cast<size_t>(ref.table)].table->rows());
  return rows == 0 ? 1 : 1 - static_cast<double>(ColumnOf(query, ref).nulls()) / rows;
}

/// The share of a column's values below a literal; with `also_it`, up to it.
double ShareBelow(const proto::Column& column, const Value& literal, bool also_it) {
  const double low = static_cast<double>(column.min()), high = static_cast<double>(column.max());
  if (high < low) return 0.5;
  const double unit = std::pow(10.0, ColumnTypeOf(column.type()).scale);
  const double value = static_cast<double>(literal.number) / std::pow(10.0, literal.type.scale) * unit;
  return std::clamp((value - low + (also_it ? 1 : 0)) / (high - low + 1), 0.0, 1.0);
}

/// The condition as a range of a column's values, if it is one that the statistics can judge.
std::optional<std::pair<ColumnRef, Range>> RangeOf(const BoundQuery& query, const Expr& e) {
  if (e.op != Op::kLess && e.op != Op::kLessEqual && e.op != Op::kGreater && e.op != Op::kGreaterEqual)
    return std::nullopt;
  const bool column_first = e.children[0].op == Op::kColumn;
  const Expr& column = e.children[column_first ? 0 : 1];
  const Expr& literal = e.children[column_first ? 1 : 0];
  if (column.op != Op::kColumn || literal.op != Op::kLiteral || literal.literal.null ||
      literal.type.kind == TypeKind::kString) {
    return std::nullopt;
  }
  const bool less = (e.op == Op::kLess || e.op == Op::kLessEqual) == column_first;
  const bool equal = e.op == Op::kLessEqual || e.op == Op::kGreaterEqual;
  const double share = ShareBelow(ColumnOf(query, column.column), literal.literal, less == equal);
  return std::make_pair(column.column, less ? Range{0, share} : Range{share, 1});
}

double One(const BoundQuery& query, const Expr& e);

void Flatten(const Expr& e, std::vector<const Expr*>& conjuncts) {
  if (e.op != Op::kAnd) {
    conjuncts.push_back(&e);
    return;
  }
  for (const Expr& child : e.children) Flatten(child, conjuncts);
}

double All(const BoundQuery& query, const std::vector<const Expr*>& conjuncts) {
  double share = 1;
  std::map<ColumnRef, Range> ranges;
  for (const Expr* e : conjuncts) {
    const auto range = RangeOf(query, *e);
    if (!range) {
      share *= One(query, *e);
      continue;
    }
    Range& all = ranges[range->first];
    all.low = std::max(all.low, range->second.low);
    all.high = std::min(all.high, range->second.high);
  }
  for (const auto& [column, range] : ranges)
    share *= std::clamp(range.high - range.low, kLeast, 1.0) * NotNull(query, column);
  return share;
}

/// A condition on a column and constants.
double OfColumn(const BoundQuery& query, const Expr& e, ColumnRef ref) {
  const double not_null = NotNull(query, ref);
  const double one = 1.0 / static_cast<double>(std::max<uint64_t>(ColumnOf(query, ref).distinct(), 1));
  switch (e.op) {
    case Op::kEqual:
      return one * not_null;
    case Op::kNotEqual:
      return (1 - one) * not_null;
    case Op::kIn:
      return std::min(1.0, one * static_cast<double>(e.children.size() - 1)) * not_null;
    case Op::kIsNull:
      return 1 - not_null;
    case Op::kLike:
      return kLike;
    default:
      return kUnknown;
  }
}

double One(const BoundQuery& query, const Expr& e) {
  switch (e.op) {
    case Op::kAnd: {
      std::vector<const Expr*> conjuncts;
      Flatten(e, conjuncts);
      return All(query, conjuncts);
    }
    case Op::kOr: {
      double none = 1;
      for (const Expr& child : e.children) none *= 1 - One(query, child);
      return 1 - none;
    }
    case Op::kNot:
      return 1 - One(query, e.children[0]);
    case Op::kLiteral:
      return !e.literal.null && e.literal.number != 0 ? 1 : 0;
    default:
      break;
  }
  if (RangeOf(query, e)) return All(query, {&e});
  const Expr* column = nullptr;
  for (const Expr& child : e.children) {
    if (child.op == Op::kColumn) column = column == nullptr ? &child : nullptr;
  }
  return column == nullptr ? kUnknown : OfColumn(query, e, column->column);
}

}  // namespace

const proto::Column& ColumnOf(const BoundQuery& query, ColumnRef ref) {
  return query.tables[static_cast<size_t>(ref.table)].table->columns(ref.column);
}

double Selectivity(const BoundQuery& query, std::span<const Expr> conditions) {
  std::vector<const Expr*> conjuncts;
  for (const Expr& condition : conditions) Flatten(condition, conjuncts);
  return All(query, conjuncts);
}

}  // namespace nam::optimizer
