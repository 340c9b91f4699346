#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "optimizer/assignment.h"
#include "optimizer/join_choice.h"
#include "optimizer/lower_tree.h"
#include "optimizer/part_assignment.h"
#include "optimizer/stage_tables.h"
#include "plan/physical.h"
#include "proto/catalog.pb.h"
#include "proto/compute.pb.h"
#include "session/record_statements.h"
#include "session/session.h"

namespace nam::session {

/// One compute server's part in a stage, as EXPLAIN ANALYZE reports it.
struct ServerReport {
  proto::Member member;
  optimizer::Assignment::Share share;
  // With ANALYZE:
  proto::AttemptReply reply;  // of all its attempts together
  struct Turn {
    std::optional<size_t> share_of;  // position among the servers; nullopt: repeated work
    double started_ms = 0;
    double ended_ms = 0;
    uint32_t pieces = 0;
    uint32_t claims = 0;  // for these pieces; 0: without a work queue
  };
  std::vector<Turn> turns;            // its attempts
  std::vector<uint64_t> thread_rows;  // of the driving table, in pieces that its threads claimed
};

/// The parts among these servers' claims that skew has made large.
optimizer::CutParts CutPartsOf(const std::vector<ServerReport>& servers);

/// A stage of compute servers.
struct ExplainedStage {
  const optimizer::StageTables& tables;
  uint32_t parts = 0;     // claimed instead of a table
  bool streamed = false;  // nothing is claimed
  const std::vector<ServerReport>& servers;
  const std::vector<std::string>& why_read;  // by build side in `tables`; empty if it was multicast
};

/// The rows that left an operator.
struct ActualRows {
  uint64_t rows = 0;           // of all servers together; with `each_server`, the fewest on one server
  bool each_server = false;    // every server does all of the work, so servers are not added
  uint64_t most = 0;           // then: the most on one server
  std::optional<uint64_t> of;  // for a scan's own look-ups: rows looked up
  bool with_lookups = false;   // a scan's rows are those that its own look-ups, too, have left
};

/// A query's plan, and with ANALYZE its run.
struct ExplainedQuery {
  const plan::PhysicalPlan& plan;
  const optimizer::TableRefs& tables;  // as plan.tables
  const proto::StreamSettings& settings;
  std::vector<ExplainedStage> stages;                    // the servers': plan.stages without the session's
  const std::vector<optimizer::TransactionScan>& scans;  // by the session
  const std::vector<optimizer::JoinChoice>& joins;
  const std::vector<optimizer::GroupChoice>& groups;
  bool analyze = false;
  const std::vector<std::string>& replanned;  // why the plan that ran differs from the first one
  // With ANALYZE:
  std::vector<std::vector<uint64_t>> session_rows;  // by pipeline: rows that left the source, then each step
  std::vector<proto::PipelineCounters> session_counters;  // by pipeline
  size_t result_rows = 0;
  double result_ms = 0;

  /// A pipeline's operators are numbered: its source is 0, then its steps, then its sink.
  size_t SinkOf(uint32_t pipeline) const { return plan.pipelines[pipeline].steps.size() + 1; }
  double EstimatedRows(uint32_t pipeline, size_t node) const;
  std::optional<ActualRows> Actual(uint32_t pipeline, size_t node) const;
  /// By operator, in ms; nullopt where the model does not know it (optimizer/operator_cost.h).
  std::vector<std::optional<double>> Costs(uint32_t pipeline) const;
  /// The place of a pipeline in its stage, as in a server's counters.
  size_t PlaceInStage(uint32_t pipeline) const;
  /// The reason why a build side was READ, empty if it was multicast; null if the pipeline builds none of a
  /// table, and for a stage without multicast.
  const std::string* WhyRead(uint32_t pipeline) const;
  /// The access path by which the session reads a pipeline's record table; empty if it reads none.
  std::string PathOf(uint32_t pipeline) const;
  std::string ColumnName(uint32_t table, uint32_t column) const;
  /// The stage where the join with this build side is made: one of servers, or the session's, which is the
  /// last.
  uint32_t StageOfJoin(const optimizer::JoinChoice& join) const;
  /// The time in ms of a join's stages: its own, and those of its sides if these go by parts. nullopt without
  /// ANALYZE, and for joins in the session.
  std::optional<double> ActualMs(const optimizer::JoinChoice& join) const;
  /// The time of the stage that groups, and of the one that merges its parts.
  std::optional<double> ActualMs(const optimizer::GroupChoice& groups) const;

 private:
  double StageMs(uint32_t stage) const;
  bool OfSession(uint32_t pipeline) const { return plan.pipelines[pipeline].stage >= stages.size(); }
  std::optional<ActualRows> OfServers(uint32_t pipeline, size_t node) const;
  ActualRows WithLookups(uint32_t pipeline, const ActualRows& scan) const;
  std::optional<ActualRows> LeftBySink(uint32_t pipeline) const;
};

/// The lines of EXPLAIN, of at most 100 columns: each stage's pipelines, operator by operator, with estimated
/// rows and cost, and the assignment. With `analyze` also the actual rows beside the estimates, and for each
/// pipeline and server its counters: rows, blocks, bytes per memory server, time waiting, and for build sides
/// what came by multicast, or why it was READ.
std::vector<std::string> Explain(const ExplainedQuery& query);

/// The same as one JSON document.
std::string ExplainAsJson(const ExplainedQuery& query);

/// Precedes the lines of the query, which may be none.
std::vector<std::string> ExplainChange(const ExplainedChange& change, std::vector<std::string> query);
/// `query` is the query's document, or empty.
std::string ExplainChangeAsJson(const ExplainedChange& change, const std::string& query);

/// The lines, or the document, as EXPLAIN's result.
ResultSet QueryPlan(std::vector<std::string> lines);

}  // namespace nam::session
