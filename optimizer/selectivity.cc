#include "optimizer/selectivity.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/column_share.h"

namespace nam::optimizer {
namespace {

using plan::ColumnRef;
using plan::Expr;
using plan::Op;

/// Without statistics: comparisons of text, of expressions, of columns with each other.
constexpr double kUnknown = 1.0 / 3;
constexpr double kLike = 0.1;
/// No condition is assumed to leave less, so that products of estimates stay ordered.
constexpr double kLeast = 0.001;

/// A range of a table's rows in the order of a column: from the share below it to the share up to it.
struct Range {
  double low = 0;
  double high = 1;
};

const StoredColumn* Find(const StoredColumns& stored, ColumnRef ref) {
  const auto found = stored.find(ref);
  return found == stored.end() ? nullptr : &found->second;
}

/// The condition as a range of a column's values, if the statistics cover it.
std::optional<std::pair<ColumnRef, Range>> RangeOf(const StoredColumns& stored, const Expr& e) {
  if (e.op != Op::kLess && e.op != Op::kLessEqual && e.op != Op::kGreater && e.op != Op::kGreaterEqual)
    return std::nullopt;
  const bool column_first = e.children[0].op == Op::kColumn;
  const Expr& column = e.children[column_first ? 0 : 1];
  const Expr& literal = e.children[column_first ? 1 : 0];
  if (column.op != Op::kColumn || literal.op != Op::kLiteral || literal.literal.null) return std::nullopt;
  const bool less = (e.op == Op::kLess || e.op == Op::kLessEqual) == column_first;
  const bool equal = e.op == Op::kLessEqual || e.op == Op::kGreaterEqual;
  const StoredColumn* const of = Find(stored, column.column);
  if (of == nullptr) return std::nullopt;
  const std::optional<double> share = ShareBelow(*of->column, of->rows, literal.literal, less == equal);
  if (!share.has_value()) return std::nullopt;
  return std::make_pair(column.column,
                        less ? Range{0, *share} : Range{*share, ShareNotNull(*of->column, of->rows)});
}

double One(const StoredColumns& stored, const Expr& e);

void Flatten(const Expr& e, std::vector<const Expr*>& conjuncts) {
  if (e.op != Op::kAnd) {
    conjuncts.push_back(&e);
    return;
  }
  for (const Expr& child : e.children) Flatten(child, conjuncts);
}

double All(const StoredColumns& stored, const std::vector<const Expr*>& conjuncts) {
  double share = 1;
  std::map<ColumnRef, Range> ranges;
  for (const Expr* e : conjuncts) {
    const auto range = RangeOf(stored, *e);
    if (!range) {
      share *= One(stored, *e);
      continue;
    }
    Range& all = ranges[range->first];
    all.low = std::max(all.low, range->second.low);
    all.high = std::min(all.high, range->second.high);
  }
  for (const auto& [column, range] : ranges) share *= std::clamp(range.high - range.low, kLeast, 1.0);
  return share;
}

/// The share of rows whose text is LIKE the pattern: of those with its prefix.
std::optional<double> OfPattern(const proto::Column& column, uint64_t rows, const Value& pattern) {
  const std::string& text = pattern.text;
  const size_t wild = text.find_first_of("%_\\");
  if (wild == std::string::npos) return ShareOf(column, rows, pattern);
  return wild == 0 ? std::nullopt : ShareWithPrefix(column, rows, text.substr(0, wild));
}

/// A condition on a column and constants.
double OfColumn(const StoredColumns& stored, const Expr& e, ColumnRef ref) {
  const StoredColumn* const of = Find(stored, ref);
  if (of == nullptr) return e.op == Op::kLike ? kLike : kUnknown;
  const proto::Column& column = *of->column;
  const uint64_t rows = of->rows;
  const double not_null = ShareNotNull(column, rows);
  const double one = not_null / static_cast<double>(std::max<uint64_t>(column.distinct(), 1));
  // A value that cannot exist is assumed to have half a row, so that estimates stay ordered.
  const double least = 0.5 / static_cast<double>(std::max<uint64_t>(rows, 1));
  const auto equal = [&](const Expr& value) {
    const bool known = value.op == Op::kLiteral && !value.literal.null;
    return known ? std::max(ShareOf(column, rows, value.literal), least) : one;
  };
  switch (e.op) {
    case Op::kEqual:
    case Op::kNotEqual: {
      const double share = equal(e.children[e.children[0].op == Op::kColumn ? 1 : 0]);
      return e.op == Op::kEqual ? share : std::max(not_null - share, 0.0);
    }
    case Op::kIn: {
      double share = 0;
      for (size_t i = 1; i < e.children.size(); ++i) share += equal(e.children[i]);
      return std::min(share, not_null);
    }
    case Op::kIsNull:
      return 1 - not_null;
    case Op::kLike:
      return OfPattern(column, rows, e.literal).value_or(kLike);
    default:
      return kUnknown;
  }
}

double One(const StoredColumns& stored, const Expr& e) {
  switch (e.op) {
    case Op::kAnd: {
      std::vector<const Expr*> conjuncts;
      Flatten(e, conjuncts);
      return All(stored, conjuncts);
    }
    case Op::kOr: {
      double none = 1;
      for (const Expr& child : e.children) none *= 1 - One(stored, child);
      return 1 - none;
    }
    case Op::kNot:
      return 1 - One(stored, e.children[0]);
    case Op::kLiteral:
      return !e.literal.null && e.literal.number != 0 ? 1 : 0;
    default:
      break;
  }
  if (RangeOf(stored, e)) return All(stored, {&e});
  const Expr* column = nullptr;
  for (const Expr& child : e.children) {
    if (child.op == Op::kColumn) column = column == nullptr ? &child : nullptr;
  }
  return column == nullptr ? kUnknown : OfColumn(stored, e, column->column);
}

}  // namespace

double Selectivity(const StoredColumns& stored, std::span<const Expr> conditions) {
  std::vector<const Expr*> conjuncts;
  for (const Expr& condition : conditions) Flatten(condition, conjuncts);
  return All(stored, conjuncts);
}

}  // namespace nam::optimizer
