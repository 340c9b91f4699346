#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "plan/flow.h"
#include "plan/physical.h"
#include "tests/plan/random_expression.h"
#include "tests/plan/reference_run.h"

namespace nam::plan::testing {

/// A plan that has every kind of node now and then. It passes Check.
class RandomPlan {
 public:
  explicit RandomPlan(uint32_t seed) : random_(seed) {}

  PhysicalPlan Make() {
    plan_.stages.resize(1);
    const uint32_t builds = random_.Below(4);
    for (uint32_t b = 0; b < builds; ++b) Build();
    Pipeline main = Begin(false);
    Steps(main, builds);
    for (uint32_t b = 0; b < builds; ++b) main.after.push_back(b);
    plan_.stages[0].claimed = builds;
    const uint32_t end = random_.Below(6);
    if (end == 0) {
      Groups(main);
    } else if (end == 1) {
      ResultSink result = AResult(main.schemas.back());
      if (!result.order.empty() && result.limit < 0) result.runs = static_cast<Runs>(random_.Below(3));
      main.sink = std::move(result);
      Finish(std::move(main));
    } else if (end == 2) {
      main.sink = PartitionSink{KeySlots(main.schemas.back()), 1 + random_.Below(64)};
      Parts(std::move(main));
    } else if (end == 3) {
      Sorted(std::move(main));
    } else if (end == 4) {
      Union(std::move(main));
    } else {
      Exchange(std::move(main));
    }
    return std::move(plan_);
  }

  /// Rows for the plan's tables, within the slots of its scans. Tables that two scans read have no rows.
  TableRows ARowsOf(const PhysicalPlan& plan) {
    TableRows out;
    for (const Pipeline& pipeline : plan.pipelines) {
      const TableScan* scan = ScanOf(pipeline);
      if (scan == nullptr) continue;
      const bool shared = out.contains(scan->table);
      Rows& rows = out[scan->table];
      rows.clear();
      // Damaged plans name columns that no table has.
      if (shared || (!scan->columns.empty() && scan->columns.back() > 1000)) continue;
      for (uint32_t r = random_.Below(12); r > 0; --r) {
        Row row(scan->columns.empty() ? 0 : scan->columns.back() + 1);
        const Row read = random_.ARow(scan->slots);
        for (size_t i = 0; i < read.size(); ++i) row[scan->columns[i]] = read[i];
        rows.push_back(std::move(row));
      }
    }
    return out;
  }

 private:
  std::vector<uint32_t> ASlots(const Schema& schema) {
    std::vector<uint32_t> slots;
    for (uint32_t i = 0; i < schema.size(); ++i) {
      if (random_.Chance(2)) slots.push_back(i);
    }
    return slots;
  }

  /// Packed values are no keys.
  std::vector<uint32_t> KeySlots(const Schema& schema) {
    std::vector<uint32_t> slots = ASlots(schema);
    std::erase_if(slots, [&](uint32_t slot) { return schema[slot].type.packed(); });
    return slots;
  }

  std::vector<Expr> Conditions(const Schema& schema) {
    std::vector<Expr> out;
    while (random_.Chance(2)) out.push_back(random_.AnExpr(schema, Type::Bool(), 2));
    return out;
  }

  void Fill(TableScan& scan, bool records) {
    scan.table = static_cast<uint32_t>(plan_.tables.size());
    plan_.tables.push_back({"t" + std::to_string(scan.table), random_.Below(100), records});
    scan.slots = random_.ASchema(1 + random_.Below(5));
    uint32_t column = 0;
    for (size_t i = 0; i < scan.slots.size(); ++i) scan.columns.push_back(column += 1 + random_.Below(3));
    scan.filters = Conditions(scan.slots);
    scan.output = ASlots(scan.slots);
  }

  Pipeline Begin(bool any_source) {
    Pipeline p;
    const uint32_t kind = random_.Below(any_source ? 4 : 2);
    if (kind == 0) {
      RecordScan scan;
      Fill(scan, true);
      scan.snapshot = random_.Below(1000);
      scan.range_low = {std::string("a\0b", 3), "k"};
      scan.range_high = {"c", std::string("\xff\xfe")};
      p.source = std::move(scan);
    } else if (kind == 3) {
      ValuesSource values;
      p.schemas.push_back(random_.ASchema(random_.Below(4)));
      for (uint32_t r = random_.Below(6); r > 0; --r) values.rows.push_back(random_.ARow(p.schemas[0]));
      p.source = std::move(values);
    } else {
      BlockScan scan;
      Fill(scan, false);
      p.source = std::move(scan);
    }
    if (const TableScan* scan = ScanOf(p)) p.schemas.push_back(*ScanOutput(*scan));
    p.estimates.push_back({static_cast<double>(random_.Below(1000)), 0.25});
    return p;
  }

