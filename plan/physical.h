#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plan/aggregate.h"
#include "plan/expression.h"
#include "plan/join_kind.h"
#include "plan/key_domain.h"
#include "plan/schema.h"
#include "plan/window.h"

/// A physical plan: a graph of pipelines as flat lists with indexes.
///
///     P0  scan supplier ──▶ build                                  ─┐
///     P1  scan date     ──▶ build                                   ├─ after
///     P2  scan lineorder ──▶ probe P0 ──▶ probe P1 ──▶ aggregate  ◀─┘
///
/// Pipelines, tables and stages are named by their place in the plan, columns by their slot in what flows:
/// Expr::column is {0, slot}. A plan that passed Check (plan/check.h) names nothing beside these lists, and
/// no expression of it asks for a value of another type than its slot has.
namespace nam::plan {

/// A version of a table.
struct TableRef {
  std::string name;
  uint64_t allocation = 0;
  bool records = false;

  bool operator==(const TableRef&) const = default;
};

/// Which server has which rows. `columns` are slots of the schema that it is stated for.
struct Distribution {
  enum class Kind : uint8_t { kAny, kSingle, kReplicated, kPartitioned };
  /// The loader's two functions, and the one of types/hash.h.
  enum class Function : uint8_t { kModulo, kXxh3, kHash };
  Kind kind = Kind::kAny;
  Function function = Function::kHash;
  uint32_t parts = 0;             // of kPartitioned: at least 1; otherwise 0
  std::vector<uint32_t> columns;  // of kPartitioned

