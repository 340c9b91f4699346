#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/assignment.h"
#include "optimizer/join_choice.h"
#include "optimizer/slots.h"
#include "plan/physical.h"

namespace nam::optimizer {

/// The result of a stage of servers.
struct StageFact {
  double rows = 0;        // rows or groups of all attempts together
  bool by_parts = false;  // they lie in scratch memory, by parts
};

/// A stage of compute servers.
struct ServerStage {
  /// The number of parts from an earlier stage that servers claim instead of a table. 0: they claim a table.
  uint32_t parts = 0;
  /// Its members stream rows to each other: they claim nothing.
  bool streamed = false;
  bool claims_table() const { return parts == 0 && !streamed; }
  /// Its fact, or the optimizer's assumption.
  StageFact expected;
  /// The plan behind it depends on its fact.
  bool barrier = false;
};

/// A physical plan and its parts.
struct LoweredPlan {
  plan::PhysicalPlan plan;
  TableRefs tables;                 // as plan.tables
  std::vector<ServerStage> stages;  // the servers': plan.stages without the session's
  std::vector<JoinChoice> joins;    // of two flows of servers
  std::vector<GroupChoice> groups;  // on servers
};

/// A pipeline with an open end, at a site: a stage of servers, or the session's.
struct Flow {
  static constexpr uint32_t kSession = UINT32_MAX;

  plan::Pipeline pipeline;  // pipeline.stage is the site
  Layout layout;            // of its output

  bool on_servers() const { return pipeline.stage != kSession; }
  const plan::Schema& schema() const { return pipeline.schemas.back(); }
  double rows() const { return pipeline.estimates.back().rows; }
};

/// Collects pipelines in the order in which they are closed, then sorts them into their stages' order. Until
/// Finish their numbers are in the order of closing.
class PlanBuilder {
 public:
  /// Adds a table to the plan.
  uint32_t AddTable(std::shared_ptr<const proto::Table> table);
  /// Adds a stage of servers. Its number stands for it until Finish.
  uint32_t AddStage(ServerStage stage);
  /// Moves the stage's pipelines to another one, which goes on.
  void MoveStage(uint32_t from, uint32_t to);
  ServerStage& stage(uint32_t number) { return *stages_[number]; }
  /// Ends the stage after its last pipeline. Returns its number in the plan: stages run in this order.
  uint32_t EndStage(uint32_t number);

  /// Opens a pipeline over another one's output, at the same site or in the session.
  absl::StatusOr<Flow> Open(uint32_t before, uint32_t site, Layout layout, bool in_order = false) const;
  /// Adds a step, after which columns lie as `layout` says.
  absl::Status Append(plan::StepNode step, Layout layout, double rows, Flow& flow) const;
  /// Ends a pipeline; returns its number.
  uint32_t Close(Flow flow, plan::SinkNode sink);
  /// Closes the flow, and continues with the sink's output in a pipeline of the session.
  absl::StatusOr<Flow> Through(Flow flow, plan::SinkNode sink, Layout layout, bool in_order = false);

  /// For EXPLAIN. About closed pipelines.
  void Note(const JoinChoice& join) { joins_.push_back(join); }
  void Note(const GroupChoice& groups) { groups_.push_back(groups); }
  /// The number of closed pipelines.
  uint32_t pipelines() const { return static_cast<uint32_t>(plan_.pipelines.size()); }

  plan::Pipeline& pipeline(uint32_t number) { return plan_.pipelines[number]; }
  const plan::PhysicalPlan& draft() const { return plan_; }
  plan::PhysicalPlan& draft() { return plan_; }
  const TableRefs& tables() const { return tables_; }

  /// Makes the output of the session's last pipeline the result. Checks the plan.
  absl::StatusOr<LoweredPlan> Finish();

 private:
  void Renumber(const std::vector<uint32_t>& number_of);

  plan::PhysicalPlan plan_;  // without stages until Finish
  TableRefs tables_;
  std::vector<std::optional<ServerStage>> stages_;
  std::vector<uint32_t> ended_;  // stages, in their order in the plan
  std::vector<JoinChoice> joins_;
  std::vector<GroupChoice> groups_;
};

}  // namespace nam::optimizer
