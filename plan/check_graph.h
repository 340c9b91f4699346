#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "plan/physical.h"

/// What both halves of the check of a physical plan look at (plan/check.h).
namespace nam::plan {

/// A partition is a list of pages that a server keeps open.
inline constexpr uint32_t kMostParts = 1 << 16;

/// INVALID_ARGUMENT.
absl::Status Bad(const char* what);
absl::Status CheckSlots(std::span<const uint32_t> slots, const Schema& input);

/// How pipelines whose operators are checked stand to each other: stages, parts, partition matches and
/// exchanges.
absl::Status CheckGraph(const PhysicalPlan& plan);

}  // namespace nam::plan
