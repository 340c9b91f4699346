#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/cardinality.h"
#include "optimizer/join_choice.h"
#include "optimizer/join_graph.h"
#include "optimizer/join_keys.h"
#include "optimizer/lower_tree.h"
#include "optimizer/plan_builder.h"
#include "optimizer/slots.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// The lowering of one tree, operator by operator. Every function returns the flow of its node's rows;
/// unneeded columns may be missing from it.
class TreeLowering {
 public:
  TreeLowering(const LoweringOptions& options, const StageFacts& facts) : options_(options), facts_(facts) {}

  absl::StatusOr<LoweredTree> Run(const plan::logical::Query& query);

 private:
  using Node = plan::logical::Node;
  using Column = plan::logical::Column;

  /// `rows_wanted`: so many first rows are enough; -1: all.
  absl::StatusOr<Flow> Lower(const Node& node, const ColumnSet& needed, int64_t rows_wanted = -1);
  /// As Lower, with the rows in the session.
  absl::StatusOr<Flow> LowerHere(const Node& node, const ColumnSet& needed, int64_t rows_wanted = -1);

  // lower_tree.cc
  absl::StatusOr<Flow> LowerValues(const Node& node);
  absl::StatusOr<Flow> LowerFileScan(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerFilter(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerProject(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerSort(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerLimit(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerSeries(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerWindow(const Node& node, const ColumnSet& needed);

  // lower_with.cc
  /// A common table, which several consumers read.
  struct CommonTable {
    uint32_t pipeline = 0;
    size_t columns = 0;
    uint32_t parts = 0;  // in scratch memory; 0: the session has its rows
    double rows = 0;     // in the parts
  };
  absl::StatusOr<Flow> LowerWith(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerCteScan(const Node& node, const ColumnSet& needed);
  /// Opens all of its rows for one more consumer.
  absl::StatusOr<Flow> OpenCommonTable(const CommonTable& table);
  /// Whether so many rows of a common table go to scratch memory.
  bool IsShared(const Flow& flow) const;
  /// Ends the flow by parts in scratch memory.
  CommonTable ToParts(Flow flow);
  /// Whether a stage makes it from parts.
  bool IsOfParts(const Flow& flow);
  /// Whether every server may read all of it, by way of scratch memory.
  bool CanBeWhole(const Flow& flow) const;
  /// … and makes it so. Parts that are already in scratch memory are read from there.
  absl::StatusOr<Flow> ToAllServers(Flow flow);

  /// The conditions of a join of two flows, over their columns.
  struct JoinOf {
    plan::JoinKind kind = plan::JoinKind::kInner;
    std::vector<plan::Expr> left, right;  // keys: of the probed and of the built side
    std::vector<plan::Expr> residuals;
    std::vector<plan::Expr> compared;  // plan::ProbeStep::compared
    bool null_aware = false;
    plan::ColumnRef mark;              // for kMark
    ColumnSet behind;                  // columns that its conditions, or later operators, read
    double values = 0;                 // of the keys, in which the sides meet; 0: each probed row stays
    double heaviest = 0;               // the share of the probe side's rows with the most common key
    std::optional<JoinChoice> choice;  // if both sides are on servers: Meet decides
  };
  /// The place of a join.
  enum class Place : uint8_t {
    kSession,
    kServers,   // those of the probed flow, which all build everything
    kParts,     // servers that claim parts
    kExchange,  // all servers, in a streamed stage: each joins its received rows of both sides
  };

  // lower_joins.cc
  /// Lowers scans, and inner joins of any inputs.
  absl::StatusOr<Flow> LowerJoinBlock(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerJoinTree(const JoinGraph& graph, const JoinTree& tree, const ColumnSet& needed,
                                     bool driving);
  /// Lowers a scan by servers. The driving one may read whole tuples.
  absl::StatusOr<Flow> LowerServersScan(const JoinGraph::Input& input, const ColumnSet& needed, bool driving);
  /// A join by these keys, whose output has the needed columns. `below` becomes what it reads of its sides.
  JoinOf JoinBy(plan::JoinKind kind, JoinKeys keys, const ColumnSet& needed, ColumnSet& below) const;
  /// Lowers a record table whose rows the session's transaction finds.
  absl::StatusOr<Flow> LowerTableScan(const Node& node, const ColumnSet& needed,
                                      const std::vector<plan::Expr>& conditions, int64_t rows_wanted);
  /// Adds the tables that servers read to the plan. Prepares record tables, and takes their estimates.
  absl::Status AddTables(JoinGraph& graph);
  absl::StatusOr<Flow> LowerJoin(const Node& node, const ColumnSet& needed);
  /// Lowers a semi join with a stage's output over parts before inner joins; nullopt, with `build` unchanged,
  /// if that is not worthwhile.
  std::optional<absl::StatusOr<Flow>> LowerSemiJoinFirst(const Node& node, const ColumnSet& needed,
                                                         Flow& build);

  // join_flows.cc
  absl::StatusOr<Flow> Join(JoinOf join, Flow probed, Flow built);
  /// Brings the sides of a join to where it can be made. May swap those of an inner join.
  absl::StatusOr<Place> Meet(JoinOf& join, Flow& probed, Flow& built);
  void NoteJoin(const JoinOf& join, uint32_t build);
  /// The rows of a join of sides with so many rows.
  double RowsOf(const JoinOf& join, double probed, double built) const;
  /// Whether every server can compute the flow's rows by itself: they are few, or no more than `rows`, and
  /// come from constants of the plan.
  bool IsOfConstants(const Flow& flow, double rows) const;
  /// Whether an inner join's only key is unique in the table that is built.
  bool IsUnique(const JoinOf& join, const Flow& built) const;
  /// The probe of a join by these keys, and the columns after it: over rows that lie as `probed` says, with a
  /// build side whose payload lies as `payload` says.
  struct ProbeAndLayout {
    plan::ProbeStep step;
    Layout after;
  };
  static absl::StatusOr<ProbeAndLayout> ProbeOf(const JoinOf& join, uint32_t build,
                                                std::vector<plan::Expr> keys, const Layout& probed,
                                                const Layout& payload);
  absl::StatusOr<Flow> JoinByParts(const JoinOf& join, Flow probed, Flow built);
  /// The treatment of a side's rows with a NULL key, which have no partners.
  enum class NullKeys : uint8_t {
    kLeftOut,
    kWritten,  // the join emits them
    kCounted,  // the join asks whether there are any
  };
  /// Ends a side of a join by parts of its keys. Returns the sink's output, its columns, and the slots of its
  /// keys.
  struct Side {
    uint32_t pipeline = 0;
    Layout layout;
    plan::Schema rows;
    std::vector<uint32_t> keys;
    double row_count = 0;
  };
  /// Reduces a side's rows to what the join and later operators need; returns the slots of their keys, which
  /// may have been computed. Filters rows with a NULL key if these are to be dropped.
  absl::StatusOr<std::vector<uint32_t>> KeepForJoin(std::vector<plan::Expr> keys, const ColumnSet& behind,
                                                    NullKeys nulls, Flow& flow);
  absl::StatusOr<Side> ByParts(std::vector<plan::Expr> keys, const ColumnSet& behind, NullKeys nulls,
                               uint32_t parts, const plan::KeyDomain& domain, Flow flow);

  // choose_join.cc
  /// Chooses how a join of flows of servers is made. `whole`: every server can read all of the build side.
  JoinChoice Choose(const JoinOf& join, const Flow& probed, const Flow& built, bool whole);
  GroupCosts CostsOfGroups(double rows, double groups, const plan::Schema& schema) const;
  /// Whether a build side of so many rows exceeds a server's memory for it.
  bool IsTooLarge(double rows, const plan::Schema& schema) const;

  // lower_exchange.cc
  /// Why a join whose keys have hashes cannot be made in a streamed stage.
  NoExchange WhyNoExchange(const JoinOf& join, const Flow& probed, const Flow& built);
  /// Sends both sides by key to the servers, which build and probe in memory.
  absl::StatusOr<Flow> JoinByExchange(const JoinOf& join, Flow probed, Flow built);
  /// Sends a side's rows through an exchange, whose number is set later. Returns the flow that each member
  /// receives.
  Flow Exchange(Flow flow, plan::ExchangeSend send);

  // lower_groups.cc
  absl::StatusOr<Flow> LowerAggregate(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerDistinct(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerDistinctOn(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerSetOperation(const Node& node, const ColumnSet& needed);
  /// Groups a flow, on servers or in the session; `layout` names the results. There are at most
  /// `groups_most`, as far as the keys tell.
  absl::StatusOr<Flow> Group(Flow flow, plan::AggregateSink sink, Layout layout, double groups_most);
  /// By parts or not; for about so many groups.
  GroupChoice ChooseGroups(const Flow& flow, const plan::AggregateSink& partial, double groups_most,
                           double groups) const;
  /// Whether groups of the flow may be so many that they go by parts.
  bool MayBeMany(const Flow& flow, double groups_most) const;
  /// For aggregates that take each value of their arguments once, or ignore repeats: groups by the keys and
  /// the arguments first, if these may be many, so that values go by parts. `calls` are over columns, the
  /// sink's over slots.
  absl::Status MakeDistinct(const std::vector<plan::Expr>& keys, const std::vector<plan::Aggregate>& calls,
                            plan::AggregateSink& sink, Flow& flow);
  /// The slots of arguments. With several, repeats each row for each of them, with NULLs in place of the
  /// others, which aggregates skip.
  absl::StatusOr<std::vector<uint32_t>> ExpandArguments(const std::vector<plan::Expr>& arguments, Flow& flow);
  /// Opens parts that servers have left, on other servers.
  absl::StatusOr<Flow> OpenParts(uint32_t before, uint32_t parts, const plan::AggregateSink& sink,
                                 Layout layout, double rows);
  /// Ends the flow's stage. Returns its fact, or `expected` if that is unknown.
  StageFact End(uint32_t stage, const StageFact& expected, bool barrier);

  /// Wishes for the order if an index of a record table below may have it.
  void WishFor(const std::vector<plan::OrderKey>& order, const Node& node);

  /// Continues a flow of servers in the session. With an order (slots) and a number of wanted rows servers
  /// leave no others.
  absl::StatusOr<Flow> ToSession(Flow flow, std::vector<plan::Order> order = {}, int64_t rows_wanted = -1);
  /// Sorts all rows of the flow in the session, in scratch memory if they are many. Returns the sort's
  /// pipeline.
  absl::StatusOr<uint32_t> CloseSorted(Flow flow, std::vector<plan::Order> order);
  /// Whether servers may have so many of its rows to sort that these become runs.
  bool MakesRuns(const Flow& flow) const;
  /// Whether so many first rows of an order are kept in memory; otherwise all rows are sorted.
  bool KeepsTop(const plan::Schema& schema, int64_t rows_wanted) const;
  /// The slots of expressions over the flow's columns; computes those that are not columns yet.
  absl::StatusOr<std::vector<uint32_t>> SlotsOf(const std::vector<plan::Expr>& exprs, Flow& flow);
  absl::StatusOr<std::vector<plan::Order>> OrderOf(const std::vector<plan::OrderKey>& keys, Flow& flow);
  /// Leaves exactly these columns, in this order.
  absl::Status Arrange(const std::vector<Column>& columns, Flow& flow);
  /// Names for intermediate results: columns of no relation.
  plan::ColumnRef Unnamed() { return {-2, unnamed_++}; }

  const LoweringOptions options_;
  const StageFacts& facts_;
  PlanBuilder builder_;
  Cardinalities cardinalities_;
  std::vector<TransactionScan> transaction_scans_;  // without their pipelines
  std::vector<uint32_t> prepared_tables_;
  /// An order that a scan's rows should have, because the first of them would be enough.
  struct OrderWish {
    int relation = -1;
    std::vector<uint32_t> columns;  // of the table
    bool met = false;
  };
  std::optional<OrderWish> wish_;
  std::map<int, CommonTable> common_tables_;
  int unnamed_ = 0;
  uint32_t exchanges_ = 0;  // so far
};

/// No guess of a number of rows is assumed to be further off.
inline constexpr double kGuessesAreOff = 100;

/// An upper bound of a flow's rows, unless joins make more of them than estimated; for a join by parts,
/// unless the estimate is further off than any is assumed to be.
double RowsMost(const Flow& flow, const TableRefs& tables);

/// Whether a key has a hash by which its rows can go by parts.
bool HasHash(const plan::Expr& key);
/// Whether rows can go by parts of these keys: each has a hash, and equal keys meet in one part.
bool MayGoByParts(const std::vector<plan::Expr>& keys);

/// The bytes of a row as it travels.
double BytesOfRow(const plan::Schema& schema);
/// The bytes of rows in a join table.
double BytesOfRows(double rows, const plan::Schema& schema);
/// The number of parts with about a MiB of these rows each.
uint32_t PartsOfRows(double rows, const plan::Schema& schema);

/// 0A000 if the engine cannot compare values of the type as keys of groups and orders.
absl::Status CheckKey(const Type& type);
/// A node's columns in their order.
Layout LayoutOf(const std::vector<plan::logical::Column>& columns);
/// `expr` where the condition is true, otherwise NULL.
plan::Expr Where(const plan::Expr& condition, plan::Expr expr);
absl::Status NotSupported(const std::string& what);

}  // namespace nam::optimizer
