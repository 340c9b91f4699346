#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/plan_builder.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// A scan of a record table, whose rows the session's transaction finds.
struct TransactionScan {
  uint32_t pipeline = 0;               // of the plan
  uint32_t table = 0;                  // of the plan
  std::vector<plan::Expr> conditions;  // over columns of table 0; the plan checks them as well
};

struct LoweringOptions {
  /// All columns of tables that are streamed are read, as from rows that are stored one after the other.
  bool whole_tuples = false;
  /// Groups on servers go by parts to a further stage of servers: for those who run several.
  enum class Parts : uint8_t { kIfMany, kNever, kAlways };
  Parts parts = Parts::kNever;
};

/// Facts of stages that have run, by their numbers in the plan.
using StageFacts = std::map<uint32_t, StageFact>;

struct LoweredTree {
  LoweredPlan lowered;
  std::vector<TransactionScan> transaction_scans;
};

/// The physical plan of a query's tree, which Unnest has left without dependent joins.
///
///     inner joins of columnar tables, and what filters, projects or joins their rows  ──▶ a stage of servers
///     everything above, and what servers have left                                    ──▶ the session's
///     stage
///
/// Stages of servers run one after the other; the session takes in what each leaves. Where a build side comes
/// from servers and the probe side too, the build side's stage runs first. Groups that are many go by parts
/// instead: what follows is a further stage of servers, which claims the parts.
///
///     … ──▶ groups, few  ──▶ pages ──▶ the session merges
///                    many ──▶ parts in scratch memory ──▶ a stage of servers merges ──▶ …
///
/// Whether they are many is known at the barrier behind their stage. `facts` say what came of stages that are
/// barriers. The plan depends on nothing but the query, the options and the facts, and a stage on the facts
/// of those before it alone: with one more fact the plan is the same up to that stage, and anew behind it. Of
/// stages without a fact what comes is assumed.
///
/// 0A000 for what the engine has no operator for; 54001 if an expression is too deep.
absl::StatusOr<LoweredTree> LowerTree(const plan::logical::Query& query, const LoweringOptions& options = {},
                                      const StageFacts& facts = {});

}  // namespace nam::optimizer
