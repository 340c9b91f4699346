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
/// Pipelines, tables and stages are named by their place in the plan, columns by their slot in the flow:
/// Expr::column is {0, slot}. A plan that passed Check (plan/check.h) names nothing outside of these lists,
/// and every expression asks for a value of its slot's type.
namespace nam::plan {

/// A version of a table.
struct TableRef {
  std::string name;
  uint64_t allocation = 0;
  bool records = false;

  bool operator==(const TableRef&) const = default;
};

/// Tells which server has which rows. `columns` are slots of the schema that it describes.
struct Distribution {
  enum class Kind : uint8_t { kAny, kSingle, kReplicated, kPartitioned };
  /// The loader's two functions, and the one of types/hash.h.
  enum class Function : uint8_t { kModulo, kXxh3, kHash };
  Kind kind = Kind::kAny;
  Function function = Function::kHash;
  uint32_t parts = 0;             // kPartitioned: at least 1; otherwise 0
  std::vector<uint32_t> columns;  // kPartitioned

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
  /// kMerge and kFinal read states: group_by[i] is slot i, and an argument is a NULL of the type that
  /// kPartial's argument has.
  std::vector<Expr> group_by;
  std::vector<Aggregate> aggregates;
  Phase phase = Phase::kPartial;
  /// For results (kFinal, kWhole): if no row comes, there is a group for each of these values of the first
  /// key, the other keys being NULL. The first key is an ExpandStep's number, these are its sets without
  /// keys.
  std::vector<uint32_t> totals;
  /// For kPartial on servers. 0: the states are an attempt's result. Otherwise the number of parts by the
  /// groups' keys, in scratch memory, if the attempt's groups become many; the result then has none of them.
  uint32_t parts = 0;
};

// ─── Joins

/// The side of a join that probes search.
struct BuildSink {
  std::vector<Expr> keys;         // none: rows alone, for probes without keys
  std::vector<uint32_t> payload;  // slots of the input that probes may fetch; ascending
  bool unique = false;            // no key occurs twice, by the loader's count. For one key only
};

/// Finds every row's partners. NULL keys have none. Without keys every row of the build is a candidate.
struct ProbeStep {
  uint32_t build = 0;  // the pipeline with the BuildSink
  JoinKind kind = JoinKind::kInner;
  std::vector<Expr> keys;       // over the input; as many as the build has, of comparable types
  std::vector<uint32_t> keep;   // emitted slots of the input; ascending
  std::vector<uint32_t> fetch;  // of the build's `payload`; ascending
  std::vector<Expr> residuals;  // over keep, then fetch: all must be true for a partner
  /// For a mark by one key without residuals: it is that of IN, NULL unless it is certain.
  bool null_aware = false;
  /// For kMark and kNullAwareAnti, over keep, then fetch: what IN or ANY compares beside the keys. A match is
  /// a partner for which all are true. Without a match, but with a partner for which none is false, the mark
  /// is NULL. If there are none, and not null_aware: the mark is that of EXISTS. A kNullAwareAnti without
  /// them is NOT IN by its one key.
  std::vector<Expr> compared;
};
/// A probe's output is keep, then fetch (inner, left, right, full, single); keep alone (semi, the antis); or
/// keep, then the mark. All slots of a side that an outer join fills with NULLs may be NULL.

// ─── Sources

/// The common part of table scans.
struct TableScan {
  uint32_t table = 0;             // in PhysicalPlan::tables
  std::vector<uint32_t> columns;  // columns of the table to read; ascending
  Schema slots;                   // their slots, from the catalog (plan/table_schema.h)
  std::vector<Expr> filters;      // over `slots`; rows pass if all are true
  std::vector<uint32_t> output;   // places in `slots`; ascending. schemas[0] is slots[output[…]]
};

/// Reads chains of blocks.
struct BlockScan : TableScan {
  /// -1: every server needs all partitions. Otherwise a server that works on partition p of the table that
  /// its stage claims needs only the partition numbered like p's part by partition key `co_partitioned_key`.
  /// The optimizer states it; servers check it against both tables.
  int32_t co_partitioned_key = -1;
};

/// Reads the versions of records that a snapshot sees.
struct RecordScan : TableScan {
  uint64_t snapshot = 0;
  /// Ranges of stored primary keys, both ends included; none: the whole table.
  std::vector<std::string> range_low, range_high;
};

/// Rows that are part of the plan.
struct ValuesSource {
  std::vector<std::vector<Value>> rows;
};

/// Rows at rest that the sink of an earlier pipeline left, in that sink's order if it has one. States of
/// groups (AggregateSink::Phase::kPartial, kMerge) are read as a whole, by the sink that merges them and no
/// step before.
struct PageSource {
  uint32_t pipeline = 0;
  bool in_order = false;  // from a SortSink: by one task, in its order. Otherwise in any
};

/// Rows that an earlier pipeline sorted, each with the results of window functions.
struct WindowSource {
  uint32_t pipeline = 0;        // with a SortSink without limit
  uint32_t partition_keys = 0;  // the first keys of its order are the partition's, …
  uint32_t order_keys = 0;      // … and the next ones the window's. More may follow
  std::vector<WindowCall> calls;
};
/// Its schema is the rows', then a slot for each call.

/// The rows that other servers sent by the exchange. Sender and receiver run at the same time.
struct ExchangeReceive {
  uint32_t exchange = 0;
};

/// The parts in scratch memory that a pipeline of an earlier stage of servers left. The stage that begins
/// with it claims the parts; one task reads all of a part. For a build side, with which no stage begins,
/// every server reads all parts.
struct PartitionSource {
  uint32_t pipeline = 0;  // with a PartitionSink, or an AggregateSink with parts
  /// For the latter, kFinal: merges a claimed part's states and emits its groups.
  std::optional<AggregateSink> merge;
};

/// Joins the outputs of two pipelines of earlier stages of servers, by equally many parts of their keys. The
/// stage that begins with it claims the parts: one task builds over one side's rows of a part, and probes
/// with the other's. Its rows are the probe's. All directories of a sink that counts NULLs together answer
/// what IN and NOT IN by the key ask of a whole build side: exactly these joins have such a build side.
struct JoinSource {
  uint32_t probed = 0;  // with a PartitionSink, by probe.keys in order: whose rows probe
  BuildSink build;  // over the output of pipeline probe.build, with a PartitionSink by build.keys in order
  ProbeStep probe;  // over the output of `probed`
};

/// Reads files of the session's host, from the first row to the last. Only a stage of the session has one.
struct FileSource {
  uint32_t files = 0;                     // the session's number of them
  std::string name;                       // for EXPLAIN: read_csv('people.csv')
  std::vector<uint32_t> columns;          // those that are read; ascending. schemas[0] has a slot for each
  std::vector<std::string> column_names;  // for EXPLAIN, as columns
};

using SourceNode = std::variant<BlockScan, RecordScan, ValuesSource, PageSource, ExchangeReceive,
                                WindowSource, PartitionSource, JoinSource, FileSource>;

// ─── Steps

/// Passes rows for which all conditions are true.
struct FilterStep {
  std::vector<Expr> conditions;
};

struct ProjectStep {
  std::vector<Expr> outputs;
};

/// Passes the first rows after `offset` others, in order of arrival; in a flow's order if it has one, on one
/// thread.
struct LimitStep {
  int64_t rows = -1;  // -1: all
  int64_t offset = 0;
  /// Slots. If set, at least one row is wanted, and rows flow on one thread in an order by these: passes also
  /// the rows after the last one that equal it in all of them.
  std::vector<uint32_t> ties;
};

/// Emits each row once for each grouping set: the input's slots; then `keys`, NULL in sets that lack them;
/// then the set's number.
struct ExpandStep {
  std::vector<uint32_t> keys;               // slots
  std::vector<std::vector<uint32_t>> sets;  // places in `keys`; ascending
};

/// Repeats each row as often as an integer slot of it says: not at all if that is NULL, 0 or negative.
struct RepeatStep {
  uint32_t times = 0;
};

/// Repeats each row for each number of a series, in its order: the input's slots, then the number. The series
/// is first, first + step, … up to `last`; it is empty if one of them is NULL. A step of 0 is an error. All
/// have one type, an integer or a decimal; or timestamps, `step` being an interval.
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
  kIfMany,  // if they do not fit their memory
  kAlways,  // for tests
};