  void Append(Pipeline& p, StepNode step) {
    absl::StatusOr<Schema> output = StepOutput(plan_, step, p.schemas.back());
    NAM_CHECK(output.ok(), "a step that was made for its input");
    p.steps.push_back(std::move(step));
    p.schemas.push_back(*std::move(output));
    p.estimates.push_back({static_cast<double>(random_.Below(1000)), 1});
  }

  ProbeStep AProbe(const Schema& input, uint32_t build) {
    const auto& sink = std::get<BuildSink>(plan_.pipelines[build].sink);
    ProbeStep probe;
    probe.build = build;
    probe.kind = static_cast<JoinKind>(random_.Below(9));
    for (const Expr& key : sink.keys) probe.keys.push_back(random_.AnExpr(input, key.type, 1));
    probe.keep = ASlots(input);
    for (uint32_t i = 0; i < sink.payload.size(); ++i) {
      if (random_.Chance(2)) probe.fetch.push_back(i);
    }
    const Schema partners = *PartnerSchema(plan_, probe, input);
    const bool mark = probe.kind == JoinKind::kMark, anti = probe.kind == JoinKind::kNullAwareAnti;
    if ((mark || anti) && probe.keys.size() == 1 && random_.Chance(2)) {
      probe.null_aware = mark;
      return probe;
    }
    probe.residuals = Conditions(partners);
    if (mark || anti) probe.compared = Conditions(partners);
    if (anti && probe.compared.empty()) probe.kind = JoinKind::kAnti;
    return probe;
  }

  ExpandStep AnExpansion(const Schema& input) {
    ExpandStep expand;
    expand.keys = KeySlots(input);
    for (uint32_t sets = 1 + random_.Below(3); sets > 0; --sets) {
      std::vector<uint32_t>& set = expand.sets.emplace_back();
      for (uint32_t k = 0; k < expand.keys.size(); ++k) {
        if (random_.Chance(2)) set.push_back(k);
      }
    }
    return expand;
  }

  static std::optional<uint32_t> SlotOfKind(const Schema& schema, TypeKind kind) {
    for (uint32_t slot = 0; slot < schema.size(); ++slot) {
      if (schema[slot].type.kind == kind) return slot;
    }
    return std::nullopt;
  }

  void Steps(Pipeline& p, uint32_t builds) {
    uint32_t probed = 0;
    while (probed < builds || random_.Chance(2)) {
      const Schema input = p.schemas.back();
      if (probed < builds && random_.Chance(2)) {
        Append(p, AProbe(input, probed++));
      } else if (random_.Chance(3)) {
        Append(p, FilterStep{Conditions(input)});
      } else if (random_.Chance(4)) {
        LimitStep limit{random_.Below(10), random_.Below(3), {}};
        for (uint32_t slot = 0; slot < input.size(); ++slot) {
          if (!input[slot].type.packed() && random_.Chance(6)) limit.ties.push_back(slot);
        }
        Append(p, std::move(limit));
      } else if (random_.Chance(6)) {
        const Type type = random_.Chance(2) ? Type::Integer() : Type::Decimal(1);
        Append(p, SeriesStep{random_.AnExpr(input, type, 2), random_.AnExpr(input, type, 2),
                             random_.AnExpr(input, type, 1)});
      } else if (random_.Chance(5)) {
        Append(p, AnExpansion(input));
      } else if (const std::optional<uint32_t> times = SlotOfKind(input, TypeKind::kInteger);
                 times && random_.Chance(5)) {
        Append(p, RepeatStep{*times});
      } else if (random_.Chance(2)) {
        ProjectStep project;
        for (uint32_t i = random_.Below(5); i > 0; --i)
          project.outputs.push_back(random_.AnExpr(input, random_.AType(), 2));
        Append(p, std::move(project));
      }
    }
  }

