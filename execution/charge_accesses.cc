#include "execution/charge_accesses.h"

#include "base/cache_costs.h"

namespace nam::execution {

void ChargeAccesses(TaskContext& context, uint64_t count, uint64_t working_set_bytes) {
  Clock& clock = context.clock();
  if (&clock == &RealClock()) return;  // cheaper to test than its type
  const auto* const caches = dynamic_cast<const CacheCosts*>(&clock);
  if (caches != nullptr) context.Charge(count, caches->AccessPs(working_set_bytes));
}

}  // namespace nam::execution
