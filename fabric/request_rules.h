#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "fabric/fabric.h"

/// What no provider takes, for those that check it alike.
namespace nam::fabric {

/// INVALID_ARGUMENT: of the wrong size, too long, or inlined though it must not be.
absl::Status CheckWorkRequest(const WorkRequest& request, uint32_t inline_bytes_max);

constexpr bool IsAtomic(Opcode opcode) {
  return opcode == Opcode::kCompareAndSwap || opcode == Opcode::kFetchAdd;
}

}  // namespace nam::fabric