/// Rows for the client or for the next stage.
struct ResultSink {
  std::vector<Order> order;
  int64_t limit = -1;  // the first rows in this order (any, without order) are enough; -1: all
  /// For rows that servers claim, in an order without limit. An attempt's rows are its result in any order,
  /// or all of them are runs; a SortSink of the session by the same order takes them in, with no step before.
  Runs runs = Runs::kNever;
};

struct ExchangeSend {
  uint32_t exchange = 0;
  std::vector<uint32_t> keys;  // slots; none: to all receivers
  /// A pipeline of the stage that builds over its received rows by as many keys: rows without a partner by
  /// its members' Bloom filters are not sent. Their receiver probes that build first, and drops rows without
  /// a partner.
  std::optional<uint32_t> filtered_by = std::nullopt;
};

/// Writes rows by parts to scratch memory, for a PartitionSource or a JoinSource.
struct PartitionSink {
  std::vector<uint32_t> keys;  // slots
  uint32_t parts = 1;
  /// Counts rows with a NULL key in the directory instead of writing them.
  bool counts_nulls = false;
  /// Known: the domain of the only key; parts are of its permutation, not of a hash.
  KeyDomain domain = {};
};

/// Rows in an order, for later pipelines of this server. Rows with equal keys are in any order.
struct SortSink {
  std::vector<Order> order;  // none: any
  int64_t limit = -1;        // the first rows are enough; -1: all
  int64_t offset = 0;        // rows skipped before these
  Runs runs = Runs::kNever;  // in the session, with an order and all rows
};

