#include "execution/scan/absorb.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/random.h"
#include "plan/flow.h"

namespace nam::execution {
namespace {

using plan::Expr;
using plan::JoinKind;
using plan::Op;
using Row = std::vector<Value>;

/// The columns of the model hold numbers by which they are told apart: column i those from 100·i to 100·i
/// + 9. The scan has columns 0 to 3, build b has payload columns 10·(b + 1) and 10·(b + 1) + 1.
constexpr uint32_t kScanned = 4, kBuilds = 4;
uint32_t PayloadColumn(uint32_t build, uint32_t payload) {
  return 10 * (build + 1) + payload;
}
plan::Slot NumberedSlot(uint32_t column, bool nullable) {
  return {Type::Integer(), nullable, {100 * int64_t{column}, 100 * int64_t{column} + 9, true}};
}
Value Number(uint32_t column, int64_t digit) {
  return Value::Integer(100 * int64_t{column} + digit);
}

/// Builds 0 and 1 are unique direct tables here, 2 would be one elsewhere, 3 has two partners for even keys.
const std::vector<uint8_t> kDirect{1, 1, 0, 0, 0};

std::vector<Row> PartnersOf(uint32_t build, const Value& key) {
  if (key.null || (key.number * 7 + build * 3) % 5 == 0) return {};
  std::vector<Row> partners;
  for (int64_t p = 0; p < (build == 3 && key.number % 2 == 0 ? 2 : 1); ++p) {
    const auto digit = static_cast<int64_t>((key.number + p) % 10);
    partners.push_back({Number(PayloadColumn(build, 0), digit), Number(PayloadColumn(build, 1), 9 - digit)});
  }
  return partners;
}

Expr ColumnOf(size_t slot, const plan::Slot& of) {
  Expr out;
  out.op = Op::kColumn;
  out.type = of.type;
  out.column = {0, static_cast<int>(slot)};
  return out;
}
Expr IntegerCondition(Op op, Expr left, int64_t right) {
  Expr literal;
  literal.type = Type::Integer();
  literal.literal = Value::Integer(right);
  Expr out;
  out.op = op;
  out.type = Type::Bool();
  out.children = {std::move(left), std::move(literal)};
  return out;
}

Value Evaluate(const Expr& expr, const Row& row) {
  return *plan::Evaluate(expr, [&](const Expr& c) { return row[static_cast<size_t>(c.column.column)]; });
}
bool AllTrue(const std::vector<Expr>& conditions, const Row& row) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Expr& condition) {
    const Value truth = Evaluate(condition, row);
    return !truth.null && truth.number != 0;
  });
}

// ---- Random pipelines.

class Maker {
 public:
  explicit Maker(RandomStream& random) : random_(random) {}

  plan::Pipeline Make() {
    plan::BlockScan scan;
    for (uint32_t c = 0; c < kScanned; ++c) {
      scan.columns.push_back(c);
      scan.slots.push_back(NumberedSlot(c, true));
      if (random_.Below(5) != 0) scan.output.push_back(c);
    }
    plan::Schema schema;
    for (const uint32_t slot : scan.output) schema.push_back(scan.slots[slot]);
    if (random_.Below(2) == 0) scan.filters.push_back(Condition(scan.slots));
    pipeline_.source = std::move(scan);
    Add(std::move(schema));
    for (uint64_t steps = random_.Below(6); steps > 0; --steps) AddStep();
    AddSink();
    return std::move(pipeline_);
  }

 private:
  void Add(plan::Schema schema) {
    pipeline_.schemas.push_back(std::move(schema));
    pipeline_.estimates.push_back({.rows = static_cast<double>(pipeline_.schemas.size())});
  }
  const plan::Schema& now() const { return pipeline_.schemas.back(); }

