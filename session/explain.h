#pragma once

#include <optional>
#include <string>
#include <vector>

#include "optimizer/assignment.h"
#include "optimizer/plan.h"
#include "proto/catalog.pb.h"
#include "proto/compute.pb.h"
#include "sql/bound_query.h"

namespace nam::session {

/// One compute server's part in a query, as EXPLAIN ANALYZE reports it.
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

/// The lines of EXPLAIN: the pipelined plan, from the sink down, and the assignment. With `analyze` each
/// pipeline's counters: rows, blocks, bytes per memory server, time waiting, and for build sides what came by
/// multicast, or, from `why_read` for each join, why it was READ.
std::vector<std::string> Explain(const sql::BoundQuery& query, const optimizer::Plan& plan,
                                 const optimizer::TableRefs& tables, const proto::StreamSettings& settings,
                                 const std::vector<ServerReport>& servers,
                                 const std::vector<std::string>& why_read, bool analyze);

}  // namespace nam::session