  void Build() {
    Pipeline p = Begin(true);
    Steps(p, 0);
    BuildSink sink;
    for (uint32_t i = random_.Below(3); i > 0; --i) {
      const Type type = random_.Chance(2) ? Type::Integer() : random_.AType();
      sink.keys.push_back(random_.AnExpr(p.schemas.back(), type, 1));
    }
    sink.payload = ASlots(p.schemas.back());
    sink.unique = sink.keys.size() == 1 && random_.Chance(2);
    p.sink = std::move(sink);
    plan_.pipelines.push_back(std::move(p));
  }

  ResultSink AResult(const Schema& schema) {
    ResultSink result;
    for (const uint32_t slot : KeySlots(schema))
      result.order.push_back({slot, random_.Chance(2), random_.Chance(2)});
    result.limit = static_cast<int64_t>(random_.Below(5)) - 1;
    return result;
  }

  void Finish(Pipeline p) { plan_.pipelines.push_back(std::move(p)); }

  Aggregate AnAggregate(const Schema& schema) {
    Aggregate out;
    do {
      out.function = static_cast<AggregateFunction>(random_.Below(static_cast<uint64_t>(kLastAggregate) + 1));
    } while (out.function == AggregateFunction::kStringAggregate);
    out.type = Type::Integer();
    if (out.function == AggregateFunction::kCountRows) return out;
    if (out.function >= AggregateFunction::kVarPop) {
      const bool truth =
          out.function == AggregateFunction::kBoolAnd || out.function == AggregateFunction::kBoolOr;
      const Type from = truth ? Type::Bool() : Type::Integer();
      out.argument = random_.AnExpr(schema, from, 2);
      if (ArgumentsOf(out.function) > 1) out.second = random_.AnExpr(schema, Type::Decimal(1), 2);
      out.type = ArgumentsOf(out.function) > 1 ? Type::Double()
                 : HasMoments(out.function)    ? Type::Numeric()
                                               : from;
      return out;
    }
    Type type = random_.Chance(2) ? Type::Integer() : Type::Decimal(static_cast<uint8_t>(random_.Below(5)));
    const bool any = out.function == AggregateFunction::kMin || out.function == AggregateFunction::kMax;
    if (any && random_.Chance(2)) type = Type::String();
    out.argument = random_.AnExpr(schema, type, 2);
    if (any || out.function == AggregateFunction::kSum) out.type = type;
    if (out.function == AggregateFunction::kAverage) out.type = Type::Numeric();
    const bool sums = out.function == AggregateFunction::kSum || out.function == AggregateFunction::kAverage;
    out.distinct = sums && random_.Chance(2);
    return out;
  }

  static Expr NullOf(const Expr& argument) {
    Expr null;
    null.type = argument.type;
    null.literal = Value::Null(argument.type);
    return null;
  }

  /// Sorted rows that are read in their order, or by windows.
  void Sorted(Pipeline p) {
    SortSink sort;
    sort.order = AResult(p.schemas.back()).order;
    const bool windows = random_.Chance(2);
    if (!windows) sort.limit = static_cast<int64_t>(random_.Below(5)) - 1, sort.offset = random_.Below(3);
    p.sink = sort;
    plan_.pipelines.push_back(std::move(p));
    Pipeline next = SameStage();
    const auto from = static_cast<uint32_t>(plan_.pipelines.size()) - 1;
    if (windows) {
      WindowSource window{from, 0, 0, {}};
      window.partition_keys = random_.Below(static_cast<uint32_t>(sort.order.size()) + 1);
      window.order_keys = random_.Below(static_cast<uint32_t>(sort.order.size()) - window.partition_keys + 1);
      for (uint32_t i = random_.Below(4); i > 0; --i) window.calls.push_back(ACall(next.schemas[0]));
      next.schemas = {*WindowOutput(plan_, window)};
      next.source = std::move(window);
    } else {
      next.source = PageSource{from, random_.Chance(2)};
    }
    Steps(next, 0);
    next.sink = AResult(next.schemas.back());
    Finish(std::move(next));
  }

