// Rows at rest: the time of one thread to write tuples of chunks as rows of 8 and of 24 bytes, and to load a
// field of them into a vector, in order and in random order. Tables have 64 MiB, so that they do not fit a
// cache; bytes are those of the rows.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "execution/chunk.h"
#include "execution/rows/row_hash.h"
#include "execution/rows/row_table.h"
#include "execution/rows/row_writer.h"

namespace nam::execution {
namespace {

constexpr uint64_t kTableBytes = 64 << 20;
constexpr uint32_t kPageBytes = RowLayout::kMostPageBytes;
/// Chunks that are written in turn; their values stay in the second-level cache.
constexpr uint32_t kPlaces = 16 * kChunkRows;

/// Rows of `columns` 4-byte numbers, from 4-byte codes or from 8-byte vectors.
struct Rows {
  Rows(int64_t columns, bool codes) : codes_of(kPlaces), values_of(kPlaces), chunk(columns, 0) {
    const plan::Slot slot = {Type::Integer(), false, {0, UINT32_MAX, true}};
    schema.assign(static_cast<size_t>(columns), slot);
    std::vector<plan::Expr> outputs(schema.size());
    RandomStream random(1);
    for (uint32_t i = 0; i < kPlaces; ++i) values_of[i] = codes_of[i] = static_cast<uint32_t>(random.Next());
    meaning = {.type = slot.type, .width = 4, .codes = uint64_t{1} << 32, .max = UINT32_MAX};
    for (size_t i = 0; i < schema.size(); ++i) {
      outputs[i].op = plan::Op::kColumn;
      outputs[i].type = slot.type;
      outputs[i].column = {0, static_cast<int>(i)};
      chunk.columns()[i] =
          codes ? Column{.kind = Column::Kind::kCodes, .width = 4, .meaning = &meaning} : Column{};
    }
    program = *Program::Compile(outputs, schema);
    frame.emplace(program->NewFrame());
    table = *RowTable::Make(*RowLayout::Of(schema, kPageBytes), budget, kTableBytes / kPageBytes);
    writer.emplace(table->layout(), *program);
    // Allocates the memory before anything is measured.
    while (table->pages() < kTableBytes / kPageBytes) NAM_CHECK(table->NewPage().ok());
    Write();
  }

  /// Fills the whole table; returns the number of rows.
  uint64_t Write() {
    uint32_t page = 0;
    NextPage(page);
    for (uint32_t number = 0;; number = (number + 1) % 16) {
      for (Column& column : chunk.columns()) {
        column.base = column.kind == Column::Kind::kCodes
                          ? reinterpret_cast<const std::byte*>(codes_of.data() + number * kChunkRows)
                          : reinterpret_cast<const std::byte*>(values_of.data() + number * kChunkRows);
      }
      chunk.SelectAll(kChunkRows);
      for (uint32_t done = 0; done < kChunkRows;) {
        NAM_CHECK(writer->Append(*frame, chunk, chunk.selection(), done, nullptr));
        if (done == kChunkRows) break;
        if (++page == table->pages()) return table->rows();
        NextPage(page);
      }
    }
  }
  void NextPage(uint32_t page) {
    table->layout().Clear(table->page(page));
    writer->Open(table->page(page), page << table->layout().rows_shift());
  }

  /// The numbers of all rows, in whole chunks.
  std::vector<uint32_t> Numbers(bool shuffled) const {
    std::vector<uint32_t> numbers;
    for (uint32_t page = 0; page < table->pages(); ++page) {
      for (uint32_t place = 0; place < table->page_rows(page); ++place) {
        numbers.push_back(page << table->layout().rows_shift() | place);
      }
    }
    RandomStream random(2);
    for (size_t i = numbers.size(); shuffled && i > 1; --i)
      std::swap(numbers[i - 1], numbers[random.Below(i)]);
    numbers.resize(numbers.size() / kChunkRows * kChunkRows);
    return numbers;
  }

