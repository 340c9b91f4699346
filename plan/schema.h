#pragma once

#include <cstdint>
#include <vector>

#include "types/type.h"

namespace nam::plan {

/// The possible numbers of an expression or column, from statistics. Numbers within 64 bits are computed in
/// 64 bits without checks, others in 128 bits with checks, so that no result ever wraps. They hold on every
/// server.
struct Bounds {
  __int128 low = 0;
  __int128 high = 0;
  bool known = false;

  bool narrow() const { return known && low >= INT64_MIN && high <= INT64_MAX; }
  bool operator==(const Bounds&) const = default;
};

/// One column that flows between two operators.
struct Slot {
  Type type;
  bool nullable = true;
  Bounds bounds;  // for numbers, dates and timestamps that are not NULL

  bool operator==(const Slot&) const = default;
};

using Schema = std::vector<Slot>;

}  // namespace nam::plan
