#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/aggregate_slots.h"
#include "plan/physical.h"

/// What flows through a pipeline. The functions check what they look at, and come to their answer from the
/// plan alone, so that every server comes to the same.
namespace nam::plan {

/// What leaves a scan: its slots that flow on.
absl::StatusOr<Schema> ScanOutput(const TableScan& scan);

/// What leaves a step, given what comes. `plan` has the pipelines that a probe looks at.
absl::StatusOr<Schema> StepOutput(const PhysicalPlan& plan, const StepNode& step, const Schema& input);
/// What a probe's residuals are over: what is kept, then what is fetched.
absl::StatusOr<Schema> PartnerSchema(const PhysicalPlan& plan, const ProbeStep& probe, const Schema& input);

/// What a window's source yields: the rows of the pipeline that sorted them, then its calls.
absl::StatusOr<Schema> WindowOutput(const PhysicalPlan& plan, const WindowSource& window);

/// What a stage takes in by parts: rows, or groups whose states it merges.
absl::StatusOr<Schema> PartitionOutput(const PhysicalPlan& plan, const PartitionSource& source);

/// What a join by parts is over and yields.
struct JoinSchemas {
  Schema probed, built;  // the rows of both sides
  Schema partners;       // what its residuals are over: what is kept, then what is fetched
  Schema output;
};
absl::StatusOr<JoinSchemas> SchemasOf(const PhysicalPlan& plan, const JoinSource& join);

/// Whether a probe asks if its build side is empty or has a NULL as a key: IN and NOT IN by the key. What it
/// compares beside the keys has been said.
bool AsksForNulls(const ProbeStep& probe);

/// Whether the states of these groups are the same by parts: an aggregation that looks at each value once
/// keeps pairs of groups and values beside them, which do not go by parts.
bool GoesByParts(const AggregateSink& sink);

/// What a pipeline's sink leaves as rows at rest: of a build its payload, of an aggregation groups (states or
/// results), of the others what comes. INVALID_ARGUMENT of one that leaves none.
absl::StatusOr<Schema> SinkOutput(const Pipeline& pipeline);

/// The slot of the pipeline's source that `slot` of schemas[step] is, unchanged and of the same row; nothing
/// if it is computed or comes from a build side. `slot` exists, and the pipeline passed Check.
std::optional<uint32_t> SourceSlotOf(const Pipeline& pipeline, size_t step, uint32_t slot);

/// The expression is a slot as it is: which.
inline std::optional<uint32_t> BareSlot(const Expr& expr) {
  if (expr.op != Op::kColumn) return std::nullopt;
  return static_cast<uint32_t>(expr.column.column);
}

/// Of the source, if it is a scan of a table.
const TableScan* ScanOf(const Pipeline& pipeline);

}  // namespace nam::plan
