// The hand-written radix join. Items are tuples of both relations, as Balkesen et al. count them; CPU time is
// that of all threads. M is 2^20. Every answer is checked. 64 M tuples per relation take 2 GiB, and 3 GiB
// with two passes.
//
//     radix_join_benchmark --benchmark_filter='BM_RadixJoin/million:16/'
#include <benchmark/benchmark.h>

#include <memory>

#include "base/check.h"
#include "bench/join_input.h"
#include "bench/radix_join_loop.h"

namespace nam::bench {
namespace {

constexpr uint64_t kMillion = 1 << 20;
constexpr int kInputThreads = 2;

struct Case {
  JoinInput input;
  JoinAnswer expected;
};

/// Keeps only the last case: two may not fit in memory together.
const Case& CaseOf(uint64_t million, int64_t zipf_percent) {
  static std::unique_ptr<Case> made;
  static uint64_t made_million = 0;
  static int64_t made_zipf_percent = 0;
  if (made == nullptr || made_million != million || made_zipf_percent != zipf_percent) {
    made.reset();
    JoinInputOptions options{.r_tuples = million * kMillion, .s_tuples = million * kMillion};
    options.zipf = static_cast<double>(zipf_percent) / 100;
    options.threads = kInputThreads;
    made = std::make_unique<Case>(Case{.input = MakeJoinInput(options), .expected = {}});
    made->expected = ExpectedAnswer(made->input);
    made_million = million;
    made_zipf_percent = zipf_percent;
  }
  return *made;
}

void Measure(benchmark::State& state, const Case& with, const RadixJoinOptions& options) {
  RadixJoinLoop loop(with.input.r.tuples(), with.input.s.tuples(), options);
  for (auto _ : state) NAM_CHECK(loop.Run() == with.expected);
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(with.input.r.size() + with.input.s.size()));
}

void BM_RadixJoin(benchmark::State& state) {
  const Case& with = CaseOf(static_cast<uint64_t>(state.range(0)), state.range(1));
  Measure(state, with, {.threads = static_cast<int>(state.range(2))});
}
BENCHMARK(BM_RadixJoin)
    ->ArgNames({"million", "zipf_percent", "threads"})
    ->ArgsProduct({{1, 4, 16, 64}, {0, 100}, {1, 2}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// Measures the fan-outs and passes from which the defaults were chosen.
void BM_FanOut(benchmark::State& state) {
  RadixJoinOptions options{.threads = 2};
  options.radix_bits = static_cast<int>(state.range(1));
  options.passes = static_cast<int>(state.range(2));
  Measure(state, CaseOf(static_cast<uint64_t>(state.range(0)), 0), options);
}
BENCHMARK(BM_FanOut)
    ->ArgNames({"million", "bits", "passes"})
    ->ArgsProduct({{16}, {7, 8, 9, 10, 11, 12, 13, 14}, {1, 2}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nam::bench