/// Sends rows to the sink of a later pipeline, as if that had made them. The later pipeline waits for this
/// one, whose sink is complete with its own. A UNION ALL feeds a pipeline whose own source may be
/// ValuesSource without rows.
struct FeedSink {
  uint32_t pipeline = 0;
};

using SinkNode =
    std::variant<BuildSink, AggregateSink, ResultSink, ExchangeSend, PartitionSink, SortSink, FeedSink>;

// ─── The graph

/// For EXPLAIN, and for barriers, which compare it with the facts. Nothing else depends on it.
struct Estimate {
  double rows = 0;         // that leave
  double selectivity = 1;  // for a source: their share of the rows that it reads

  bool operator==(const Estimate&) const = default;
};

struct Pipeline {
  SourceNode source;
  std::vector<StepNode> steps;
  SinkNode sink;
  /// The output of the source, then of each step. Those of steps follow from the source's: they are stated so
  /// that every server checks that it understands the plan alike.
  std::vector<Schema> schemas;
  std::vector<Estimate> estimates;  // as schemas
  /// Pipelines that must be complete on this server first; ascending, each below this one's own number. Needs
  /// no message.
  std::vector<uint32_t> after;
  uint32_t stage = 0;
};

/// The work that one site of a query does without asking the coordinator. A star query has two: that of all
/// compute servers, then that of the session.
struct Stage {
  enum class Site : uint8_t { kServers, kSession };
  /// kServers: the pipeline whose source's pieces servers claim. kSession, which is the plan's last stage:
  /// its last pipeline, whose rows are the result.
  uint32_t claimed = 0;
  Distribution result;  // of the claimed pipeline's sink's output
  Site site = Site::kServers;
};

struct PhysicalPlan {
  std::vector<TableRef> tables;
  std::vector<Pipeline> pipelines;
  std::vector<Stage> stages;
};

}  // namespace nam::plan