  WindowCall ACall(const Schema& rows) {
    WindowCall call;
    call.frame.unit = WindowFrame::Unit::kRows;
    call.frame.start = {FrameBound::Kind::kPreceding, random_.Below(5)};
    call.frame.exclusion = static_cast<WindowFrame::Exclusion>(random_.Below(4));
    if (random_.Chance(2)) call.frame.end = {FrameBound::Kind::kFollowing, PowerOfTen(20)};
    call.type = Type::Integer();
    const uint32_t kind = rows.empty() ? 0 : random_.Below(4);
    const uint32_t slot = rows.empty() ? 0 : random_.Below(static_cast<uint32_t>(rows.size()));
    if (kind == 0) {
      call.function = static_cast<WindowFunction>(1 + random_.Below(3));
    } else if (kind == 1) {
      call.function = random_.Chance(2) ? WindowFunction::kPercentRank : WindowFunction::kCumeDist;
      call.type = Type::Double();
    } else if (kind == 2) {
      call.function = random_.Chance(2) ? WindowFunction::kLag : WindowFunction::kLastValue;
      call.arguments = {slot};
      call.type = rows[slot].type;
    } else {
      call.function = WindowFunction::kAggregate;
      call.aggregate = AggregateFunction::kCount;
      call.arguments = {slot};
    }
    return call;
  }

  /// A pipeline of the last one's stage, which claims instead, over the last one's output.
  Pipeline SameStage() {
    Pipeline next;
    const auto from = static_cast<uint32_t>(plan_.pipelines.size()) - 1;
    next.schemas.push_back(*SinkOutput(plan_.pipelines[from]));
    next.estimates.push_back({});
    next.after = {from};
    plan_.stages[0].claimed = from + 1;
    return next;
  }

  /// Bounds of computed slots may exclude every value of their type: there is no row then.
  static bool IsRowOf(const Row& row, const Schema& schema) {
    bool all = true;
    for (size_t i = 0; i < row.size(); ++i) all = all && IsValueOf(row[i], schema[i].type);
    return all;
  }

  /// The rows of two pipelines in one sink.
  void Union(Pipeline p) {
    Pipeline other;
    other.schemas.push_back(p.schemas.back());
    other.estimates.push_back({});
    ValuesSource values;
    for (uint32_t r = random_.Below(4); r > 0; --r) {
      Row row = random_.ARow(other.schemas[0]);
      if (IsRowOf(row, other.schemas[0])) values.rows.push_back(std::move(row));
    }
    other.source = std::move(values);
    const auto number = static_cast<uint32_t>(plan_.pipelines.size());
    p.sink = FeedSink{number + 1};
    other.after = {number};
    other.sink = SortSink{{}, random_.Chance(2) ? 2 : -1, 0};
    plan_.pipelines.push_back(std::move(p));
    plan_.pipelines.push_back(std::move(other));
    plan_.stages[0].claimed = number + 1;
  }

  /// Partial groups, and now and then a stage that makes results of them.
  void Groups(Pipeline& p) {
    AggregateSink sink;
    for (uint32_t i = random_.Below(3); i > 0; --i)
      sink.group_by.push_back(random_.AnExpr(p.schemas.back(), random_.AType(), 2));
    for (uint32_t i = random_.Below(4); i > 0; --i) sink.aggregates.push_back(AnAggregate(p.schemas.back()));
    const bool goes_on = random_.Chance(2);
    if (!goes_on && random_.Chance(2)) sink.phase = AggregateSink::Phase::kWhole;
    const bool by_parts = goes_on && GoesByParts(sink) && random_.Chance(2);
    if (by_parts) sink.parts = 1 + random_.Below(64);
    const AggregateSink partial = sink;
    p.sink = std::move(sink);
    plan_.pipelines.push_back(std::move(p));
    if (!goes_on) return;
    Pipeline merge = After();
    AggregateSink last;
    last.phase = random_.Chance(2) ? AggregateSink::Phase::kMerge : AggregateSink::Phase::kFinal;
    for (uint32_t k = 0; k < partial.group_by.size(); ++k)
      last.group_by.push_back(Random::Column(merge.schemas[0], k));
    for (const Aggregate& aggregate : partial.aggregates) {
      Aggregate& to = last.aggregates.emplace_back(aggregate);
      if (aggregate.function == AggregateFunction::kCountRows) continue;
      to.argument = NullOf(aggregate.argument);
      if (ArgumentsOf(aggregate.function) > 1) to.second = NullOf(aggregate.second);
    }
    if (by_parts) {
      last.phase = AggregateSink::Phase::kFinal;
      PartitionSource source{merge.after[0], std::move(last)};
      merge.schemas = {*PartitionOutput(plan_, source)};
      merge.source = std::move(source);
      Steps(merge, 0);
      merge.sink = AResult(merge.schemas.back());
      Finish(std::move(merge));
      return;
    }
    merge.sink = std::move(last);
    plan_.pipelines.push_back(std::move(merge));
  }