  Expr Condition(const plan::Schema& schema) {
    for (int tries = 0; tries < 4 && !schema.empty(); ++tries) {
      const size_t slot = random_.Below(schema.size());
      if (!schema[slot].bounds.known) continue;
      const auto middle =
          static_cast<int64_t>(schema[slot].bounds.low) + static_cast<int64_t>(random_.Below(10));
      return IntegerCondition(random_.Below(2) == 0 ? Op::kNotEqual : Op::kLessEqual,
                              ColumnOf(slot, schema[slot]), middle);
    }
    Expr truth;
    truth.type = Type::Bool();
    truth.literal = Value::Bool(true);
    return truth;
  }
  std::vector<uint32_t> Integers() const {
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; slot < now().size(); ++slot) {
      if (now()[slot].type == Type::Integer()) slots.push_back(slot);
    }
    return slots;
  }
  std::vector<uint32_t> Some(size_t of) {
    std::vector<uint32_t> some;
    for (uint32_t i = 0; i < of; ++i) {
      if (random_.Below(4) != 0) some.push_back(i);
    }
    return some;
  }

  void AddStep() {
    switch (random_.Below(14)) {
      case 0:
      case 1:
        pipeline_.steps.emplace_back(plan::FilterStep{{Condition(now())}});
        return Add(plan::Schema(now()));
      case 2: {
        plan::ProjectStep project;
        plan::Schema schema;
        for (const uint32_t slot : Some(now().size())) {
          project.outputs.push_back(ColumnOf(slot, now()[slot]));
          schema.push_back(now()[slot]);
        }
        pipeline_.steps.emplace_back(std::move(project));
        return Add(std::move(schema));
      }
      case 3:
        pipeline_.steps.emplace_back(
            plan::LimitStep{static_cast<int64_t>(random_.Below(20)), 0, Some(now().size())});
        return Add(plan::Schema(now()));
      case 6: {
        const std::vector<uint32_t> numbers = Integers();
        if (numbers.empty()) return;
        const auto end = [&] {
          const uint32_t slot = numbers[random_.Below(numbers.size())];
          return ColumnOf(slot, now()[slot]);
        };
        plan::SeriesStep series{end(), end(), end()};
        plan::Schema schema = plan::StepOutput({}, series, now()).value();
        pipeline_.steps.emplace_back(std::move(series));
        return Add(std::move(schema));
      }
      case 4: {
        plan::ExpandStep expand{Some(now().size()), {{}}};
        expand.sets.push_back(Some(expand.keys.size()));
        plan::Schema schema = plan::StepOutput({}, expand, now()).value();
        pipeline_.steps.emplace_back(std::move(expand));
        return Add(std::move(schema));
      }
      case 5:
        if (now().empty()) return;
        pipeline_.steps.emplace_back(plan::RepeatStep{static_cast<uint32_t>(random_.Below(now().size()))});
        return Add(plan::Schema(now()));
      default:
        return AddProbe();
    }
  }

  void AddProbe() {
    plan::ProbeStep probe;
    probe.build = random_.Below(3) != 0 ? static_cast<uint32_t>(random_.Below(2))
                                        : static_cast<uint32_t>(random_.Below(kBuilds));
    static constexpr JoinKind kKinds[] = {JoinKind::kInner, JoinKind::kInner, JoinKind::kInner,
                                          JoinKind::kSemi,  JoinKind::kLeft,  JoinKind::kAnti,
                                          JoinKind::kMark};
    probe.kind = kKinds[random_.Below(7)];
    const size_t key = random_.Below(std::max<size_t>(now().size(), 1));
    if (now().empty() || !now()[key].bounds.known) return;
    probe.keys.push_back(ColumnOf(key, now()[key]));
    if (random_.Below(8) == 0) {  // no column as it is
      probe.keys[0] = IntegerCondition(Op::kLess, std::move(probe.keys[0]), 0);
      probe.keys[0].op = Op::kAdd;
      probe.keys[0].type = Type::Integer();
    }
    probe.keep = Some(now().size());
    probe.fetch = Some(2);
    plan::Schema scope;
    for (const uint32_t slot : probe.keep) scope.push_back(now()[slot]);
    const size_t kept = scope.size();
    for (const uint32_t payload : probe.fetch)
      scope.push_back(NumberedSlot(PayloadColumn(probe.build, payload), probe.kind == JoinKind::kLeft));
    if (random_.Below(4) == 0) probe.residuals.push_back(Condition(scope));
    if (probe.kind != JoinKind::kInner && probe.kind != JoinKind::kLeft) scope.resize(kept);
    if (probe.kind == JoinKind::kMark) scope.push_back({Type::Bool(), true, {}});
    pipeline_.steps.emplace_back(std::move(probe));
    Add(std::move(scope));
  }

  void AddSink() {
    switch (random_.Below(3)) {
      case 0: {
        plan::AggregateSink sink;
        for (const uint32_t slot : Some(now().size())) sink.group_by.push_back(ColumnOf(slot, now()[slot]));
        sink.aggregates.emplace_back();
        sink.aggregates.emplace_back().argument = Condition(now());
        pipeline_.sink = std::move(sink);
        return;
      }
      case 1: {
        plan::BuildSink sink;
        sink.keys.push_back(Condition(now()));
        sink.payload = Some(now().size());
        pipeline_.sink = std::move(sink);
        return;
      }
      default:
        pipeline_.sink = plan::ResultSink{};
    }
  }

  RandomStream& random_;
  plan::Pipeline pipeline_;
};

