#include "execution/window/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/status_macros.h"
#include "types/date.h"
#include "types/interval.h"
#include "types/real.h"

namespace nam::execution {

using plan::FrameBound;
using plan::WindowFrame;

uint64_t WindowRows::PartitionEnd(uint64_t place) const {
  const uint32_t row = rows.row(place);
  uint64_t inside = place, step = 1;
  while (inside + step < rows.size() && partitions.Same(row, rows.row(inside + step))) {
    inside += step;
    step *= 2;
  }
  uint64_t outside = std::min(inside + step, rows.size());
  while (outside - inside > 1) {
    const uint64_t middle = inside + (outside - inside) / 2;
    (partitions.Same(row, rows.row(middle)) ? inside : outside) = middle;
  }
  return outside;
}

uint64_t WindowRows::PartitionFrom(uint64_t place) const {
  if (place == 0 || place >= rows.size()) return std::min(place, rows.size());
  return PartitionEnd(place - 1);
}

Partition::Partition(const WindowRows& window, MemoryBudget& budget)
    : window_(window), group_of_(budget), starts_(budget) {}

absl::Status Partition::Begin(uint64_t first, uint32_t size) {
  first_ = first;
  size_ = size;
  groups_ = 0;
  NAM_RETURN_IF_ERROR(group_of_.Grow(size));
  NAM_RETURN_IF_ERROR(starts_.Grow(size));
  for (uint32_t i = 0; i < size; ++i) {
    if (i == 0 || !window_.order.Same(row(i - 1), row(i))) starts_[groups_++] = i;
    group_of_[i] = groups_ - 1;
  }
  return absl::OkStatus();
}

FrameWalk::FrameWalk(const Partition& partition, const WindowFrame& frame)
    : partition_(partition), frame_(frame), peers_(frame.unit != WindowFrame::Unit::kRows) {
  if (frame.unit != WindowFrame::Unit::kRange) return;
  const auto has_offset = [](const FrameBound& bound) {
    return bound.kind == FrameBound::Kind::kPreceding || bound.kind == FrameBound::Kind::kFollowing;
  };
  if (!has_offset(frame.start) && !has_offset(frame.end)) return;
  // Rows with a NULL key are one group of peers, the first or the last.
  const uint32_t slot = partition.window().order_key.slot, size = partition.size();
  with_key_end_ = size;
  key_kind_ = partition.window().rows.schema()[slot].type.kind;
  if (partition.IsNull(0, slot)) with_key_ = partition.group_end(0);
  if (with_key_ < size && partition.IsNull(size - 1, slot))
    with_key_end_ = partition.group_start(partition.groups() - 1);
  start_ = end_ = with_key_;
}

__int128 FrameWalk::KeyOf(uint32_t i) const {
  const OrderSlot& key = partition_.window().order_key;
  __int128 number = partition_.Number(i, key.slot);
  if (key_kind_ == TypeKind::kDate) number *= kMicrosecondsPerDay;
  return key.descending ? -number : number;
}

namespace {

constexpr __int128 kBeyondAll = ~(__int128{1} << 127);

__int128 MovedReal(double key, double distance, bool down, bool upper) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double moved = down ? key - distance : key + distance;
  // An infinite distance back from infinity reaches everything, as in PostgreSQL; NaN stays where it is.
  if (std::isnan(moved) && !std::isnan(key)) return OrderedBits(upper ? kInfinity : -kInfinity);
  return OrderedBits(moved);
}

}  // namespace

__int128 FrameWalk::Moved(__int128 key, __int128 distance, bool down, bool upper) const {
  switch (key_kind_) {
    case TypeKind::kDate:
    case TypeKind::kTimestamp: {
      const absl::StatusOr<int64_t> us =
          AddToTimestamp(static_cast<int64_t>(key), UnpackInterval(distance), down ? -1 : 1);
      // Before or after all valid timestamps.
      return us.ok() ? __int128{*us} : down ? -kBeyondAll : kBeyondAll;
    }
    case TypeKind::kDouble:
    case TypeKind::kReal:
      return MovedReal(FromOrderedBits(static_cast<int64_t>(key)),
                       FromOrderedBits(static_cast<int64_t>(distance)), down, upper);
    default: {
      __int128 moved;
      const bool beyond = down ? __builtin_sub_overflow(key, distance, &moved)
                               : __builtin_add_overflow(key, distance, &moved);
      return !beyond ? moved : down ? -kBeyondAll : kBeyondAll;
    }
  }
}