  plan::Schema schema;
  CodeMeaning meaning;
  std::vector<uint32_t> codes_of;
  std::vector<int64_t> values_of;
  Chunk chunk;
  MemoryBudget budget{2 * kTableBytes};
  std::unique_ptr<const Program> program;
  std::optional<Frame> frame;
  std::unique_ptr<RowTable> table;
  std::optional<RowWriter> writer;
};

void Report(benchmark::State& state, uint64_t rows, const Rows& of) {
  state.SetBytesProcessed(static_cast<int64_t>(rows * of.table->layout().stride()));
  state.counters["ns_a_row"] = benchmark::Counter(static_cast<double>(rows) / 1e9,
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void Write(benchmark::State& state, bool codes) {
  Rows of(state.range(0) / 4, codes);
  uint64_t rows = 0;
  for (auto _ : state) rows += of.Write();
  Report(state, rows, of);
}
BENCHMARK_CAPTURE(Write, codes, true)->Arg(8)->Arg(24);
BENCHMARK_CAPTURE(Write, vectors, false)->Arg(8)->Arg(24);

/// Uses a new table each time: the system zeroes and frees the pages.
void WriteNewMemory(benchmark::State& state) {
  Rows of(state.range(0) / 4, true);
  uint64_t rows = 0;
  for (auto _ : state) {
    of.table.reset();
    of.table = *RowTable::Make(*RowLayout::Of(of.schema, kPageBytes), of.budget, kTableBytes / kPageBytes);
    of.writer.emplace(of.table->layout(), *of.program);
    while (of.table->pages() < kTableBytes / kPageBytes) NAM_CHECK(of.table->NewPage().ok());
    rows += of.Write();
  }
  Report(state, rows, of);
}
BENCHMARK(WriteNewMemory)->Arg(8)->Arg(24);

/// Loads one field.
void Read(benchmark::State& state, bool shuffled) {
  Rows of(state.range(0) / 4, true);
  const std::vector<uint32_t> numbers = of.Numbers(shuffled);
  Chunk chunk(of.schema.size(), 0);
  chunk.SelectAll(kChunkRows);
  uint64_t rows = 0;
  for (auto _ : state) {
    for (size_t i = 0; i < numbers.size(); i += kChunkRows) {
      chunk.columns()[0] = of.table->ColumnOf(0, numbers.data() + i);
      benchmark::DoNotOptimize(of.program->Evaluate(0, *of.frame, chunk, chunk.selection()));
    }
    rows += numbers.size();
  }
  Report(state, rows, of);
}
BENCHMARK_CAPTURE(Read, in_order, false)->Arg(8)->Arg(24);
BENCHMARK_CAPTURE(Read, shuffled, true)->Arg(8)->Arg(24);

/// Hashes one field of all rows, as for a build that inserts its pages.
void Hash(benchmark::State& state) {
  Rows of(state.range(0) / 4, true);
  const uint32_t field = 0;
  std::vector<uint64_t> hashes(kChunkRows);
  uint64_t rows = 0;
  for (auto _ : state) {
    for (uint32_t page = 0; page < of.table->pages(); ++page) {
      const uint32_t count = of.table->page_rows(page);
      for (uint32_t place = 0; place < count; place += kChunkRows) {
        HashRows(of.table->layout(), {&field, 1}, of.table->page(page), place,
                 std::min(kChunkRows, count - place), hashes.data());
        benchmark::DoNotOptimize(hashes.data());
      }
      rows += count;
    }
  }
  Report(state, rows, of);
}
BENCHMARK(Hash)->Arg(8)->Arg(24);

/// The cost of checking a foreign page before it is read.
void Check(benchmark::State& state) {
  Rows of(state.range(0) / 4, true);
  for (uint32_t page = 0; page < of.table->pages(); ++page) of.table->layout().Seal(of.table->page(page), 1);
  uint64_t rows = 0;
  for (auto _ : state) {
    for (uint32_t page = 0; page < of.table->pages(); ++page) {
      NAM_CHECK(of.table->layout().CheckPage({of.table->page(page), kPageBytes}, 1).ok());
    }
    rows += of.table->rows();
  }
  Report(state, rows, of);
}
BENCHMARK(Check)->Arg(8)->Arg(24);

}  // namespace
}  // namespace nam::execution
