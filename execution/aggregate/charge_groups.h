#pragma once

#include <cstdint>

#include "execution/aggregate/aggregate_plan.h"
#include "execution/aggregate/group_set.h"
#include "execution/task.h"

namespace nam::execution {

/// A group's memory beside its keys and aggregates: its place in the table, and its number there.
inline constexpr uint64_t kTableBytesOfGroup = 16;

/// Charges the accesses of rows that a set has just taken in: one to its table, and one to the state of each
/// aggregate.
inline void ChargeGroups(TaskContext& context, const AggregatePlan& plan, const GroupSet& set,
                         uint64_t rows) {
  ChargeAccesses(context, rows * (1 + plan.size()),
                 set.size() * (plan.partial_layout().stride() + kTableBytesOfGroup));
}

}  // namespace nam::execution
