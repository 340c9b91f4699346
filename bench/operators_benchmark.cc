// The engine's operators on one thread, without a cluster: chunks of codes into build sides and groups,
// through probes, filters and arithmetic. Times are per row.
//
//     operators_benchmark --benchmark_filter='Probe/rows:16777216'
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "execution/aggregate/aggregate_sink.h"
#include "execution/expression/program.h"
#include "execution/join/probe.h"

namespace nam {
namespace {

using execution::Chunk;
using execution::Column;
using execution::kChunkRows;
using execution::Program;
using execution::Step;
using plan::Expr;
using plan::Op;
using Codes = std::vector<uint64_t>;

constexpr uint64_t kProbes = 1 << 22;
constexpr uint64_t kInputRows = 1 << 21;  // groups and expressions read so many

Expr Slot(int column) {
  Expr e;
  e.op = Op::kColumn;
  e.type = Type::Integer();
  e.column = {0, column};
  return e;
}
Expr Node(Op op, Type type, Expr left, Expr right) {
  Expr e;
  e.op = op;
  e.type = type;
  e.children = {std::move(left), std::move(right)};
  return e;
}

Codes Random(uint64_t rows, uint64_t below) {
  RandomStream random(below);
  Codes codes(rows);
  for (uint64_t& code : codes) code = random.Below(below);
  return codes;
}

/// Columns of 8-byte codes, and what an operator over them needs.
struct Input {
  explicit Input(std::vector<Codes> columns) : codes(std::move(columns)), meanings(codes.size()) {
    for (size_t c = 0; c < codes.size(); ++c) {
      const auto most = static_cast<int64_t>(*std::max_element(codes[c].begin(), codes[c].end()));
      meanings[c] = {.type = Type::Integer(), .width = 8, .max = most};
      schema.push_back({.type = Type::Integer(), .nullable = false, .bounds = {0, most, true}});
      slots.push_back(Slot(static_cast<int>(c)));
    }
  }
  uint64_t rows() const { return codes[0].size(); }
  void Fill(Chunk& chunk, uint64_t first) const {
    for (size_t c = 0; c < codes.size(); ++c) {
      chunk.columns()[c] = {.kind = Column::Kind::kCodes,
                            .width = 8,
                            .base = reinterpret_cast<const std::byte*>(codes[c].data() + first),
                            .meaning = &meanings[c]};
    }
    chunk.SelectAll(static_cast<uint32_t>(std::min<uint64_t>(kChunkRows, rows() - first)));
  }
  /// Feeds all rows to a sink, and combines what it has.
  void Into(execution::Sink& sink) {
    const auto task = sink.NewTask(context);
    Chunk chunk(codes.size(), 0);
    for (uint64_t first = 0; first < rows(); first += kChunkRows) {
      Fill(chunk, first);
      NAM_CHECK(task->Consume(context, chunk) == Step::kNeedInput);
    }
    NAM_CHECK(task->Finish(context) == Step::kDone);
    const uint32_t parts = sink.CombineParts();
    for (uint32_t part = 0; part < parts; ++part) NAM_CHECK(sink.Combine(context, part).ok());
  }
  std::unique_ptr<const Program> Compile(const std::vector<Expr>& expressions) const {
    return *Program::Compile(expressions, schema);
  }