// ---- What a pipeline does, row by row.

/// Rows match their schema.
void CheckRows(const std::vector<Row>& rows, const plan::Schema& schema) {
  for (const Row& row : rows) {
    RC_ASSERT(row.size() == schema.size());
    for (size_t i = 0; i < row.size(); ++i) {
      RC_ASSERT(row[i].type.kind == schema[i].type.kind);
      if (row[i].null) {
        RC_ASSERT(schema[i].nullable);
      } else if (schema[i].bounds.known) {
        RC_ASSERT(row[i].number >= schema[i].bounds.low && row[i].number <= schema[i].bounds.high);
      }
    }
  }
}

void Probe(const plan::ProbeStep& probe, const Row& in, std::vector<Row>& out) {
  Row kept;
  for (const uint32_t slot : probe.keep) kept.push_back(in[slot]);
  bool found = false;
  for (const Row& partner : PartnersOf(probe.build, Evaluate(probe.keys[0], in))) {
    Row pair = kept;
    for (const uint32_t payload : probe.fetch) pair.push_back(partner[payload]);
    if (!AllTrue(probe.residuals, pair)) continue;
    found = true;
    if (probe.kind == JoinKind::kInner || probe.kind == JoinKind::kLeft) out.push_back(std::move(pair));
  }
  if (probe.kind == JoinKind::kMark) {
    kept.push_back(Value::Bool(found));
    out.push_back(std::move(kept));
  } else if (probe.kind == JoinKind::kLeft && !found) {
    kept.resize(kept.size() + probe.fetch.size(), Value::Null(Type::Integer()));
    out.push_back(std::move(kept));
  } else if (probe.kind == (found ? JoinKind::kSemi : JoinKind::kAnti)) {
    out.push_back(std::move(kept));
  }
}

/// Compares rows as if they had an order: what matters is which slots are compared.
bool Ties(const std::vector<uint32_t>& slots, const std::vector<Row>& out, const Row& row) {
  return !slots.empty() && !out.empty() && std::all_of(slots.begin(), slots.end(), [&](uint32_t slot) {
    const Value &a = out.back()[slot], &b = row[slot];
    return a.null || b.null ? a.null == b.null : a.number == b.number && a.text == b.text;
  });
}

