#pragma once

#include <cstdint>
#include <optional>

#include "plan/physical.h"

namespace nam::optimizer {

/// A plan whose `pipeline`, of servers, makes rows of the result as they are: the steps of the session's
/// pipeline that reads them are its own. Nothing where that cannot be: where the session sorts, groups, joins
/// or limits what comes, or several pipelines of it read the rows.
///
///     servers   scan ─▶ probe ─▶ result            scan ─▶ probe ─▶ project ─▶ result
///     session   pages ─▶ project ─▶ result    ═▶   pages ─▶ result
std::optional<plan::PhysicalPlan> WithWholeRows(const plan::PhysicalPlan& plan, uint32_t pipeline);

}  // namespace nam::optimizer
