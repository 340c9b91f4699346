#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "types/value.h"

namespace nam {

/// One column of some rows, in the engine's representation. Borrows its values. The users of the
/// column know which positions hold a row.
struct ValueColumn {
  static constexpr uint8_t kNoTruth = 2;  // NULL

  Type type;
  Physical physical = Physical::kInt64;  // PhysicalOf(type), or kInt64 for a decimal
  union {
    const int64_t* narrow = nullptr;  // kInt64
    const __int128* wide;             // kInt128
    const uint8_t* truth;             // kTruth: 0, 1, kNoTruth
    const std::string_view* text;     // kText
  };
  const uint8_t* nulls = nullptr;  // 1 where NULL; nullptr: no NULLs. Not for kTruth

  bool null(size_t at) const {
    return physical == Physical::kTruth ? truth[at] == kNoTruth : nulls != nullptr && nulls[at] != 0;
  }
  /// For a value that is neither NULL nor text.
  __int128 number(size_t at) const {
    return physical == Physical::kInt64 ? narrow[at] : physical == Physical::kInt128 ? wide[at] : truth[at];
  }
  Value Boxed(size_t at) const {
    Value value{type, null(at), 0, {}};
    if (value.null) return value;
    if (physical == Physical::kText) {
      value.text = text[at];
    } else {
      value.number = number(at);
    }
    return value;
  }
};

}  // namespace nam
