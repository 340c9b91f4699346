#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/join_cost.h"
#include "optimizer/plan_builder.h"
#include "partitioner/record_row.h"
#include "plan/join_algorithm.h"
#include "plan/logical.h"
#include "plan/physical.h"
#include "sql/record_access.h"

namespace nam::optimizer {

/// A scan of a record table whose rows the session's transaction finds.
struct TransactionScan {
  uint32_t pipeline = 0;                                    // in the plan
  uint32_t table = 0;                                       // in the plan
  std::vector<plan::Expr> conditions;                       // over columns of table 0
  std::shared_ptr<const partitioner::RecordLayout> layout;  // the table's
  /// Leads to all rows that meet `conditions`, which it borrows; the plan checks its result.
  sql::AccessPath path;
  int64_t rows_wanted = -1;  // probably enough; -1: all
};

/// The session's knowledge of record tables, at the snapshot of the transaction under way.
class RecordTables {
 public:
  virtual ~RecordTables() = default;
  virtual uint64_t snapshot() const = 0;
  /// Whether compute servers may read them; otherwise the session joins them, and prepares nothing.
  virtual bool servers_read() const { return true; }
  /// Prepares a scan by compute servers of the rows that meet these conditions, over columns of table 0.
  /// Returns the table with an uncounted upper bound of its rows, for estimates.
  virtual absl::StatusOr<std::shared_ptr<const proto::Table>> Prepare(
      const std::shared_ptr<const proto::Table>& table, const std::vector<plan::Expr>& conditions) = 0;
};

struct LoweringOptions {
  /// Reads all columns of streamed tables, like rows that are stored one after the other.
  bool whole_tuples = false;
  /// How groups of servers are merged. All but kDist are for callers that run several stages.
  plan::AggregateAlgorithm aggregate = plan::AggregateAlgorithm::kDist;
  /// Whether rows of an order that exceed a server's or the session's memory go to scratch memory.
  plan::Runs runs = plan::Runs::kNever;
  /// The most bytes of an order's first rows on one server and in the session; beyond it all rows are sorted.
  uint64_t top_bytes_max = UINT64_MAX;
  /// How the sides of joins of servers meet. kAuto: as the cost model says, but not pipelined if the build
  /// side is expected to take more than `build_bytes_max` on a server. A join that a forced algorithm cannot
  /// make is pipelined.
  plan::JoinAlgorithm join = plan::JoinAlgorithm::kPipelined;
  uint64_t build_bytes_max = UINT64_MAX;
  /// As far as known: for estimates.
  ClusterShape cluster;
  /// Null: the session scans record tables as a whole, and joins them.
  RecordTables* records = nullptr;
};

/// Facts of stages that have run, by their numbers in the plan.
using StageFacts = std::map<uint32_t, StageFact>;

struct LoweredTree {
  LoweredPlan lowered;
  std::vector<TransactionScan> transaction_scans;
  /// For each RecordTables::Prepare, in their order: the table of the plan.
  std::vector<uint32_t> prepared_tables;
};

/// Makes the physical plan of a query's tree, which Unnest has left without dependent joins.
///
///     inner joins of tables, and scans of columnar ones; what filters or projects their rows, ──▶ a stage of
///     and joins them if all are columnar                                                          servers
///     everything above, and what servers have left; scans of single record tables  ──▶ the session's stage
///
/// Stages of servers run one after the other; the session takes in the result of each. If both sides of a
/// join come from servers, the build side's stage runs first. Groups that are many go by parts instead: the
/// next operators are a further stage of servers, which claims the parts.
///
///     … ──▶ groups, few  ──▶ pages ──▶ the session merges
///                    many ──▶ parts in scratch memory ──▶ a stage of servers merges ──▶ …
///
/// The sides of a join whose build side exceeds a server's memory go by parts, too: a stage for each side,
/// then one whose tasks join the sides of a part.
///
///     build side ──▶ parts ─┐
///     probe side ──▶ parts ─┴▶ a stage of servers joins ──▶ …
///
/// The output of a stage over parts may be a build side beside a scan, too: every server reads all of it.
///
///     parts ──▶ a stage of servers merges ──▶ parts ══▶ all servers build ─▶ the scan's rows probe ──▶ …
///
/// A barrier after the stage that groups tells whether its groups are many. `facts` describe the results of
/// stages that are barriers. A stage's plan depends on the query, the options and the facts of earlier stages
/// alone: with one more fact the plan stays the same up to that stage, and may differ after it. Where a fact
/// is missing, the stage's result is assumed.
///
/// 0A000 if the engine has no operator for it; 54001 if an expression is too deep.
absl::StatusOr<LoweredTree> LowerTree(const plan::logical::Query& query, const LoweringOptions& options = {},
                                      const StageFacts& facts = {});

}  // namespace nam::optimizer
