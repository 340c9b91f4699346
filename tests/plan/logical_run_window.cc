#include "tests/plan/logical_run_window.h"

#include <algorithm>
#include <cmath>

#include "base/status_macros.h"
#include "types/interval.h"
#include "types/sql_error.h"

namespace nam::plan::logical::testing {

WindowRunner::WindowRunner(const Window& window, const std::vector<Column>& columns, const Rows& rows,
                           const std::vector<Row>& order, const Surroundings* outer)
    : window_(window), columns_(columns), rows_(rows), order_(order), outer_(outer) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool peer = i > 0 && !Before(order[i - 1], order[i]) && !Before(order[i], order[i - 1]);
    group_.push_back(i == 0 ? 0 : group_.back() + (peer ? 0 : 1));
  }
}

absl::StatusOr<Rows> WindowRunner::Run() {
  Rows rows = rows_;
  for (const WindowCall& call : window_.calls) {
    for (size_t i = 0; i < rows.size(); ++i) {
      NAM_ASSIGN_OR_RETURN(Value value, Call(call, i));
      rows[i].push_back(std::move(value));
    }
  }
  return rows;
}

absl::StatusOr<Value> WindowRunner::At(const Expr& expr, size_t row) const {
  return Eval(expr, {&columns_, &rows_[row], outer_});
}

absl::StatusOr<Value> WindowRunner::Call(const WindowCall& call, size_t row) {
  const auto first_peer = std::find(group_.begin(), group_.end(), group_[row]) - group_.begin();
  switch (call.function) {
    case WindowFunction::kRowNumber:
      return Value::Integer(static_cast<int64_t>(row) + 1);
    case WindowFunction::kRank:
      return Value::Integer(first_peer + 1);
    case WindowFunction::kDenseRank:
      return Value::Integer(static_cast<int64_t>(group_[row]) + 1);
    case WindowFunction::kNtile:
      return Ntile(call, row);
    case WindowFunction::kPercentRank:
      return Share(call, first_peer, static_cast<int64_t>(rows_.size()) - 1);
    case WindowFunction::kCumeDist: {
      const auto next = std::find_if(group_.begin(), group_.end(), [&](size_t g) { return g > group_[row]; });
      return Share(call, next - group_.begin(), static_cast<int64_t>(rows_.size()));
    }
    case WindowFunction::kLag:
      return Neighbor(call, row, -1);
    case WindowFunction::kLead:
      return Neighbor(call, row, 1);
    default:
      return OfFrame(call, row);
  }
}

absl::StatusOr<Value> WindowRunner::Share(const WindowCall& call, int64_t part, int64_t whole) const {
  if (call.result.type != Type::Double()) return absl::InternalError("a share that is no floating point");
  return Value::Double(static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1)));
}

/// The first buckets have one row more if they cannot be alike.
absl::StatusOr<Value> WindowRunner::Ntile(const WindowCall& call, size_t row) {
  NAM_ASSIGN_OR_RETURN(const Value buckets, At(call.arguments[0], 0));
  if (buckets.null) return Value::Null(Type::Integer());
  if (buckets.number <= 0) return UserError("22014", "ntile needs a number greater than 0", -1);
  const __int128 count = static_cast<__int128>(rows_.size());
  const __int128 size = count / buckets.number, larger = count % buckets.number;
  const __int128 in_larger = larger * (size + 1);
  const __int128 place = static_cast<__int128>(row);
  return Value::Integer(place < in_larger ? place / (size + 1) + 1 : larger + (place - in_larger) / size + 1);
}

absl::StatusOr<Value> WindowRunner::Neighbor(const WindowCall& call, size_t row, int direction) {
  __int128 offset = 1;
  if (call.arguments.size() > 1) {
    NAM_ASSIGN_OR_RETURN(const Value written, At(call.arguments[1], row));
    if (written.null) return Value::Null(call.result.type);
    offset = written.number;
  }
  const __int128 target = static_cast<__int128>(row) + direction * offset;
  Value value = Value::Null(call.result.type);
  if (target >= 0 && target < static_cast<__int128>(rows_.size())) {
    NAM_ASSIGN_OR_RETURN(value, At(call.arguments[0], static_cast<size_t>(target)));
  } else if (call.arguments.size() > 2) {
    NAM_ASSIGN_OR_RETURN(value, At(call.arguments[2], row));
  }
  value.type = call.result.type;
  return value;
}

absl::StatusOr<Value> WindowRunner::OfFrame(const WindowCall& call, size_t row) {
  const size_t begin = Edge(call.frame, call.frame.start, row, true);
  const size_t end = std::max(begin, Edge(call.frame, call.frame.end, row, false));
  std::vector<size_t> members;
  for (size_t i = begin; i < end; ++i) {
    if (!Excluded(call.frame, row, i)) members.push_back(i);
  }
  if (call.function == WindowFunction::kAggregate) {
    std::vector<const Row*> rows;
    for (const size_t i : members) rows.push_back(&rows_[i]);
    return Fold(call.aggregate, rows, columns_, outer_);
  }
  size_t target = 0;
  if (call.function == WindowFunction::kLastValue) target = members.size() - 1;
  if (call.function == WindowFunction::kNthValue) {
    NAM_ASSIGN_OR_RETURN(const Value n, At(call.arguments[1], row));
    if (n.null) return Value::Null(call.result.type);
    if (n.number <= 0) return UserError("22016", "nth_value needs a number greater than 0", -1);
    target = static_cast<size_t>(std::min<__int128>(n.number - 1, members.size()));
  }
  if (target >= members.size()) return Value::Null(call.result.type);
  NAM_ASSIGN_OR_RETURN(Value value, At(call.arguments[0], members[target]));
  value.type = call.result.type;
  return value;
}