std::vector<Row> Run(const plan::StepNode& step, const std::vector<Row>& rows) {
  std::vector<Row> out;
  for (const Row& row : rows) {
    if (const auto* filter = std::get_if<plan::FilterStep>(&step)) {
      if (AllTrue(filter->conditions, row)) out.push_back(row);
    } else if (const auto* project = std::get_if<plan::ProjectStep>(&step)) {
      Row& projected = out.emplace_back();
      for (const Expr& output : project->outputs) projected.push_back(Evaluate(output, row));
    } else if (const auto* limit = std::get_if<plan::LimitStep>(&step)) {
      if (static_cast<int64_t>(out.size()) < limit->rows || Ties(limit->ties, out, row)) out.push_back(row);
    } else if (const auto* expand = std::get_if<plan::ExpandStep>(&step)) {
      for (size_t s = 0; s < expand->sets.size(); ++s) {
        Row& expanded = out.emplace_back(row);
        for (const uint32_t key : expand->keys) expanded.push_back(Value::Null(row[key].type));
        for (const uint32_t place : expand->sets[s]) expanded[row.size() + place] = row[expand->keys[place]];
        expanded.push_back(Value::Integer(static_cast<int64_t>(s)));
      }
    } else if (const auto* repeat = std::get_if<plan::RepeatStep>(&step)) {
      // Numbers are large here: what matters is that they are those of the slot.
      const Value& times = row[repeat->times];
      for (__int128 n = times.null ? 0 : times.number % 3; n > 0; --n) out.push_back(row);
    } else if (const auto* series = std::get_if<plan::SeriesStep>(&step)) {
      // The same, but of one of the ends, which all three decide.
      const Value first = Evaluate(series->first, row), last = Evaluate(series->last, row),
                  by = Evaluate(series->step, row);
      if (first.null || last.null || by.null) continue;
      out.push_back(row);
      out.back().push_back((first.number + last.number + by.number) % 2 == 0 ? first : last);
    } else {
      Probe(std::get<plan::ProbeStep>(step), row, out);
    }
  }
  return out;
}

/// The rows as the sink sees them.
std::vector<std::string> AtSink(const plan::SinkNode& sink, const std::vector<Row>& rows) {
  std::vector<std::string> seen;
  for (const Row& row : rows) {
    std::string& text = seen.emplace_back();
    const auto add = [&](const Value& value) { text += value.ToString() + "|"; };
    if (const auto* aggregate = std::get_if<plan::AggregateSink>(&sink)) {
      for (const Expr& key : aggregate->group_by) add(Evaluate(key, row));
      add(Evaluate(aggregate->aggregates[1].argument, row));
    } else if (const auto* build = std::get_if<plan::BuildSink>(&sink)) {
      add(Evaluate(build->keys[0], row));
      for (const uint32_t slot : build->payload) add(row[slot]);
    } else {
      for (const Value& value : row) add(value);
    }
  }
  return seen;
}

std::vector<std::string> RunSteps(const plan::Pipeline& pipeline, std::vector<Row> rows) {
  CheckRows(rows, pipeline.schemas[0]);
  for (size_t i = 0; i < pipeline.steps.size(); ++i) {
    rows = Run(pipeline.steps[i], rows);
    CheckRows(rows, pipeline.schemas[i + 1]);
  }
  return AtSink(pipeline.sink, rows);
}

std::vector<std::string> RunPlain(const plan::Pipeline& pipeline, const std::vector<Row>& table) {
  const auto& scan = std::get<plan::BlockScan>(pipeline.source);
  std::vector<Row> rows;
  for (const Row& row : table) {
    if (!AllTrue(scan.filters, row)) continue;
    Row& out = rows.emplace_back();
    for (const uint32_t slot : scan.output) out.push_back(row[slot]);
  }
  return RunSteps(pipeline, std::move(rows));
}

std::vector<std::string> RunAbsorbed(const AbsorbedPipeline& absorbed, const std::vector<Row>& table) {
  const auto& scan = std::get<plan::BlockScan>(absorbed.pipeline.source);
  std::vector<Row> rows;
  for (const Row& row : table) {
    if (!AllTrue(scan.filters, row)) continue;
    std::vector<Row> partners;
    for (const AbsorbedPipeline::Probe& probe : absorbed.probes) {
      const std::vector<Row> found = PartnersOf(probe.build, row[probe.key]);
      if (!found.empty()) partners.push_back(found[0]);
    }
    if (partners.size() < absorbed.probes.size()) continue;
    Row& out = rows.emplace_back();
    for (const ScanOutput& output : absorbed.outputs) {
      out.push_back(output.probe == ScanOutput::kScanned
                        ? row[output.column]
                        : partners[static_cast<size_t>(output.probe)][output.column]);
    }
  }
  return RunSteps(absorbed.pipeline, std::move(rows));
}

