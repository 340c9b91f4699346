#include "optimizer/plan_query.h"

#include "base/status_macros.h"
#include "optimizer/filter_lookups.h"
#include "optimizer/packed_keys.h"
#include "optimizer/push_filters.h"
#include "optimizer/unnest.h"

namespace nam::optimizer {

absl::Status Rewrite(plan::logical::Query& query) {
  NAM_RETURN_IF_ERROR(UseKeysOfPackedValues(query));
  NAM_RETURN_IF_ERROR(Unnest(query));
  NAM_RETURN_IF_ERROR(UseBitsOfPackedValues(query));
  PushFilters(query);
  FilterLookups(query);
  return absl::OkStatus();
}

absl::StatusOr<LoweredTree> PlanQuery(plan::logical::Query query, const LoweringOptions& options) {
  NAM_RETURN_IF_ERROR(Rewrite(query));
  return LowerTree(query, options);
}

}  // namespace nam::optimizer
