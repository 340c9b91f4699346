#include "tests/execution/window/window_model.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "types/interval.h"
#include "types/real.h"
#include "types/value.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;
using plan::FrameBound;
using plan::WindowFrame;
using plan::WindowFunction;

/// Below 0: a stands before b.
int CompareRows(const Tuple& a, const Tuple& b, std::span<const OrderSlot> order) {
  for (const OrderSlot& key : order) {
    const Cell &x = a[key.slot], &y = b[key.slot];
    if (x == y) continue;
    if (x.null || y.null) return x.null == key.nulls_first ? -1 : 1;
    return (x < y) != key.descending ? -1 : 1;
  }
  return 0;
}

class Model {
 public:
  Model(const plan::WindowCall& call, const plan::Schema& schema, const std::vector<Tuple>& rows,
        std::span<const OrderSlot> order)
      : call_(call), schema_(schema), rows_(rows), order_(order) {}

  Cell Of(size_t i) const {
    switch (call_.function) {
      case WindowFunction::kAggregate:
        return AggregateOf(Frame(i));
      case WindowFunction::kRowNumber:
        return Place(i);
      case WindowFunction::kRank:
        return Place(Before(i));
      case WindowFunction::kDenseRank: {
        size_t groups = 0;
        for (size_t j = 1; j <= i; ++j) groups += CompareRows(rows_[j - 1], rows_[j], order_) != 0;
        return Place(groups);
      }
      case WindowFunction::kPercentRank:
        return rows_.size() == 1 ? Share(0, 1) : Share(Before(i), rows_.size() - 1);
      case WindowFunction::kCumeDist:
        return Share(Before(i) + Peers(i), rows_.size());
      case WindowFunction::kNtile:
        return Bucket(i);
      case WindowFunction::kLag:
      case WindowFunction::kLead:
        return Neighbour(i);
      default:
        return FrameValue(i);
    }
  }

 private:
  static Cell Place(size_t places) { return Cell::Number(static_cast<int64_t>(places) + 1); }
  const Cell& Argument(size_t row, size_t argument = 0) const {
    return rows_[row][call_.arguments[argument]];
  }
  size_t Before(size_t i) const {
    size_t count = 0;
    for (const Tuple& row : rows_) count += CompareRows(row, rows_[i], order_) < 0;
    return count;
  }
  size_t Peers(size_t i) const {
    size_t count = 0;
    for (const Tuple& row : rows_) count += CompareRows(row, rows_[i], order_) == 0;
    return count;
  }
  /// By long division in decimal digits.
  static Cell Share(size_t part, size_t whole) {
    return Cell::Number(OrderedBits(static_cast<double>(part) / static_cast<double>(whole)));
  }
  Cell Bucket(size_t i) const {
    if (Argument(0).null) return {};
    const auto buckets = static_cast<size_t>(Argument(0).number);
    // Dealt out one by one: how many each bucket gets.
    std::vector<size_t> sizes(buckets);
    for (size_t j = 0; j < rows_.size(); ++j) ++sizes[j % buckets];
    size_t bucket = 0;
    while (i >= sizes[bucket]) i -= sizes[bucket++];
    return Place(bucket);
  }
  Cell Neighbour(size_t i) const {
    __int128 by = 1;
    if (call_.arguments.size() > 1) {
      if (Argument(i, 1).null) return {};
      by = Argument(i, 1).number;
    }
    const __int128 there = call_.function == WindowFunction::kLag ? i - by : i + by;
    if (there >= 0 && there < std::ssize(rows_)) return Argument(static_cast<size_t>(there));
    return call_.arguments.size() > 2 ? Argument(i, 2) : Cell();
  }

