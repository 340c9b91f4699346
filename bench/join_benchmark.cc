#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "execution/join/probe.h"

/// Build sides and probes: tables of positions and rows at rest. Keys are 0 … rows - 1 in random order
/// (hashed: scattered over 62 bits); payload consists of 8-byte numbers. Times are per row, with 2 threads
/// for builds and one for probes.
///
///     join_benchmark --benchmark_filter='Probe.*/16777216/'
namespace nam {
namespace {

constexpr uint32_t kChunk = execution::kChunkRows;
constexpr size_t kThreads = 2;
constexpr uint64_t kProbes = 1 << 22;

enum class Form : int64_t { kUnique, kChained, kHashed };

/// Hashed: without an order that a multiplicative hash would spread too well.
int64_t KeyOf(Form form, uint64_t i) {
  return static_cast<int64_t>(form == Form::kHashed ? MixBits(i) & ((uint64_t{1} << 62) - 1) : i);
}

/// Columns of codes: a key, payload, and probing keys.
struct Input {
  Input(Form form, uint64_t rows, size_t payload_bytes) : form(form), payload(payload_bytes / 8) {
    std::vector<uint64_t> order(rows);
    std::iota(order.begin(), order.end(), uint64_t{0});
    std::mt19937_64 random(1);
    std::shuffle(order.begin(), order.end(), random);
    for (uint64_t i : order) keys.push_back(static_cast<uint64_t>(KeyOf(form, i)));
    for (std::vector<uint64_t>& column : payload) column = order;
    for (uint64_t i = 0; i < kProbes; ++i) probes.push_back(keys[random() % rows]);
    meaning.type = Type::Integer();
    meaning.width = 8;
    meaning.codes = 0;
    meaning.max = form == Form::kHashed ? INT64_MAX : static_cast<int64_t>(rows) - 1;
  }
  execution::Column ColumnOf(const std::vector<uint64_t>& codes, uint64_t first) const {
    return {.kind = execution::Column::Kind::kCodes,
            .width = 8,
            .base = reinterpret_cast<const std::byte*>(codes.data() + first),
            .meaning = &meaning};
  }
  /// Fills a chunk of the build side: the key, then payload.
  void Fill(execution::Chunk& chunk, uint64_t first) const {
    chunk.columns()[0] = ColumnOf(keys, first);
    for (size_t c = 0; c < payload.size(); ++c) chunk.columns()[c + 1] = ColumnOf(payload[c], first);
    chunk.SelectAll(static_cast<uint32_t>(std::min<uint64_t>(kChunk, keys.size() - first)));
  }

  const Form form;
  std::vector<uint64_t> keys, probes;
  std::vector<std::vector<uint64_t>> payload;
  execution::CodeMeaning meaning;
};

const Input& InputOf(const benchmark::State& state) {
  static std::unique_ptr<Input> input;  // the last one: each takes a gigabyte
  static std::vector<int64_t> made_for;
  const std::vector<int64_t> wanted = {state.range(0), state.range(1), state.range(2)};
  if (made_for != wanted) {
    input.reset();
    input = std::make_unique<Input>(static_cast<Form>(wanted[2]), wanted[0], wanted[1]);
    made_for = wanted;
  }
  return *input;
}

template <typename Body>
void OnThreads(Body&& body) {
  std::vector<std::thread> threads;
  for (size_t t = 1; t < kThreads; ++t) threads.emplace_back(body, t);
  body(0);
  for (std::thread& thread : threads) thread.join();
}

/// An input's build side with its dependencies.
struct JoinBuild {
  explicit JoinBuild(const Input& input)
      : input(input), budget(uint64_t{1} << 40), cancel(false), context(RealClock(), budget, cancel) {
    for (size_t c = 0; c <= input.payload.size(); ++c) {
      plan::Slot slot = {.type = Type::Integer(), .nullable = false};
      slot.bounds = {0, c == 0 ? input.meaning.max : INT64_MAX, true};
      schema.push_back(slot);
      plan::Expr column;
      column.op = plan::Op::kColumn;
      column.type = slot.type;
      column.column = {0, static_cast<int>(c)};
      outputs.push_back(column);
    }
    program = *execution::Program::Compile(outputs, schema);
    key = *execution::Program::Compile({outputs.data(), 1}, {schema[0]});
    execution::DirectTable::Options table{
        .rows = input.keys.size(), .key_min = 0, .key_max = input.meaning.max};
    if (input.form == Form::kUnique) {
      table.unique = true;
      execution::DirectBuild::Options options{.table = table, .key = key.get()};
      for (uint32_t c = 0; c < input.payload.size(); ++c) options.payload.push_back(c + 1);
      options.meanings.assign(input.payload.size(), &input.meaning);
      direct = *execution::DirectBuild::Make(std::move(options), budget);
      return;
    }
    auto layout = *execution::RowLayout::Of(schema, execution::RowLayout::kMostPageBytes);
    const uint64_t pages_max = layout.pages_max();
    execution::RowBuild::Options options{
        .program = program.get(), .layout = std::move(layout), .pages_max = pages_max};
    if (input.form == Form::kChained) options.direct = table;
    rows = *execution::RowBuild::Make(std::move(options), budget);
  }

