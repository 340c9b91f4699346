#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/aggregate.h"
#include "plan/schema.h"
#include "types/type.h"

/// Calls of window functions in physical plans: over rows sorted by the keys of their partition, then by
/// those of the window's order.
namespace nam::plan {

struct Order {
  uint32_t slot = 0;
  bool descending = false;
  bool nulls_first = false;

  bool operator==(const Order&) const = default;
};

/// Plans hold these numbers: append new ones.
enum class WindowFunction : uint8_t {
  kAggregate,    // `aggregate` over the frame
  kRowNumber,    // []
  kRank,         // []
  kDenseRank,    // []
  kPercentRank,  // [] (rank - 1) / (rows - 1), for one row 0: a decimal, rounded half away from zero
  kCumeDist,     // [] rows up to the last peer / rows: likewise
  kNtile,        // [buckets]: from the partition's first row
  kLag,          // [value, offset, default]; both may be absent: 1, NULL
  kLead,         // likewise
  kFirstValue,   // [value]: from the frame's first row
  kLastValue,    // [value]
  kNthValue,     // [value, n]
};

struct FrameBound {
  enum class Kind : uint8_t { kUnboundedPreceding, kPreceding, kCurrentRow, kFollowing, kUnboundedFollowing };
  Kind kind = Kind::kUnboundedPreceding;
  /// For kPreceding and kFollowing, not negative. RANGE: a distance for the order key's type: for exact
  /// numbers in units of the last decimal, for dates and timestamps an interval (types/interval.h), for
  /// floating point double precision as values hold it (types/real.h).
  __int128 offset = 0;

  bool operator==(const FrameBound&) const = default;
};

/// The rows that a function reads, relative to the row that it is called for. RANGE includes the peers of a
/// bound's row; rows with a NULL key are peers of each other and at no distance from others.
struct WindowFrame {
  enum class Unit : uint8_t { kRows, kRange, kGroups };
  /// The excluded rows between the bounds: none; the row itself; it and its peers; its peers alone.
  enum class Exclusion : uint8_t { kNone, kCurrentRow, kGroup, kTies };
  Unit unit = Unit::kRange;
  FrameBound start;
  FrameBound end{FrameBound::Kind::kCurrentRow, 0};
  Exclusion exclusion = Exclusion::kNone;

  bool operator==(const WindowFrame&) const = default;
};

struct WindowCall {
  WindowFunction function = WindowFunction::kRowNumber;
  AggregateFunction aggregate = AggregateFunction::kCountRows;  // for kAggregate
  std::vector<uint32_t> arguments;                              // slots of the rows
  WindowFrame frame;  // for kAggregate, first, last and nth value; the others read the whole partition
  Type type;          // of the result

  bool operator==(const WindowCall&) const = default;
};

/// Whether RANGE with an offset is possible over a key of the type.
bool HasDistances(const Type& type);

/// The result of a call over rows of a schema in a window's order. INVALID_ARGUMENT for a call that no window
/// can run: arguments and results of wrong types, slots that do not exist, frames that end before they start,
/// RANGE with an offset over anything but one key that has distances.
absl::StatusOr<Slot> ResultOf(const WindowCall& call, const Schema& input, std::span<const Order> order);

}  // namespace nam::plan