  /// Whether row j is at or behind the start of row i's frame, or at or before its end.
  bool Reaches(const FrameBound& bound, size_t i, size_t j, bool start) const {
    using Kind = FrameBound::Kind;
    if (bound.kind == Kind::kUnboundedPreceding || bound.kind == Kind::kUnboundedFollowing) return true;
    const __int128 offset = bound.kind == Kind::kPreceding   ? -bound.offset
                            : bound.kind == Kind::kFollowing ? bound.offset
                                                             : 0;
    __int128 distance = 0;  // of row j from row i
    if (call_.frame.unit == WindowFrame::Unit::kRows) {
      distance = static_cast<__int128>(j) - static_cast<__int128>(i);
    } else if (call_.frame.unit == WindowFrame::Unit::kGroups) {
      for (size_t k = std::min(i, j) + 1; k <= std::max(i, j); ++k)
        distance += CompareRows(rows_[k - 1], rows_[k], order_) != 0;
      if (j < i) distance = -distance;
    } else if (bound.kind == Kind::kCurrentRow) {
      distance = CompareRows(rows_[j], rows_[i], order_);
    } else {
      const Cell &at = rows_[i][order_[0].slot], &there = rows_[j][order_[0].slot];
      // NULLs have no distance: they are where their peers are.
      if (at.null || there.null) {
        const int compared = CompareRows(rows_[j], rows_[i], order_);
        return start ? compared >= 0 : compared <= 0;
      }
      const TypeKind kind = schema_[order_[0].slot].type.kind;
      const bool up = (bound.kind == Kind::kFollowing) != order_[0].descending;
      if (kind == TypeKind::kDate || kind == TypeKind::kTimestamp)
        return Within(at.number, there.number, bound.offset, up, start != order_[0].descending, kind);
      if (kind == TypeKind::kDouble)
        return Within(FromOrderedBits(static_cast<int64_t>(at.number)),
                      FromOrderedBits(static_cast<int64_t>(there.number)),
                      FromOrderedBits(static_cast<int64_t>(bound.offset)), up, start != order_[0].descending);
      distance = order_[0].descending ? at.number - there.number : there.number - at.number;
    }
    return start ? distance >= offset : distance <= offset;
  }
  /// Whether `to` is at or above (`least`), or at or below, `from` moved by the interval.
  static bool Within(__int128 from, __int128 to, __int128 interval, bool up, bool least, TypeKind kind) {
    const int64_t unit = kind == TypeKind::kDate ? kMicrosecondsPerDay : 1;
    const auto limit =
        AddToTimestamp(static_cast<int64_t>(from) * unit, UnpackInterval(interval), up ? 1 : -1);
    if (!limit.ok()) return up != least;  // no timestamp is so far
    return least ? to * unit >= *limit : to * unit <= *limit;
  }
  static bool Within(double from, double to, double distance, bool up, bool least) {
    // NaN is at itself, above all else.
    if (std::isnan(from) || std::isnan(to)) {
      if (std::isnan(from) && std::isnan(to)) return true;
      return std::isnan(to) == least;
    }
    if (std::isinf(distance) && std::isinf(from) && up == (from < 0)) return true;
    const double limit = up ? from + distance : from - distance;
    return least ? to >= limit : to <= limit;
  }
  std::vector<size_t> Frame(size_t i) const {
    std::vector<size_t> out;
    for (size_t j = 0; j < rows_.size(); ++j) {
      if (Reaches(call_.frame.start, i, j, true) && Reaches(call_.frame.end, i, j, false) && !Excluded(i, j))
        out.push_back(j);
    }
    return out;
  }
  bool Excluded(size_t i, size_t j) const {
    using Exclusion = WindowFrame::Exclusion;
    const bool peers = CompareRows(rows_[i], rows_[j], order_) == 0;
    const Exclusion exclusion = call_.frame.exclusion;
    return (exclusion == Exclusion::kCurrentRow && i == j) || (exclusion == Exclusion::kGroup && peers) ||
           (exclusion == Exclusion::kTies && peers && i != j);
  }
  Cell FrameValue(size_t i) const {
    const std::vector<size_t> frame = Frame(i);
    if (call_.function == WindowFunction::kNthValue) {
      const Cell& n = Argument(i, 1);
      if (n.null || n.number > std::ssize(frame)) return {};
      return Argument(frame[static_cast<size_t>(n.number - 1)]);
    }
    if (frame.empty()) return {};
    return Argument(call_.function == WindowFunction::kFirstValue ? frame.front() : frame.back());
  }