bool WindowRunner::Excluded(const Frame& frame, size_t row, size_t i) const {
  switch (frame.exclusion) {
    case Frame::Exclusion::kNone:
      return false;
    case Frame::Exclusion::kCurrentRow:
      return i == row;
    case Frame::Exclusion::kGroup:
      return group_[i] == group_[row];
    case Frame::Exclusion::kTies:
      return group_[i] == group_[row] && i != row;
  }
  return false;
}

size_t WindowRunner::Edge(const Frame& frame, const FrameBound& bound, size_t row, bool start) const {
  using Kind = FrameBound::Kind;
  if (bound.kind == Kind::kUnboundedPreceding) return 0;
  if (bound.kind == Kind::kUnboundedFollowing) return rows_.size();
  const bool current = bound.kind == Kind::kCurrentRow;
  const __int128 size = static_cast<__int128>(rows_.size());
  if (frame.unit == Frame::Unit::kRange && !current) return RangeEdge(bound, row, start);
  const __int128 moved = current                          ? 0
                         : bound.kind == Kind::kPreceding ? -bound.offset.number
                                                          : bound.offset.number;
  if (frame.unit == Frame::Unit::kRows) {
    const __int128 edge = static_cast<__int128>(row) + moved + (start ? 0 : 1);
    return static_cast<size_t>(std::clamp<__int128>(edge, 0, size));
  }
  // Groups of peers.
  const __int128 group = static_cast<__int128>(group_[row]) + moved;
  size_t edge = 0;
  while (edge < rows_.size() && (start ? static_cast<__int128>(group_[edge]) < group
                                       : static_cast<__int128>(group_[edge]) <= group)) {
    ++edge;
  }
  return edge;
}

size_t WindowRunner::RangeEdge(const FrameBound& bound, size_t row, bool start) const {
  const Value& own = order_[row][0];
  const OrderKey& key = window_.order[0];
  size_t edge = 0;
  if (own.null) {  // NULLs are peers, and as far from everything else as can be
    while (edge < rows_.size() && (start ? group_[edge] < group_[row] : group_[edge] <= group_[row])) ++edge;
    return edge;
  }
  const bool up = (bound.kind == FrameBound::Kind::kFollowing) != key.descending;
  if (!own.type.numeric()) return DistanceEdge(bound, row, start, up);
  const int scale = std::max(own.type.scale, bound.offset.type.scale);
  const __int128 value = own.number * PowerOfTen(scale - own.type.scale);
  const __int128 offset = bound.offset.number * PowerOfTen(scale - bound.offset.type.scale);
  const __int128 limit = up ? value + offset : value - offset;
  const auto inside = [&](const Value& other) {  // not before the start, or not behind the end
    const __int128 number = other.number * PowerOfTen(scale - other.type.scale);
    return start != key.descending ? number >= limit : number <= limit;
  };
  const auto before = [&](size_t i) {
    const Value& other = order_[i][0];
    if (other.null) return key.nulls_first;
    return start ? !inside(other) : inside(other);
  };
  while (edge < rows_.size() && before(edge)) ++edge;
  return edge;
}

/// Whether `other` is on the right side of `own` moved by the distance; for NaN only the order counts.
bool WindowRunner::Reaches(const Value& own, const Value& other, const Value& distance, bool up, bool least) {
  if (own.type.real()) {
    const double from = own.real(), to = other.real(), by = distance.real();
    if (std::isnan(from) || std::isnan(to))
      return least ? std::isnan(to) : !std::isnan(to) || std::isnan(from);
    if (std::isinf(by) && std::isinf(from) && up == (from < 0)) return true;
    const double limit = up ? from + by : from - by;
    return least ? to >= limit : to <= limit;
  }
  const bool day = own.type.kind == TypeKind::kDate;
  const auto us = [&](const Value& of) {
    return static_cast<int64_t>(of.number) * (day ? kMicrosecondsPerDay : 1);
  };
  const auto limit = AddToTimestamp(us(own), distance.interval(), up ? 1 : -1);
  if (!limit.ok()) return up != least;  // beyond all timestamps
  return least ? us(other) >= *limit : us(other) <= *limit;
}

/// The keys are no exact numbers.
size_t WindowRunner::DistanceEdge(const FrameBound& bound, size_t row, bool start, bool up) const {
  const OrderKey& key = window_.order[0];
  size_t edge = 0;
  for (; edge < rows_.size(); ++edge) {
    const Value& other = order_[edge][0];
    if (other.null && key.nulls_first) continue;
    if (other.null) break;
    if (Reaches(order_[row][0], other, bound.offset, up, start != key.descending) == start) break;
  }
  return edge;
}

}  // namespace nam::plan::logical::testing