  bool operator==(const Distribution&) const = default;
};

// ─── Groups

/// Groups. Partial results are keys, then states: see StatesOf (plan/flow.h).
struct AggregateSink {
  enum class Phase : uint8_t {
    kPartial,  // rows to states
    kMerge,    // states to states
    kFinal,    // states to results
    kWhole,    // rows to results
  };
  /// kMerge and kFinal read states: group_by[i] is slot i as it is, and an argument is a NULL of the type
  /// that kPartial's argument has.
  std::vector<Expr> group_by;
  std::vector<Aggregate> aggregates;
  Phase phase = Phase::kPartial;
  /// Of results (kFinal, kWhole): if no row comes, there is a group for each of these values of the first
  /// key, the other keys being NULL. The first key is an ExpandStep's number, these are its sets without
  /// keys.
  std::vector<uint32_t> totals;
  /// Of kPartial on servers. 0: the states are an attempt's result. Otherwise into how many parts they go by
  /// their keys, to scratch memory, if the attempt's groups become many; the result has then none of them.
  uint32_t parts = 0;
};

// ─── Joins

/// The side of a join that is looked up.
struct BuildSink {
  std::vector<Expr> keys;         // none: rows alone, for probes without keys
  std::vector<uint32_t> payload;  // slots of the input that probes may fetch; ascending
  bool unique = false;            // no key occurs twice: the loader has counted. Of one key alone
};

/// Looks every row's partners up. Keys that are NULL have none. Without keys every row of the build is a
/// candidate.
struct ProbeStep {
  uint32_t build = 0;  // the pipeline whose BuildSink is asked
  JoinKind kind = JoinKind::kInner;
  std::vector<Expr> keys;       // over the input; as many as the build has, of comparable types
  std::vector<uint32_t> keep;   // slots of the input that flow on; ascending
  std::vector<uint32_t> fetch;  // of the build's `payload`; ascending
  std::vector<Expr> residuals;  // over keep, then fetch: partners where one is not true are none
  /// Of a mark by one key without residuals: it is that of IN, NULL where it is not false for certain.
  bool null_aware = false;
  /// Of kMark and kNullAwareAnti, over keep, then fetch: what IN or ANY compares beside the keys. A match is
  /// a partner of which all are true; if there is none, but one of which none is false, the mark is NULL.
  /// None of them, and not null_aware: the mark is that of EXISTS. A kNullAwareAnti without them is NOT IN by
  /// its one key.
  std::vector<Expr> compared;
};
/// A probe's output is keep, then fetch (inner, left, right, full, single); keep alone (semi, the antis); or
/// keep, then the mark. Of sides that an outer join fills with NULLs all slots may be NULL.

// ─── Sources

/// What scans of tables have alike.
struct TableScan {
  uint32_t table = 0;             // of PhysicalPlan::tables
  std::vector<uint32_t> columns;  // that are read, of the table; ascending
  Schema slots;                   // what they hold, from the catalog (plan/table_schema.h)
  std::vector<Expr> filters;      // over `slots`; rows where all are true flow on
  std::vector<uint32_t> output;   // of `slots`; ascending. schemas[0] is slots[output[…]]
};

/// Reads chains of blocks.
struct BlockScan : TableScan {
  /// -1: every server needs all partitions. Otherwise a server that works on partition p of the table that
  /// its stage claims needs the one partition with the number of p's part by partition key
  /// `co_partitioned_key`. Stated by the optimizer; servers check it against both tables.
  int32_t co_partitioned_key = -1;
};

/// Reads the versions of records that a snapshot sees.
struct RecordScan : TableScan {
  uint64_t snapshot = 0;
  /// Ranges of stored primary keys, both ends included; none: the whole table.
  std::vector<std::string> range_low, range_high;
  /// The transaction's own writes before the statement: encoded rows, and stored keys that they hide.
  std::vector<std::string> own_rows, hidden_keys;
  /// `own_rows` are all that there are: the session has found them, by an index. No key is hidden then.
  bool own_rows_only = false;
};

/// Rows that are part of the plan.
struct ValuesSource {
  std::vector<std::vector<Value>> rows;
};

/// Rows at rest that the sink of an earlier pipeline left, in that sink's order if it has one. States of
/// groups (AggregateSink::Phase::kPartial, kMerge) are taken in as a whole, by who merges them and no step
/// before.
struct PageSource {
  uint32_t pipeline = 0;
  bool in_order = false;  // of a SortSink: by one task, in its order. Otherwise in any
};

/// Rows that an earlier pipeline sorted, each beside what window functions say of it.
struct WindowSource {
  uint32_t pipeline = 0;        // of a SortSink without limit
  uint32_t partition_keys = 0;  // of its order: the first so many are the partition's, …
  uint32_t order_keys = 0;      // … so many behind them the window's. More may follow
  std::vector<WindowCall> calls;
};
/// Its schema is the rows', then a slot for each call.

/// What other servers sent by the exchange. Sender and receiver run at the same time.
struct ExchangeReceive {
  uint32_t exchange = 0;
};

/// What a pipeline of an earlier stage of servers left by parts in scratch memory. The stage that begins with
/// it claims the parts; one task reads all of a part. Of a build side, which no stage begins with, every
/// server reads all parts.
struct PartitionSource {
  uint32_t pipeline = 0;  // of a PartitionSink, or of an AggregateSink with parts
  /// Of the latter, kFinal: the states of a part are merged when it is claimed, and its groups flow on.
  std::optional<AggregateSink> merge;
};

/// A join of what two pipelines of earlier stages of servers left, by parts of their keys, which are as many.
/// The stage that begins with it claims the parts: one task builds over the one's rows of a part, and probes
/// with the other's. Its rows are the probe's. What IN and NOT IN by the key ask of a whole build side is
/// known from all directories of a sink that counts NULLs: the build side of these has such a sink, and no
/// other.
struct JoinSource {
  uint32_t probed = 0;  // of a PartitionSink, by probe.keys as they are: whose rows probe
  BuildSink build;  // over what pipeline probe.build has left, of a PartitionSink by build.keys as they are
  ProbeStep probe;  // over what `probed` has left
};

using SourceNode = std::variant<BlockScan, RecordScan, ValuesSource, PageSource, ExchangeReceive,
                                WindowSource, PartitionSource, JoinSource>;

// ─── Steps

/// Rows where all conditions are true flow on.
struct FilterStep {
  std::vector<Expr> conditions;
};

struct ProjectStep {
  std::vector<Expr> outputs;
};

/// The first rows that come behind `offset` others, whichever these are; of rows that flow in an order, on
/// one thread, the first ones.
struct LimitStep {
  int64_t rows = -1;  // -1: all
  int64_t offset = 0;
  /// Slots. With some, and one row or more, and rows that flow on one thread in an order by these: the rows
  /// behind the last one that are like it in all of them flow on, too.
  std::vector<uint32_t> ties;
};

/// Each row once for each grouping set: the input's slots; then `keys`, NULL in sets that lack them; then the
/// set's number.
struct ExpandStep {
  std::vector<uint32_t> keys;               // slots
  std::vector<std::vector<uint32_t>> sets;  // places in `keys`; ascending
};

/// Each row as many times as an integer slot of it says: none if that is NULL, 0 or negative.
struct RepeatStep {
  uint32_t times = 0;
};

/// Each row once for each number of a series, in its order: the input's slots, then the number. The series is
/// first, first + step, … as long as `last` is not passed; it is empty if one of them is NULL. A step of 0 is
/// an error. All of one type, an integer or a decimal; or timestamps, `step` being an interval.
struct SeriesStep {
  Expr first, last, step;
};

using StepNode =
    std::variant<FilterStep, ProjectStep, ProbeStep, LimitStep, ExpandStep, RepeatStep, SeriesStep>;

// ─── Sinks

/// Whether all rows of an order may lie in scratch memory as sorted runs, which are merged when they are
/// read.
enum class Runs : uint8_t {
  kNever,
  kIfMany,  // if they do not fit the memory that is theirs
  kAlways,  // however few they are: for tests
};

/// Rows for the client or for the next stage.
struct ResultSink {
  std::vector<Order> order;
  int64_t limit = -1;  // the first rows in this order (any, if there is none) are enough; -1: all
  /// Of what servers claim, in an order without limit. An attempt's rows are its result in any order, or all
  /// of them are runs; a SortSink of the session by the same order takes them in, with no step before.
  Runs runs = Runs::kNever;
};

struct ExchangeSend {
  uint32_t exchange = 0;
  std::vector<uint32_t> keys;  // slots; none: to all receivers
  /// A pipeline of the stage that builds over what it receives by as many keys: rows of which its members'
  /// Bloom filters say that they have no partner are not sent. What receives them probes that build first,
  /// and drops rows without a partner.
  std::optional<uint32_t> filtered_by = std::nullopt;
};

/// Rows by parts in scratch memory, for a PartitionSource or a JoinSource.
struct PartitionSink {
  std::vector<uint32_t> keys;  // slots
  uint32_t parts = 1;
  /// Rows with a NULL as a key are counted in the directory and not written.
  bool counts_nulls = false;
  /// Known: the only key is of it, and parts are those of its permutation, not of a hash.
  KeyDomain domain = {};
};

/// Rows in an order, for later pipelines of this server. Rows with equal keys are in any order.
struct SortSink {
  std::vector<Order> order;  // none: any
  int64_t limit = -1;        // the first rows are enough; -1: all
  int64_t offset = 0;        // rows before these, which are left out
  Runs runs = Runs::kNever;  // of the session, in an order and of all rows
};

/// Rows go where those of a later pipeline go, as if that had made them; it waits for this one, and its sink
/// is complete when it is. A UNION ALL feeds a pipeline whose own source may be ValuesSource without rows.
struct FeedSink {
  uint32_t pipeline = 0;
};

using SinkNode =
    std::variant<BuildSink, AggregateSink, ResultSink, ExchangeSend, PartitionSink, SortSink, FeedSink>;

// ─── The graph

/// For EXPLAIN and for barriers, which compare it with what came. Nothing depends on it.
struct Estimate {
  double rows = 0;         // that leave
  double selectivity = 1;  // of a source: their share of those that it reads

  bool operator==(const Estimate&) const = default;
};

struct Pipeline {
  SourceNode source;
  std::vector<StepNode> steps;
  SinkNode sink;
  /// What leaves the source, then each step. Those of steps follow from the source's: they are stated so that
  /// every server checks that it understands the plan alike.
  std::vector<Schema> schemas;
  std::vector<Estimate> estimates;  // as schemas
  /// Pipelines that must be complete on this server first; ascending, each below this one's own number. No
  /// message is sent for it.
  std::vector<uint32_t> after;
  uint32_t stage = 0;
};

/// What a site of a query does without asking the coordinator. A star query has two: what all compute servers
/// do, then what is left for the session.
struct Stage {
  enum class Site : uint8_t { kServers, kSession };
  /// Of kServers the pipeline whose source's pieces servers claim; of kSession, which is the plan's last
  /// stage, its last pipeline, whose rows are the result.
  uint32_t claimed = 0;
  Distribution result;  // of what the claimed pipeline's sink leaves
  Site site = Site::kServers;
};

struct PhysicalPlan {
  std::vector<TableRef> tables;
  std::vector<Pipeline> pipelines;
  std::vector<Stage> stages;
};

}  // namespace nam::plan