  execution::Sink& sink() { return direct != nullptr ? static_cast<execution::Sink&>(*direct) : *rows; }
  void Run() {
    OnThreads([&](size_t t) {
      execution::TaskContext own(RealClock(), budget, cancel);
      const auto task = sink().NewTask(own);
      execution::Chunk chunk(schema.size(), 0);
      for (uint64_t first = t * kChunk; first < input.keys.size(); first += kThreads * kChunk) {
        input.Fill(chunk, first);
        NAM_CHECK(task->Consume(own, chunk) == execution::Step::kNeedInput);
      }
    });
    const uint32_t parts = sink().CombineParts();
    std::atomic<uint32_t> next = 0;
    OnThreads([&](size_t) {
      execution::TaskContext own(RealClock(), budget, cancel);
      for (uint32_t part = next++; part < parts; part = next++) NAM_CHECK(sink().Combine(own, part).ok());
    });
  }

  const Input& input;
  execution::MemoryBudget budget;
  std::atomic<bool> cancel;
  execution::TaskContext context;
  plan::Schema schema;
  std::vector<plan::Expr> outputs;
  std::unique_ptr<const execution::Program> program, key;
  std::unique_ptr<execution::DirectBuild> direct;
  std::unique_ptr<execution::RowBuild> rows;
};

void Report(benchmark::State& state, uint64_t rows) {
  state.counters["row"] = benchmark::Counter(
      static_cast<double>(rows), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void BM_Build(benchmark::State& state) {
  const Input& input = InputOf(state);
  for (auto _ : state) JoinBuild(input).Run();
  Report(state, input.keys.size());
}

uint64_t SumOf(const execution::Column& column, execution::Selection rows) {
  uint64_t sum = 0;
  if (column.kind == execution::Column::Kind::kCodes) {
    const auto* codes = reinterpret_cast<const uint64_t*>(column.base);
    execution::ForEach(rows, [&](uint32_t position) { sum += codes[column.rows[position]]; });
    return sum;
  }
  const execution::RowField field = *column.field;
  execution::ForEach(rows, [&](uint32_t position) {
    sum += field.Stored<uint64_t>(field.RowOf(column.base, column.rows[position]));
  });
  return sum;
}

/// Also sums up the payload of all matches.
void BM_Probe(benchmark::State& state) {
  const Input& input = InputOf(state);
  JoinBuild build(input);
  build.Run();
  execution::ProbeOptions options{.keys = build.key.get(), .keep = {0}};
  for (uint32_t c = 0; c < input.payload.size(); ++c) options.fetch.push_back(c);
  auto probe = build.direct != nullptr ? execution::MakeProbe(*build.direct, options)
                                       : execution::MakeProbe(*build.rows, options);
  NAM_CHECK(probe.ok());
  const auto task = (*probe)->NewTask(build.context);
  execution::Chunk in(1, 0);
  const auto out = execution::NewProbeChunk(options);
  uint64_t sum = 0;
  for (auto _ : state) {
    for (uint64_t first = 0; first < kProbes; first += kChunk) {
      in.columns()[0] = input.ColumnOf(input.probes, first);
      in.SelectAll(kChunk);
      execution::Step step = execution::Step::kHaveMore;
      while (step == execution::Step::kHaveMore) {
        step = task->Push(build.context, in, *out);
        for (size_t c = 0; c < input.payload.size(); ++c)
          sum += SumOf(out->column(static_cast<uint32_t>(c) + 1), out->selection());
      }
    }
  }
  benchmark::DoNotOptimize(sum);
  Report(state, kProbes);
}

void Cases(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "payload", "form"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (int64_t rows : {1 << 20, 1 << 24}) {
    for (int64_t payload : {8, 24}) {
      for (Form form : {Form::kUnique, Form::kChained, Form::kHashed})
        benchmark->Args({rows, payload, static_cast<int64_t>(form)});
    }
  }
}
BENCHMARK(BM_Build)->Apply(Cases);
BENCHMARK(BM_Probe)->Apply(Cases);

}  // namespace
}  // namespace nam