TEST(Absorb, DoesWhatThePipelineDid) {
  size_t absorbed_probes = 0;
  EXPECT_TRUE(rc::check("absorbed = plain", [&] {
    RandomStream random(*rc::gen::arbitrary<uint64_t>());
    const plan::Pipeline pipeline = Maker(random).Make();
    std::vector<Row> table(60);
    for (Row& row : table) {
      for (uint32_t c = 0; c < kScanned; ++c) {
        row.push_back(random.Below(8) == 0 ? Value::Null(Type::Integer())
                                           : Number(c, static_cast<int64_t>(random.Below(10))));
      }
    }
    const AbsorbedPipeline absorbed = Absorb(pipeline, kDirect);
    RC_ASSERT(absorbed.pipeline.schemas.size() == absorbed.pipeline.steps.size() + 1);
    RC_ASSERT(absorbed.pipeline.estimates.size() == absorbed.pipeline.schemas.size());
    for (const AbsorbedPipeline::Probe& probe : absorbed.probes) RC_ASSERT(kDirect[probe.build] == 1);
    RC_ASSERT(RunAbsorbed(absorbed, table) == RunPlain(pipeline, table));
    absorbed_probes += absorbed.probes.size();
  }));
  EXPECT_GT(absorbed_probes, 10u) << "the pipelines that were drawn say nothing";
}

// ---- Single rules.

plan::Pipeline Star() {
  plan::Pipeline pipeline;
  plan::BlockScan scan;
  for (uint32_t c = 0; c < kScanned; ++c) {
    scan.columns.push_back(c);
    scan.slots.push_back(NumberedSlot(c, false));
  }
  scan.output = {0, 1, 2, 3};
  pipeline.schemas.push_back(scan.slots);
  pipeline.source = scan;
  const auto probe = [&](uint32_t build, uint32_t key, std::vector<uint32_t> keep,
                         std::vector<uint32_t> fetch) {
    const plan::Schema& in = pipeline.schemas.back();
    plan::ProbeStep step;
    step.build = build;
    step.keys = {ColumnOf(key, in[key])};
    plan::Schema out;
    for (const uint32_t slot : keep) out.push_back(in[slot]);
    for (const uint32_t payload : fetch) out.push_back(NumberedSlot(PayloadColumn(build, payload), false));
    step.keep = std::move(keep);
    step.fetch = std::move(fetch);
    pipeline.steps.emplace_back(std::move(step));
    pipeline.schemas.push_back(std::move(out));
  };
  probe(0, 0, {1, 2, 3}, {1});  // slots: 1 2 3 p01
  probe(2, 0, {1, 2, 3}, {0});  //        2 3 p01 p20
  probe(1, 0, {1, 2, 3}, {});   //        3 p01 p20
  plan::AggregateSink sink;
  sink.group_by = {ColumnOf(1, pipeline.schemas.back()[1]), ColumnOf(2, pipeline.schemas.back()[2])};
  sink.aggregates.emplace_back().argument = ColumnOf(0, pipeline.schemas.back()[0]);
  pipeline.sink = std::move(sink);
  pipeline.after = {0, 1, 2};
  return pipeline;
}

