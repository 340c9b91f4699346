#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/join_choice.h"
#include "optimizer/lower_tree.h"
#include "optimizer/plan_builder.h"
#include "optimizer/slots.h"
#include "plan/logical.h"

namespace nam::optimizer {

/// The lowering of one tree, operator by operator. Every function returns the flow of its node's rows;
/// columns that are not needed may be missing from it.
class TreeLowering {
 public:
  TreeLowering(const LoweringOptions& options, const StageFacts& facts) : options_(options), facts_(facts) {}

  absl::StatusOr<LoweredTree> Run(const plan::logical::Query& query);

 private:
  using Node = plan::logical::Node;
  using Column = plan::logical::Column;

  /// `rows_wanted`: so many first rows are enough; -1: all.
  absl::StatusOr<Flow> Lower(const Node& node, const ColumnSet& needed, int64_t rows_wanted = -1);
  /// Lower, and the rows come to the session.
  absl::StatusOr<Flow> LowerHere(const Node& node, const ColumnSet& needed, int64_t rows_wanted = -1);

  // lower_tree.cc
  absl::StatusOr<Flow> LowerValues(const Node& node);
  absl::StatusOr<Flow> LowerFilter(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerProject(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerSort(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerLimit(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerSeries(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerWindow(const Node& node, const ColumnSet& needed);

  // lower_with.cc
  /// What several consumers read.
  struct CommonTable {
    uint32_t pipeline = 0;
    size_t columns = 0;
    uint32_t parts = 0;  // in scratch memory; 0: the session has its rows
    double rows = 0;     // of parts
  };
  absl::StatusOr<Flow> LowerWith(const Node& node, const ColumnSet& needed, int64_t rows_wanted);
  absl::StatusOr<Flow> LowerCteScan(const Node& node, const ColumnSet& needed);
  /// All of its rows, for one more consumer.
  absl::StatusOr<Flow> OpenCommonTable(const CommonTable& table);
  /// Whether so many rows of a common table go to scratch memory.
  bool IsShared(const Flow& flow) const;
  /// The flow ends, by parts in scratch memory.
  CommonTable ToParts(Flow flow);
  /// Whether a stage makes it of parts.
  bool IsOfParts(const Flow& flow);
  /// Whether every server may read all of that, by way of scratch memory.
  bool CanBeWhole(const Flow& flow) const;
  /// … does so. What is parts in scratch memory already is read from there.
  absl::StatusOr<Flow> ToAllServers(Flow flow);

  /// What a join of two flows compares, over their columns.
  struct JoinOf {
    plan::JoinKind kind = plan::JoinKind::kInner;
    std::vector<plan::Expr> left, right;  // keys: of what is probed, and of what is built
    std::vector<plan::Expr> residuals;
    std::vector<plan::Expr> compared;  // plan::ProbeStep::compared
    bool null_aware = false;
    plan::ColumnRef mark;  // of kMark
    ColumnSet behind;      // what its conditions look at, or something behind it
    double rows = -1;      // that are expected; -1: as the flows say
    double heaviest = 0;   // the share of the probe side's rows with the most common key
    /// Decided before its sides are there. Otherwise Meet decides, if both are on servers.
    std::optional<JoinChoice> choice;
  };
  /// Who makes a join.
  enum class Place : uint8_t {
    kSession,
    kServers,   // those of the probed flow, all of which build all
    kParts,     // those who claim parts
    kExchange,  // all servers, in a streamed stage: each joins what it gets of both sides
  };

  // lower_joins.cc
  /// Scans of columnar tables and inner joins of them: as a star, if they are connected.
  std::optional<absl::StatusOr<Flow>> LowerStarBlock(const Node& node, const ColumnSet& needed);
  /// A record table, whose rows the session's transaction finds.
  absl::StatusOr<Flow> LowerTableScan(const Node& node, const ColumnSet& needed,
                                      const std::vector<plan::Expr>& conditions, int64_t rows_wanted);
  /// Of a star's record tables, in the order of RecordTables::Prepare; the query gets their estimates.
  absl::StatusOr<std::vector<size_t>> PrepareRecords(StarQuery& query);
  absl::StatusOr<Flow> LowerJoin(const Node& node, const ColumnSet& needed);
  /// A semi join with what a stage makes of parts, made before inner joins; nothing, and `build` as it was,
  /// if it is not.
  std::optional<absl::StatusOr<Flow>> LowerSemiJoinFirst(const Node& node, const ColumnSet& needed,
                                                         Flow& build);

  // lower_star_parts.cc
  /// Of a star's joins: those before the first that is not pipelined, and that one, if there is one.
  struct StarChoices {
    std::vector<JoinChoice> pipelined;
    std::optional<JoinChoice> first_by_parts;
  };
  absl::StatusOr<StarChoices> ChooseStarJoins(const Plan& star, const TableRefs& tables) const;
  /// A star, some of whose joins are made as those of flows. number_of[t] becomes the plan's number of table
  /// t. Columns are named as the star names them.
  absl::StatusOr<Flow> LowerStarFrom(Plan star, const TableRefs& tables, const StarChoices& choices,
                                     std::vector<uint32_t>& number_of);
  /// Some of its tables, the first of them driving, as a stage of their own; with its first `joins`.
  absl::StatusOr<Flow> LowerSubStar(const Plan& star, const TableRefs& tables, const std::vector<int>& some,
                                    size_t joins, const ColumnSet& wanted, std::vector<uint32_t>& number_of);

  // join_flows.cc
  absl::StatusOr<Flow> Join(JoinOf join, Flow probed, Flow built);
  /// Brings the sides of a join to where it can be made. Those of an inner join may be swapped.
  absl::StatusOr<Place> Meet(JoinOf& join, Flow& probed, Flow& built);
  void NoteJoin(const JoinOf& join, uint32_t build);
  /// Of the probe side's rows those with a partner, if there are fewer of these than values of its key.
  double MatchingRows(const JoinOf& join, double probed, double built) const;
  /// The probe of a join by these keys, and the columns behind it: over rows that lie as `probed` says, with
  /// a build side whose payload lies as `payload` says.
  struct ProbeAndLayout {
    plan::ProbeStep step;
    Layout after;
  };
  static absl::StatusOr<ProbeAndLayout> ProbeOf(const JoinOf& join, uint32_t build,
                                                std::vector<plan::Expr> keys, const Layout& probed,
                                                const Layout& payload);
  absl::StatusOr<Flow> JoinByParts(const JoinOf& join, Flow probed, Flow built);
  /// What becomes of a side's rows with a NULL as a key, which have no partners.
  enum class NullKeys : uint8_t {
    kLeftOut,
    kWritten,  // they leave the join
    kCounted,  // somebody asks whether there are any
  };
  /// A side of a join ends, by parts of its keys. Returns what the sink has left, its columns, and the slots
  /// of its keys.
  struct Side {
    uint32_t pipeline = 0;
    Layout layout;
    plan::Schema rows;
    std::vector<uint32_t> keys;
    double row_count = 0;
  };
  /// What a side's rows keep for the join and what is behind it; the slots of their keys, which may have been
  /// computed. Rows with a NULL as a key are filtered if they are to be left out.
  absl::StatusOr<std::vector<uint32_t>> KeepForJoin(std::vector<plan::Expr> keys, const ColumnSet& behind,
                                                    NullKeys nulls, Flow& flow);
  absl::StatusOr<Side> ByParts(std::vector<plan::Expr> keys, const ColumnSet& behind, NullKeys nulls,
                               uint32_t parts, const plan::KeyDomain& domain, Flow flow);

  // choose_join.cc
  /// How a join of flows of servers is made. `whole`: every server can read all of the build side.
  JoinChoice Choose(const JoinOf& join, const Flow& probed, const Flow& built, bool whole);
  /// … and join `j` of a star.
  absl::StatusOr<JoinChoice> Choose(const Plan& star, const TableRefs& tables, size_t j) const;
  JoinChoice Choose(const JoinWork& work, const JoinPossibilities& can) const;
  GroupCosts CostsOfGroups(double rows, double groups, const plan::Schema& schema) const;
  /// Whether a build side of so many rows is larger than a server's memory for it.
  bool IsTooLarge(double rows, const plan::Schema& schema) const;

  // lower_exchange.cc
  /// Why a join whose keys have hashes cannot be made in a streamed stage.
  NoExchange WhyNoExchange(const JoinOf& join, const Flow& probed, const Flow& built);
  /// Both sides go by key to the servers, which build and probe in memory.
  absl::StatusOr<Flow> JoinByExchange(const JoinOf& join, Flow probed, Flow built);
  /// A side's rows go through an exchange, whose number is still to be said. Returns what each member
  /// receives.
  Flow Exchange(Flow flow, plan::ExchangeSend send);

  // lower_groups.cc
  absl::StatusOr<Flow> LowerAggregate(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerDistinct(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerDistinctOn(const Node& node, const ColumnSet& needed);
  absl::StatusOr<Flow> LowerSetOperation(const Node& node, const ColumnSet& needed);
  /// Groups a flow, here or there; `layout` names the results. There are at most `groups_most`, as far as
  /// the keys tell.
  absl::StatusOr<Flow> Group(Flow flow, plan::AggregateSink sink, Layout layout, double groups_most);
  /// By parts or not; of about so many groups.
  GroupChoice ChooseGroups(const Flow& flow, const plan::AggregateSink& partial, double groups_most,
                           double groups) const;
  /// Whether groups of the flow may be so many that they go by parts.
  bool MayBeMany(const Flow& flow, double groups_most) const;
  /// Aggregates that look at each value of their arguments once, or ignore repeats: groups by the keys and
  /// the arguments first, if these may be many, so that values go by parts. `calls` are over columns, the
  /// sink's over slots.
  absl::Status MakeDistinct(const std::vector<plan::Expr>& keys, const std::vector<plan::Aggregate>& calls,
                            plan::AggregateSink& sink, Flow& flow);
  /// The slots of arguments. Of several: each row once for each of them, which stands there beside NULLs in
  /// the place of the others, since aggregates pass over NULLs.
  absl::StatusOr<std::vector<uint32_t>> ExpandArguments(const std::vector<plan::Expr>& arguments, Flow& flow);
  /// What servers have left by parts, on other servers.
  absl::StatusOr<Flow> OpenParts(uint32_t before, uint32_t parts, const plan::AggregateSink& sink,
                                 Layout layout, double rows);
  /// Ends the flow's stage. Returns what came of it; `expected`, if that is not known.
  StageFact End(uint32_t stage, const StageFact& expected, bool barrier);
  /// At most so many values an expression over columns has; of several expressions: rows of values.
  double ValuesOf(const std::vector<plan::Expr>& exprs) const;
  void NoteValues(const Node& scan);

  /// The order, as a wish, if an index of a record table below may have it.
  void WishFor(const std::vector<plan::OrderKey>& order, const Node& node);

  /// What servers would leave flows on in the session. With an order (slots) and a number of rows that are
  /// wanted servers leave no others.
  absl::StatusOr<Flow> ToSession(Flow flow, std::vector<plan::Order> order = {}, int64_t rows_wanted = -1);
  /// All rows of the flow go into a sort of the session, in scratch memory if they are many. Returns its
  /// pipeline.
  absl::StatusOr<uint32_t> CloseSorted(Flow flow, std::vector<plan::Order> order);
  /// Whether servers may have so many of its rows to sort that these become runs.
  bool MakesRuns(const Flow& flow) const;
  /// Whether so many first rows of an order are kept in memory; more are sorted like all.
  bool KeepsTop(const plan::Schema& schema, int64_t rows_wanted) const;
  /// The slots of expressions over the flow's columns: what is no column yet is computed.
  absl::StatusOr<std::vector<uint32_t>> SlotsOf(const std::vector<plan::Expr>& exprs, Flow& flow);
  absl::StatusOr<std::vector<plan::Order>> OrderOf(const std::vector<plan::OrderKey>& keys, Flow& flow);
  /// Exactly these columns, in this order.
  absl::Status Arrange(const std::vector<Column>& columns, Flow& flow);
  /// Columns of no relation, to name what is computed on the way.
  plan::ColumnRef Unnamed() { return {-2, unnamed_++}; }

  const LoweringOptions options_;
  const StageFacts& facts_;
  PlanBuilder builder_;
  std::map<plan::ColumnRef, double> values_of_;     // of columns with statistics: how many there are
  std::map<plan::ColumnRef, double> heaviest_of_;   // … and the share of rows with the most common one
  std::vector<TransactionScan> transaction_scans_;  // without their pipelines
  std::vector<uint32_t> prepared_tables_;
  /// An order in which a scan's rows would be welcome, as the first of them would be enough.
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

/// Rows that a flow has at most, unless joins make more of them than estimated; of a join by parts, unless
/// the estimate is further off than any is taken to be.
double RowsMost(const Flow& flow, const TableRefs& tables);

/// Whether a key has a hash by which its rows can go by parts.
bool HasHash(const plan::Expr& key);
/// … and equal keys meet in one part.
bool MayGoByParts(const std::vector<plan::Expr>& keys);

/// How much of a table's rows have the most common value of a column, as far as its statistics say.
double ShareOfMostCommon(const proto::Table& table, int column);

/// … of a key over the tables of a star.
double HeaviestOf(const plan::Expr& key, const TableRefs& tables);
/// What a star's joins from `first` on look at, and what is put out.
ColumnSet NeededFrom(const Plan& star, size_t first);

/// Of a row as it travels.
double BytesOfRow(const plan::Schema& schema);
/// In a table that joins look rows up in.
double BytesOfRows(double rows, const plan::Schema& schema);
/// How many parts have about a MiB of these rows each.
uint32_t PartsOfRows(double rows, const plan::Schema& schema);

/// A guess, to choose which side of a join is built.
double EstimatedRows(const plan::logical::Node& node);

/// 0A000 if the engine cannot compare values of the type as keys of groups and orders.
absl::Status CheckKey(const Type& type);
/// `expr` where the condition is true, otherwise NULL.
plan::Expr Where(const plan::Expr& condition, plan::Expr expr);
absl::Status NotSupported(const std::string& what);

}  // namespace nam::optimizer