uint32_t FrameWalk::Search(const FrameBound& bound, uint32_t i, bool beyond, uint32_t& at) const {
  const bool back = bound.kind == FrameBound::Kind::kPreceding;
  const bool descending = partition_.window().order_key.descending;
  const __int128 key = descending ? -KeyOf(i) : KeyOf(i);
  const __int128 moved = Moved(key, bound.offset, back != descending, beyond != descending);
  const __int128 limit = descending ? -moved : moved;
  while (at < with_key_end_ && (beyond ? KeyOf(at) <= limit : KeyOf(at) < limit)) ++at;
  return at;
}

uint32_t FrameWalk::StartOf(const FrameBound& bound, uint32_t i, uint32_t& at) {
  const uint32_t size = partition_.size();
  if (bound.kind == FrameBound::Kind::kUnboundedPreceding) return 0;
  const uint32_t group = partition_.group_of(i);
  if (bound.kind == FrameBound::Kind::kCurrentRow) return peers_ ? partition_.group_start(group) : i;
  const auto offset = static_cast<uint32_t>(std::min<__int128>(bound.offset, size));
  const bool back = bound.kind == FrameBound::Kind::kPreceding;
  switch (frame_.unit) {
    case WindowFrame::Unit::kRows:
      return back ? i - std::min(i, offset) : std::min<uint32_t>(size - i, offset) + i;
    case WindowFrame::Unit::kGroups:
      if (back) return partition_.group_start(group - std::min(group, offset));
      return offset < partition_.groups() - group ? partition_.group_start(group + offset) : size;
    case WindowFrame::Unit::kRange:
      if (i < with_key_ || i >= with_key_end_) return partition_.group_start(group);
      return Search(bound, i, /*beyond=*/false, at);
  }
  return 0;
}

uint32_t FrameWalk::EndOf(const FrameBound& bound, uint32_t i, uint32_t& at) {
  const uint32_t size = partition_.size();
  if (bound.kind == FrameBound::Kind::kUnboundedFollowing) return size;
  const uint32_t group = partition_.group_of(i);
  if (bound.kind == FrameBound::Kind::kCurrentRow) return peers_ ? partition_.group_end(group) : i + 1;
  const auto offset = static_cast<uint32_t>(std::min<__int128>(bound.offset, size));
  const bool back = bound.kind == FrameBound::Kind::kPreceding;
  switch (frame_.unit) {
    case WindowFrame::Unit::kRows:
      return back ? i + 1 - std::min(i + 1, offset) : std::min<uint32_t>(size - i - 1, offset) + i + 1;
    case WindowFrame::Unit::kGroups:
      if (back) return offset <= group ? partition_.group_end(group - offset) : 0;
      return offset < partition_.groups() - group ? partition_.group_end(group + offset) : size;
    case WindowFrame::Unit::kRange:
      if (i < with_key_ || i >= with_key_end_) return partition_.group_end(group);
      return Search(bound, i, /*beyond=*/true, at);
  }
  return 0;
}

FrameWalk::Places FrameWalk::Bounds(uint32_t i) {
  Places places{StartOf(frame_.start, i, start_), EndOf(frame_.end, i, end_)};
  places.end = std::max(places.start, places.end);
  return places;
}

FrameWalk::Parts FrameWalk::At(uint32_t i) {
  using Exclusion = WindowFrame::Exclusion;
  const auto [start, end] = Bounds(i);
  if (frame_.exclusion == Exclusion::kNone) return {Places{start, end}, Places{end, end}, Places{end, end}};
  const bool row = frame_.exclusion == Exclusion::kCurrentRow;
  const uint32_t group = partition_.group_of(i);
  const uint32_t hole = std::clamp(row ? i : partition_.group_start(group), start, end);
  const uint32_t hole_end = std::clamp(row ? i + 1 : partition_.group_end(group), start, end);
  const uint32_t own = std::clamp(i, start, end);
  const bool stays = frame_.exclusion == Exclusion::kTies && start <= i && i < end;
  return {Places{start, hole}, Places{own, own + stays}, Places{hole_end, end}};
}

}  // namespace nam::execution