TEST(Absorb, AStarKeepsTheProbeThatIsNotDirect) {
  const AbsorbedPipeline absorbed = Absorb(Star(), kDirect);
  EXPECT_EQ(absorbed.probes, (std::vector<AbsorbedPipeline::Probe>{{0, 0}, {1, 2}}));
  // The keys of absorbed probes do not flow out. Columns 1 (build 2's key) and 3 and the fetched ones do.
  EXPECT_EQ(absorbed.outputs, (std::vector<ScanOutput>{{-1, 1}, {-1, 3}, {0, 1}}));
  EXPECT_EQ(std::get<plan::BlockScan>(absorbed.pipeline.source).output, (std::vector<uint32_t>{1, 3}));
  ASSERT_EQ(absorbed.pipeline.steps.size(), 1u);
  const auto& probe = std::get<plan::ProbeStep>(absorbed.pipeline.steps[0]);
  EXPECT_EQ(probe.build, 2u);
  EXPECT_EQ(probe.keys[0].column.column, 0);
  EXPECT_EQ(probe.keep, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(probe.fetch, (std::vector<uint32_t>{0}));
  const auto& sink = std::get<plan::AggregateSink>(absorbed.pipeline.sink);
  EXPECT_EQ(sink.group_by[0].column.column, 1);
  EXPECT_EQ(sink.group_by[1].column.column, 2);
  EXPECT_EQ(sink.aggregates[0].argument.column.column, 0);
  EXPECT_EQ(absorbed.pipeline.after, (std::vector<uint32_t>{0, 1, 2}));
}

TEST(Absorb, AllProbesOfAStarOfDirectTablesAreLookups) {
  const AbsorbedPipeline absorbed = Absorb(Star(), std::vector<uint8_t>{1, 1, 1, 0});
  EXPECT_EQ(absorbed.probes, (std::vector<AbsorbedPipeline::Probe>{{0, 0}, {2, 1}, {1, 2}}));
  EXPECT_EQ(absorbed.outputs, (std::vector<ScanOutput>{{-1, 3}, {0, 1}, {1, 0}}));
  EXPECT_TRUE(absorbed.pipeline.steps.empty());
  EXPECT_EQ(absorbed.pipeline.schemas.size(), 1u);
}

TEST(Absorb, TextKeysAndOuterJoinsStay) {
  plan::Pipeline text = Star();
  std::get<plan::ProbeStep>(text.steps[0]).keys[0].type = Type::String();
  EXPECT_EQ(Absorb(text, kDirect).probes.size(), 1u);
  for (const JoinKind kind : {JoinKind::kRight, JoinKind::kFull}) {
    plan::Pipeline outer = Star();
    std::get<plan::ProbeStep>(outer.steps[0]).kind = kind;
    EXPECT_TRUE(Absorb(outer, kDirect).probes.empty()) << "rows that it adds would pass build 1's look-up";
  }
}

TEST(Absorb, ALookupIsByPartWhereTheTablesAreSplitAlike) {
  MemoryBudget budget(1 << 20);
  const auto build =
      *DirectTable::Make({.rows = 100, .key_min = 0, .key_max = 99, .unique = true, .parts = 4}, budget);
  proto::Table scanned;
  scanned.add_columns()->set_name("a");
  scanned.add_columns()->set_name("b");
  scanned.add_columns()->set_name("c");
  for (const auto& [column, parts, function] :
       {std::tuple{"b", 4, proto::MODULO}, {"a", 3, proto::XXH3}, {"c", 5, proto::MODULO}}) {
    proto::PartitionKey& key = *scanned.add_partitioning();
    key.set_column(column);
    key.set_parts(static_cast<uint32_t>(parts));
    key.set_function(function);
  }
  const KeyLookup split = LookupOf(*build, 7, 1, 0, scanned);
  EXPECT_EQ(split.slot, 7u);
  EXPECT_EQ(split.parts, 4u);
  EXPECT_EQ(split.divisor, 15u);
  EXPECT_EQ(LookupOf(*build, 7, 2, 2, scanned).divisor, 1u);
  EXPECT_EQ(LookupOf(*build, 7, 1, -1, scanned).parts, 0u);
  EXPECT_EQ(LookupOf(*build, 7, 0, 1, scanned).parts, 0u) << "not by modulo";
  EXPECT_EQ(LookupOf(*build, 7, 2, 0, scanned).parts, 0u) << "by another column";
  EXPECT_EQ(LookupOf(*build, 7, 2, 3, scanned).parts, 0u) << "no such key";
}

}  // namespace
}  // namespace nam::execution
