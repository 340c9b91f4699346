#pragma once

#include <cstdint>

#include "execution/task.h"

namespace nam::execution {

/// In virtual time whose processors have caches: what `count` accesses to random places of so many bytes take
/// beside TaskContext::Charge. Otherwise nothing. For a chunk, not for each of its rows.
void ChargeAccesses(TaskContext& context, uint64_t count, uint64_t working_set_bytes);

}  // namespace nam::execution