  /// A pipeline of a stage of its own over the last one's output.
  Pipeline After() {
    Pipeline next;
    const auto from = static_cast<uint32_t>(plan_.pipelines.size()) - 1;
    next.source = PageSource{from};
    next.schemas.push_back(*SinkOutput(plan_.pipelines[from]));
    next.estimates.push_back({});
    next.after = {from};
    next.stage = 1;
    plan_.stages.push_back({from + 1, {Distribution::Kind::kSingle, Distribution::Function::kHash, 0, {}}});
    return next;
  }

  /// Rows by parts, which a stage of its own claims, or joins with those of another stage.
  void Parts(Pipeline p) {
    const auto sink = std::get<PartitionSink>(p.sink);
    const Schema rows = p.schemas.back();
    plan_.pipelines.push_back(std::move(p));
    if (!sink.keys.empty() && random_.Chance(2)) {
      JoinParts(sink, rows);
      return;
    }
    Pipeline next = After();
    next.source = PartitionSource{next.after[0], {}};
    Steps(next, 0);
    next.sink = AResult(next.schemas.back());
    Finish(std::move(next));
  }

  /// The last pipeline's rows, joined with others by their parts.
  void JoinParts(const PartitionSink& sink, const Schema& rows) {
    const auto probed = static_cast<uint32_t>(plan_.pipelines.size()) - 1, built = probed + 1;
    Pipeline other = Begin(false);
    ProjectStep project;
    const auto kind = static_cast<JoinKind>(random_.Below(9));
    const bool mark = kind == JoinKind::kMark, anti = kind == JoinKind::kNullAwareAnti;
    // IN and NOT IN by the key.
    const bool by_key = (mark || anti) && sink.keys.size() == 1 && random_.Chance(2);
    PartitionSink by{{}, sink.parts, by_key};
    for (const uint32_t key : sink.keys) {
      by.keys.push_back(static_cast<uint32_t>(project.outputs.size()));
      project.outputs.push_back(random_.AnExpr(other.schemas[0], rows[key].type, 1));
    }
    for (uint32_t i = random_.Below(3); i > 0; --i)
      project.outputs.push_back(random_.AnExpr(other.schemas[0], random_.AType(), 2));
    Append(other, std::move(project));
    other.sink = by;
    other.stage = 1;
    const Schema built_rows = other.schemas.back();
    plan_.pipelines.push_back(std::move(other));
    plan_.stages.push_back({built, {}});

    JoinSource join{.probed = probed, .build = {}, .probe = {.build = built}};
    for (const uint32_t key : sink.keys) join.probe.keys.push_back(Random::Column(rows, key));
    for (const uint32_t key : by.keys) join.build.keys.push_back(Random::Column(built_rows, key));
    join.build.payload = ASlots(built_rows);
    join.probe.kind = kind;
    join.probe.null_aware = by_key && mark;
    join.probe.keep = ASlots(rows);
    for (uint32_t i = 0; i < join.build.payload.size(); ++i) {
      if (random_.Chance(2)) join.probe.fetch.push_back(i);
    }
    const Schema partners = SchemasOf(plan_, join)->partners;
    if (!by_key) join.probe.residuals = Conditions(partners);
    if (!by_key && (mark || anti)) join.probe.compared = Conditions(partners);
    if (!by_key && anti && join.probe.compared.empty()) join.probe.kind = JoinKind::kAnti;
    Pipeline next;
    next.schemas = {SchemasOf(plan_, join)->output};
    next.source = std::move(join);
    next.estimates.push_back({});
    next.after = {probed, built};
    next.stage = 2;
    plan_.stages.push_back({built + 1, {}});
    Steps(next, 0);
    next.sink = AResult(next.schemas.back());
    Finish(std::move(next));
  }

  void Exchange(Pipeline p) {
    p.sink = ExchangeSend{7, KeySlots(p.schemas.back())};
    Pipeline receive;
    receive.source = ExchangeReceive{7};
    receive.schemas.push_back(p.schemas.back());
    receive.estimates.push_back({});
    plan_.pipelines.push_back(std::move(p));
    plan_.stages[0].claimed = static_cast<uint32_t>(plan_.pipelines.size());
    Steps(receive, 0);
    receive.sink = AResult(receive.schemas.back());
    Finish(std::move(receive));
  }

  Random random_;
  PhysicalPlan plan_;
};

}  // namespace nam::plan::testing
