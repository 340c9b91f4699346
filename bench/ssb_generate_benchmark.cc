// The rate at which one core generates the benchmark's rows, in batches of the loaders' size.
#include <benchmark/benchmark.h>

#include "ssb/generator.h"

namespace nam::ssb {
namespace {

void GenerateRows(benchmark::State& state, Table table) {
  const Generator generator({.scale_factor = 1, .seed = 1});
  const uint64_t units =
      std::min<uint64_t>(generator.Units(table), table == Table::kLineorder ? 4096 : 16384);
  partitioner::ColumnBatch batch(Tables()[table].schema.columns.size());
  uint64_t first = 0;
  uint64_t rows = 0;
  for (auto _ : state) {
    if (first + units > generator.Units(table)) first = 0;
    generator.Fill(table, first, units, batch);
    benchmark::DoNotOptimize(batch.column(0).numbers.data());
    first += units;
    rows += batch.rows();
  }
  state.SetItemsProcessed(static_cast<int64_t>(rows));
}

BENCHMARK_CAPTURE(GenerateRows, customer, Table::kCustomer);
BENCHMARK_CAPTURE(GenerateRows, supplier, Table::kSupplier);
BENCHMARK_CAPTURE(GenerateRows, part, Table::kPart);
BENCHMARK_CAPTURE(GenerateRows, date, Table::kDate);
BENCHMARK_CAPTURE(GenerateRows, lineorder, Table::kLineorder);

}  // namespace
}  // namespace nam::ssb
