#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "execution/sort/sorter.h"
#include "optimizer/assignment.h"
#include "optimizer/lower_tree.h"
#include "optimizer/plan.h"
#include "plan/physical.h"
#include "proto/catalog.pb.h"
#include "proto/compute.pb.h"

namespace nam::session {

/// One compute server's part in a stage, as EXPLAIN ANALYZE reports it.
struct ServerReport {
  proto::Member member;
  optimizer::Assignment::Share share;
  // With ANALYZE:
  proto::AttemptReply reply;  // of all its attempts together
  struct Turn {
    std::optional<size_t> share_of;  // position among the servers; none: handed out again
    double started_ms = 0;
    double ended_ms = 0;
    uint32_t pieces = 0;
    uint32_t claims = 0;  // by which it got them; 0: without a work queue
  };
  std::vector<Turn> turns;            // its attempts
  std::vector<uint64_t> thread_rows;  // of the driving table, in pieces that its threads claimed
};

/// A stage of compute servers.
struct ExplainedStage {
  const optimizer::Plan& star;
  const optimizer::TableRefs& tables;  // as star.tables
  bool extended = false;               // has build sides that `star` does not know
  uint32_t parts = 0;                  // that it claims; there is no star then
  const std::vector<ServerReport>& servers;
  const std::vector<std::string>& why_read;  // of each join of the star; empty if it was multicast
};

/// A query's plan, and with ANALYZE what became of it.
struct ExplainedQuery {
  const plan::PhysicalPlan& plan;
  const optimizer::TableRefs& tables;  // as plan.tables
  const proto::StreamSettings& settings;
  std::vector<ExplainedStage> stages;                    // of servers: plan.stages but the session's
  const std::vector<optimizer::TransactionScan>& scans;  // by the session
  bool analyze = false;
  const std::vector<std::string>& replanned;  // why what has run was not what was planned at first
  // With ANALYZE:
  std::vector<std::vector<uint64_t>> session_rows;  // by pipeline: that left the source, then each step
  std::map<uint32_t, execution::Sorter::RunTotals> session_sorts;  // by pipeline: of those in scratch memory
  size_t result_rows = 0;
  double result_ms = 0;

  /// Rows that left a pipeline's source (node 0) or step (node - 1), of all servers together. Nothing for
  /// what a source does by itself of what follows it.
  std::optional<uint64_t> ActualRows(uint32_t pipeline, size_t node) const;
  /// The place of a pipeline among those of its stage, as in a server's counters.
  size_t PlaceInStage(uint32_t pipeline) const;
  /// Of pipelines that build a side of a stage's star: which join's.
  std::optional<size_t> JoinOf(uint32_t pipeline) const;
  /// How a pipeline's record table is read by the session; empty if none is.
  std::string PathOf(uint32_t pipeline) const;
  std::string ColumnName(uint32_t table, uint32_t column) const;
};

/// The lines of EXPLAIN, of at most 100 columns: each stage's pipelines, step by step, and the assignment.
/// With `analyze` the actual rows beside the estimates, and of each pipeline and server its counters: rows,
/// blocks, bytes per memory server, time waiting, and for build sides what came by multicast, or why it was
/// READ.
std::vector<std::string> Explain(const ExplainedQuery& query);

/// The same as one JSON document.
std::string ExplainAsJson(const ExplainedQuery& query);

}  // namespace nam::session
