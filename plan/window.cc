#include "plan/window.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/status_macros.h"
#include "plan/aggregate_slots.h"
#include "plan/plan_error.h"
#include "plan/slot_of.h"
#include "types/interval.h"
#include "types/real.h"

namespace nam::plan {
namespace {

using BoundKind = FrameBound::Kind;

constexpr Bounds kPlaces{1, std::numeric_limits<int64_t>::max(), true};

bool HasOffset(const FrameBound& bound) {
  return bound.kind == BoundKind::kPreceding || bound.kind == BoundKind::kFollowing;
}

/// Whether it is a distance between values of the key's type, and not negative.
bool IsDistance(__int128 offset, const Type& key) {
  if (key.real()) {
    if (offset < INT64_MIN || offset > INT64_MAX) return false;
    const double distance = FromOrderedBits(static_cast<int64_t>(offset));
    return distance >= 0 && OrderedBits(distance) == offset;
  }
  return key.numeric() ? offset >= 0 : SpanOf(UnpackInterval(offset)) >= 0;
}

absl::Status CheckFrame(const WindowFrame& frame, const Schema& input, std::span<const Order> order) {
  for (const FrameBound& bound : {frame.start, frame.end}) {
    const bool by_distance = HasOffset(bound) && frame.unit == WindowFrame::Unit::kRange;
    if (HasOffset(bound) ? !by_distance && bound.offset < 0 : bound.offset != 0)
      return BadPlan("a frame with a negative offset");
    if (!HasOffset(bound) || frame.unit == WindowFrame::Unit::kRows) continue;
    if (order.empty()) return BadPlan("a frame of peers without an order");
    if (!by_distance) continue;
    if (order.size() != 1 || !HasDistances(input[order[0].slot].type))
      return BadPlan("a frame by distance over something else than one key with distances");
    if (!IsDistance(bound.offset, input[order[0].slot].type))
      return BadPlan("a frame by something else than a distance");
  }
  if (frame.start.kind == BoundKind::kUnboundedFollowing ||
      frame.end.kind == BoundKind::kUnboundedPreceding || frame.end.kind < frame.start.kind) {
    return BadPlan("a frame that ends before it starts");
  }
  return absl::OkStatus();
}

absl::StatusOr<Slot> OfShare(const WindowCall& call) {
  if (call.type != Type::Double()) return BadPlan("a share that is no floating point");
  return Slot{call.type, false, {}};
}

bool IsInteger(const Slot& slot) {
  return slot.type.kind == TypeKind::kInteger;
}

absl::StatusOr<Slot> OfAggregate(const WindowCall& call, const Schema& arguments) {
  std::vector<Type> types;
  for (const Slot& argument : arguments) types.push_back(argument.type);
  NAM_RETURN_IF_ERROR(CheckCall(call.aggregate, types, call.type));
  if (call.aggregate == AggregateFunction::kCountDistinct) return BadPlan("a window over distinct values");
  return AggregateResult(call.aggregate, call.type, arguments);
}

/// Whether values have one form; texts of any length do.
bool SameForm(const Type& a, const Type& b) {
  return a.kind == b.kind && a.scale == b.scale && a.blank_padded == b.blank_padded;
}

/// lag, lead.
absl::StatusOr<Slot> OfNeighbour(const WindowCall& call, const Schema& arguments) {
  if (arguments.empty() || arguments.size() > 3)
    return BadPlan("lag or lead with another number of arguments");
  if (arguments.size() > 1 && !IsInteger(arguments[1]))
    return BadPlan("lag or lead by something else than rows");
  Slot out = arguments[0];
  if (!SameForm(call.type, out.type)) return BadPlan("lag or lead of another type");
  out.type = call.type;
  out.nullable = true;
  if (arguments.size() < 3) return out;
  const Slot& otherwise = arguments[2];
  if (!SameForm(otherwise.type, out.type)) return BadPlan("lag or lead with a default of another type");
  const bool known = out.bounds.known && otherwise.bounds.known;
  out.bounds = known ? Bounds{std::min(out.bounds.low, otherwise.bounds.low),
                              std::max(out.bounds.high, otherwise.bounds.high), true}
                     : Bounds{};
  return out;
}

/// first_value, last_value, nth_value.
absl::StatusOr<Slot> OfFrameValue(const WindowCall& call, const Schema& arguments) {
  const bool nth = call.function == WindowFunction::kNthValue;
  if (arguments.size() != (nth ? 2 : 1))
    return BadPlan("a value of the frame with another number of arguments");
  if (nth && !IsInteger(arguments[1])) return BadPlan("a value of the frame by something else than a number");
  Slot out = arguments[0];
  if (call.type != out.type) return BadPlan("a value of the frame of another type");
  out.nullable = true;
  return out;
}

}  // namespace

bool HasDistances(const Type& type) {
  return type.numeric() || type.real() || type.kind == TypeKind::kDate || type.kind == TypeKind::kTimestamp;
}

absl::StatusOr<Slot> ResultOf(const WindowCall& call, const Schema& input, std::span<const Order> order) {
  Schema arguments;
  for (const uint32_t slot : call.arguments) {
    if (slot >= input.size()) return BadPlan("an argument that is not there");
    arguments.push_back(input[slot]);
  }
  NAM_RETURN_IF_ERROR(CheckFrame(call.frame, input, order));
  switch (call.function) {
    case WindowFunction::kAggregate:
      return OfAggregate(call, arguments);
    case WindowFunction::kLag:
    case WindowFunction::kLead:
      return OfNeighbour(call, arguments);
    case WindowFunction::kFirstValue:
    case WindowFunction::kLastValue:
    case WindowFunction::kNthValue:
      return OfFrameValue(call, arguments);
    case WindowFunction::kNtile:
      if (arguments.size() != 1 || !IsInteger(arguments[0]))
        return BadPlan("ntile of something else than a number");
      if (call.type != Type::Integer()) return BadPlan("a place that is no integer");
      return Slot{call.type, true, kPlaces};
    default:
      break;
  }
  if (!arguments.empty()) return BadPlan("a place with arguments");
  if (call.function == WindowFunction::kPercentRank || call.function == WindowFunction::kCumeDist)
    return OfShare(call);
  if (call.type != Type::Integer()) return BadPlan("a place that is no integer");
  return Slot{call.type, false, kPlaces};
}

}  // namespace nam::plan
