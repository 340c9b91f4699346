#pragma once

#include <cstdint>

#include "execution/aggregate/aggregate_plan.h"
#include "execution/aggregate/group_set.h"
#include "execution/charge_accesses.h"

namespace nam::execution {

/// A group takes so much beside its keys and aggregates: its place in the table, and the number that leads
/// there.
inline constexpr uint64_t kTableBytesOfGroup = 16;

/// Charges the accesses of rows that have just been taken in by a set: one to its table, and one to the state
/// of each aggregate.
inline void ChargeGroups(TaskContext& context, const AggregatePlan& plan, const GroupSet& set,
                         uint64_t rows) {
  ChargeAccesses(context, rows * (1 + plan.size()),
                 set.size() * (plan.partial_layout().stride() + kTableBytesOfGroup));
}

}  // namespace nam::execution