  /// above / below at the result's scale, half away from zero; tests keep the numbers small.
  Cell AggregateOf(const std::vector<size_t>& frame) const {
    if (call_.aggregate == AggregateFunction::kCountRows) return Cell::Number(std::ssize(frame));
    std::vector<size_t> rows;
    const bool two = call_.aggregate == AggregateFunction::kCovarPop;
    for (const size_t row : frame) {
      if (!Argument(row).null && !(two && Argument(row, 1).null)) rows.push_back(row);
    }
    if (call_.aggregate == AggregateFunction::kCount) return Cell::Number(std::ssize(rows));
    if (rows.empty()) return {};
    const auto n = static_cast<__int128>(rows.size());
    __int128 sum = 0, squares = 0, other = 0, products = 0;
    int64_t all = -1, any = 0, odd = 0;
    Cell least = Argument(rows[0]), most = least;
    std::string text;
    for (const size_t row : rows) {
      const Cell& cell = Argument(row);
      least = std::min(least, cell);
      most = std::max(most, cell);
      sum += cell.number;
      // Variances are of small numbers; the values of other aggregates wrap.
      const auto unwrapped = static_cast<unsigned __int128>(cell.number);
      squares = static_cast<__int128>(static_cast<unsigned __int128>(squares) + unwrapped * unwrapped);
      all &= static_cast<int64_t>(cell.number);
      any |= static_cast<int64_t>(cell.number);
      odd ^= static_cast<int64_t>(cell.number);
      if (two) other += Argument(row, 1).number, products += cell.number * Argument(row, 1).number;
      if (call_.aggregate != AggregateFunction::kStringAggregate) continue;
      if (row != rows[0] && !Argument(row, 1).null) text += Argument(row, 1).text;
      text += cell.text;
    }
    const int scale = schema_[call_.arguments[0]].type.scale;
    switch (call_.aggregate) {
      case AggregateFunction::kSum:
        return Cell::Number(sum);
      case AggregateFunction::kAverage:
        return Cell::Number(PackNumeric(*DecimalAverage(sum, scale, static_cast<int64_t>(n))));
      case AggregateFunction::kMin:
      case AggregateFunction::kBoolAnd:
        return least;
      case AggregateFunction::kMax:
      case AggregateFunction::kBoolOr:
        return most;
      case AggregateFunction::kBitAnd:
        return Cell::Number(all);
      case AggregateFunction::kBitOr:
        return Cell::Number(any);
      case AggregateFunction::kBitXor:
        return Cell::Number(odd);
      case AggregateFunction::kStringAggregate:
        return Cell::Text(text);
      case AggregateFunction::kVarPop:
        return Cell::Number(
            PackNumeric(*DecimalVariance(sum, squares, scale, static_cast<int64_t>(n), false, false)));
      case AggregateFunction::kVarSamp:
        if (n < 2) return Cell();
        return Cell::Number(
            PackNumeric(*DecimalVariance(sum, squares, scale, static_cast<int64_t>(n), true, false)));
      case AggregateFunction::kCovarPop:
        return Cell::Number(OrderedBits(static_cast<double>(
            static_cast<long double>(n * products - sum * other) / n / n /
            static_cast<long double>(PowerOfTen(scale + schema_[call_.arguments[1]].type.scale)))));
      default:
        NAM_CHECK(false, "the model has no such aggregate");
        return {};
    }
  }

  const plan::WindowCall& call_;
  const plan::Schema& schema_;
  const std::vector<Tuple>& rows_;
  const std::span<const OrderSlot> order_;
};

}  // namespace

bool InOrder(const std::vector<Tuple>& rows, std::span<const OrderSlot> order) {
  for (size_t i = 1; i < rows.size(); ++i) {
    if (CompareRows(rows[i - 1], rows[i], order) > 0) return false;
  }
  return true;
}

Cell ModelOf(const plan::WindowCall& call, const plan::Schema& schema, const std::vector<Tuple>& rows,
             std::span<const OrderSlot> order, size_t i) {
  return Model(call, schema, rows, order).Of(i);
}

}  // namespace nam::execution
