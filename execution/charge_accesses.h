#pragma once

#include <cstdint>

#include "execution/task.h"

namespace nam::execution {

/// Charges `count` accesses to random places of so many bytes, beside TaskContext::Charge, if virtual time
/// models caches. Otherwise does nothing. Called for a chunk, not for each of its rows.
void ChargeAccesses(TaskContext& context, uint64_t count, uint64_t working_set_bytes);

}  // namespace nam::execution
