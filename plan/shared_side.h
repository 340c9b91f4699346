#pragma once

#include <cstdint>

#include "plan/join_kind.h"

namespace nam::plan {

/// The side of a join by parts whose pages several tasks share if a part is too much for one of them. Each
/// reads all of the other side, so every pair of rows meets in one task.
enum class SharedSide : uint8_t { kNone, kProbed, kBuilt };

/// The larger side of a part, since each task reads the other one, if the kind of the join allows it. A row
/// that is emitted with or without a partner has to see the whole other side, once: output by rows of the
/// probe side shares these, a right join those of the build side, and a full join neither. Sessions and
/// servers have the same directories, and so choose the same side.
constexpr SharedSide SharedSideOf(JoinKind kind, uint64_t probed_rows, uint64_t built_rows) {
  switch (kind) {
    case JoinKind::kInner:
      return built_rows > probed_rows ? SharedSide::kBuilt : SharedSide::kProbed;
    case JoinKind::kRight:
      return SharedSide::kBuilt;
    case JoinKind::kFull:
      return SharedSide::kNone;
    default:
      return SharedSide::kProbed;
  }
}

}  // namespace nam::plan
