#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "plan/physical.h"

/// Shared by both halves of the check of a physical plan (plan/check.h).
namespace nam::plan {

/// The maximum number of parts. A server keeps a list of pages for each.
inline constexpr uint32_t kMostParts = 1 << 16;

absl::Status CheckSlots(std::span<const uint32_t> slots, const Schema& input);

/// Checks the relations of pipelines whose operators passed: stages, parts, partition matches and exchanges.
absl::Status CheckGraph(const PhysicalPlan& plan);

}  // namespace nam::plan