  std::vector<Codes> codes;
  std::vector<execution::CodeMeaning> meanings;
  plan::Schema schema;
  std::vector<Expr> slots;
  execution::MemoryBudget budget{uint64_t{1} << 40};
  std::atomic<bool> cancel = false;
  execution::TaskContext context{RealClock(), budget, cancel};
};

void Report(benchmark::State& state, uint64_t rows) {
  state.counters["row"] = benchmark::Counter(
      static_cast<double>(rows), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Tables of joins: an array of unique keys, an array of rows at rest, and a hash table of these.
enum class Form : int64_t { kUnique, kChained, kHashed };

/// A build side of keys in random order and one payload column.
struct BuildSide {
  explicit BuildSide(const benchmark::State& state)
      : form(static_cast<Form>(state.range(1))),
        input(Columns(static_cast<uint64_t>(state.range(0)), form)) {}

  static std::vector<Codes> Columns(uint64_t rows, Form form) {
    Codes order(rows);
    std::iota(order.begin(), order.end(), uint64_t{0});
    RandomStream random(1);
    for (uint64_t i = rows; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    Codes keys = order;
    if (form == Form::kHashed) {
      for (uint64_t& key : keys) key = MixBits(key) >> 2;
    }
    return {std::move(keys), std::move(order)};
  }
  void Make() {
    direct.reset();
    rows.reset();
    program = input.Compile(input.slots);
    key = input.Compile({input.slots[0]});
    execution::DirectTable::Options table{
        .rows = input.rows(), .key_min = 0, .key_max = input.meanings[0].max};
    if (form == Form::kUnique) {
      table.unique = true;
      direct = *execution::DirectBuild::Make(
          {.table = table, .key = key.get(), .payload = {1}, .meanings = {&input.meanings[1]}}, input.budget);
      return input.Into(*direct);
    }
    auto layout = *execution::RowLayout::Of(input.schema, execution::RowLayout::kMostPageBytes);
    const uint64_t pages_max = layout.pages_max();
    execution::RowBuild::Options options{
        .program = program.get(), .layout = std::move(layout), .pages_max = pages_max};
    if (form == Form::kChained) options.direct = table;
    rows = *execution::RowBuild::Make(std::move(options), input.budget);
    input.Into(*rows);
  }

  const Form form;
  Input input;
  std::unique_ptr<const Program> program, key;
  std::unique_ptr<execution::DirectBuild> direct;
  std::unique_ptr<execution::RowBuild> rows;
};

void Build(benchmark::State& state) {
  BuildSide build(state);
  for (auto _ : state) build.Make();
  Report(state, build.input.rows());
}

/// Without looking at the payload of the partners.
void Probe(benchmark::State& state) {
  BuildSide build(state);
  build.Make();
  Codes keys = Random(kProbes, build.input.rows());
  for (uint64_t& key : keys) key = build.input.codes[0][key];
  Input probing({std::move(keys)});
  const execution::ProbeOptions options{.keys = build.key.get(), .keep = {0}, .fetch = {0}};
  const auto probe =
      build.direct != nullptr ? build.direct->NewProbe(options) : build.rows->NewProbe(options);
  NAM_CHECK(probe.ok());
  const auto task = (*probe)->NewTask(probing.context);
  Chunk in(1, 0);
  const auto out = execution::NewProbeChunk(options);
  for (auto _ : state) {
    for (uint64_t first = 0; first < kProbes; first += kChunkRows) {
      probing.Fill(in, first);
      while (task->Push(probing.context, in, *out) == Step::kHaveMore) benchmark::DoNotOptimize(out->size());
    }
  }
  Report(state, kProbes);
}

void Joins(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "form"})->Unit(benchmark::kMillisecond);
  for (const int64_t rows : {1 << 20, 1 << 24}) {
    for (const Form form : {Form::kUnique, Form::kChained, Form::kHashed})
      benchmark->Args({rows, static_cast<int64_t>(form)});
  }
}
BENCHMARK(Build)->Apply(Joins);
BENCHMARK(Probe)->Apply(Joins);

/// Sums by one key, of the given number of groups.
void Group(benchmark::State& state) {
  Input input({Random(kInputRows, static_cast<uint64_t>(state.range(0))), Random(kInputRows, 1 << 24)});
  const std::vector<plan::Aggregate> sums = {
      {.function = plan::AggregateFunction::kSum, .argument = input.slots[1], .type = Type::Integer()}};
  execution::AggregatePlan::Options options;
  options.group_by = std::span(input.slots).first(1);
  options.aggregates = sums;
  options.schema = input.schema;
  const auto plan = execution::AggregatePlan::Make(options).value();
  for (auto _ : state) {
    execution::AggregateSink sink(*plan, input.budget);
    input.Into(sink);
  }
  Report(state, kInputRows);
}
BENCHMARK(Group)->ArgName("groups")->Arg(7)->Arg(280)->Arg(4096)->Arg(1'000'000)->Unit(
    benchmark::kMillisecond);

/// price · (100 - x) + y of the rows that pass x < y: of half of them.
void FilterAndCompute(benchmark::State& state) {
  Input input({Random(kInputRows, 50'000), Random(kInputRows, 100), Random(kInputRows, 101)});
  Expr hundred;
  hundred.type = Type::Integer();
  hundred.literal = Value::Integer(100);
  Expr left = Node(Op::kSubtract, Type::Integer(), std::move(hundred), Slot(1));
  Expr product = Node(Op::kMultiply, Type::Integer(), Slot(0), std::move(left));
  const auto filter = input.Compile({Node(Op::kLess, Type::Bool(), Slot(1), Slot(2))});
  const auto sum = input.Compile({Node(Op::kAdd, Type::Integer(), std::move(product), Slot(2))});
  execution::Frame filtering = filter->NewFrame(), adding = sum->NewFrame();
  Chunk chunk(3, 0);
  std::vector<uint32_t> kept(kChunkRows);
  for (auto _ : state) {
    for (uint64_t first = 0; first < kInputRows; first += kChunkRows) {
      input.Fill(chunk, first);
      const auto count = SelectWhere(*filter, filtering, chunk, chunk.selection(), kept.data());
      benchmark::DoNotOptimize(sum->Evaluate(0, adding, chunk, {kept.data(), *count}));
    }
  }
  Report(state, kInputRows);
}
BENCHMARK(FilterAndCompute)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nam
