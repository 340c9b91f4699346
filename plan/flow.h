#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/aggregate_slots.h"
#include "plan/physical.h"

/// The schemas that flow through a pipeline. The functions check their input, and their results depend on the
/// plan alone, so that every server gets the same.
namespace nam::plan {

/// The scan's output: its emitted slots.
absl::StatusOr<Schema> ScanOutput(const TableScan& scan);

/// A step's output for this input. `plan` has the pipelines that a probe uses.
absl::StatusOr<Schema> StepOutput(const PhysicalPlan& plan, const StepNode& step, const Schema& input);
/// The schema for a probe's residuals: kept columns, then fetched ones.
absl::StatusOr<Schema> PartnerSchema(const PhysicalPlan& plan, const ProbeStep& probe, const Schema& input);

/// The output of a window's source: the rows of the pipeline that sorted them, then its calls.
absl::StatusOr<Schema> WindowOutput(const PhysicalPlan& plan, const WindowSource& window);

/// The input of a stage by parts: rows, or groups whose states it merges.
absl::StatusOr<Schema> PartitionOutput(const PhysicalPlan& plan, const PartitionSource& source);

/// The inputs and outputs of a join by parts.
struct JoinSchemas {
  Schema probed, built;  // the rows of both sides
  Schema partners;       // the schema for its residuals: kept columns, then fetched ones
  Schema output;
};
absl::StatusOr<JoinSchemas> SchemasOf(const PhysicalPlan& plan, const JoinSource& join);

/// Whether a probe asks if its build side is empty or has a NULL key: IN and NOT IN by the key. `compared`
/// asks by itself.
bool AsksForNulls(const ProbeStep& probe);

/// Whether all states of these groups go by parts. An aggregation that takes each value once keeps pairs of
/// groups and values beside them, which do not.
bool GoesByParts(const AggregateSink& sink);

/// The rows at rest that a pipeline's sink leaves: a build's payload, an aggregation's groups (states or
/// results), otherwise its input. INVALID_ARGUMENT for a sink that leaves none.
absl::StatusOr<Schema> SinkOutput(const Pipeline& pipeline);

/// The slot of the pipeline's source that is `slot` of schemas[step], unchanged and of the same row; nullopt
/// if it is computed or comes from a build side. `slot` exists, and the pipeline passed Check.
std::optional<uint32_t> SourceSlotOf(const Pipeline& pipeline, size_t step, uint32_t slot);

/// The slot, if the expression is a plain one.
inline std::optional<uint32_t> BareSlot(const Expr& expr) {
  if (expr.op != Op::kColumn) return std::nullopt;
  return static_cast<uint32_t>(expr.column.column);
}

/// The source, if it is a scan of a table.
const TableScan* ScanOf(const Pipeline& pipeline);

}  // namespace nam::plan
