#pragma once

#include <cstdint>
#include <optional>

#include "plan/physical.h"

namespace nam::optimizer {

/// Returns a plan whose `pipeline`, which runs on servers, makes complete rows of the result: it takes over
/// the steps of the session's pipeline that reads them. nullopt where that is impossible: where the session
/// sorts, groups, joins or limits the rows, or several of its pipelines read them.
///
///     servers   scan ─▶ probe ─▶ result            scan ─▶ probe ─▶ project ─▶ result
///     session   pages ─▶ project ─▶ result    ═▶   pages ─▶ result
std::optional<plan::PhysicalPlan> WithWholeRows(const plan::PhysicalPlan& plan, uint32_t pipeline);

}  // namespace nam::optimizer
