#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "execution/expression/program.h"
#include "storage/dictionary.h"

/// Expressions over chunks of 1,024 rows of codes, through row numbers as from a scan.
namespace nam {
namespace {

using plan::Expr;
using plan::Op;

constexpr uint32_t kRows = execution::kChunkRows;
constexpr uint32_t kEntries = 10000;

Expr Node(Op op, Type type, std::vector<Expr> children) {
  Expr e;
  e.op = op;
  e.type = type;
  e.children = std::move(children);
  return e;
}
Expr Slot(int slot, Type type) {
  Expr e;
  e.op = Op::kColumn;
  e.type = type;
  e.column = {0, slot};
  return e;
}
Expr Number(int64_t n) {
  Expr e;
  e.type = Type::Integer();
  e.literal = Value::Integer(n);
  return e;
}

/// Three columns of numbers with 2, 1 and 1 bytes, and a text column with 2-byte codes. `x < y` holds for
/// `percent` of the rows.
class Data {
 public:
  explicit Data(int percent) : chunk_(4, 1) {
    std::vector<std::string> texts;
    for (uint32_t i = 0; i < kEntries; ++i) {
      texts.push_back("part " + std::to_string(10000 + i) + (i % 10 == 3 ? " forest green" : " navy blue"));
    }
    dictionary_ = *storage::Dictionary::Decode(storage::Dictionary::Encode({texts.begin(), texts.end()}));
    uint32_t random = 12345;
    const auto next = [&random](uint32_t n) { return (random = random * 1664525 + 1013904223) / 7 % n; };
    for (uint32_t i = 0; i < kRows; ++i) {
      price_[i] = static_cast<uint16_t>(next(50000));
      x_[i] = static_cast<uint8_t>(next(100));
      y_[i] = static_cast<uint8_t>(static_cast<int>(next(100)) < percent ? x_[i] + 1 : x_[i]);
      name_[i] = static_cast<uint16_t>(next(kEntries));
      rows_[i] = i;
    }
    Add(0, Type::Integer(), price_, 2, 50000);
    Add(1, Type::Integer(), x_, 1, 101);
    Add(2, Type::Integer(), y_, 1, 101);
    Add(3, Type::String(), name_, 2, kEntries);
    Reset();
  }

  /// Restores all rows.
  void Reset() {
    std::memcpy(chunk_.row_set(0), rows_, sizeof(rows_));
    chunk_.SelectAll(kRows);
  }
  execution::Chunk& chunk() { return chunk_; }
  std::unique_ptr<const execution::Program> Program(const Expr& e) const {
    auto program = execution::Program::Compile({&e, 1}, schema_);
    NAM_CHECK(program.ok());
    return *std::move(program);
  }

 private:
  void Add(size_t slot, Type type, const void* codes, uint8_t width, uint64_t count) {
    const bool text = type.kind == TypeKind::kString;
    const auto max = static_cast<int64_t>(count) - 1;
    const auto* bytes = static_cast<const std::byte*>(codes);
    meanings_[slot] = {.type = type,
                       .width = width,
                       .codes = count,
                       .max = max,
                       .dictionary = text ? dictionary_ : nullptr,
                       .dictionary_id = text};
    chunk_.columns()[slot] = {.kind = execution::Column::Kind::kCodes,
                              .width = width,
                              .physical = PhysicalOf(type),
                              .base = bytes,
                              .rows = chunk_.row_set(0),
                              .meaning = &meanings_[slot]};
    schema_.push_back({.type = type, .nullable = false, .bounds = {0, max, !text}});
  }

  std::shared_ptr<const storage::Dictionary> dictionary_;
  alignas(64) uint16_t price_[kRows];
  alignas(64) uint8_t x_[kRows], y_[kRows];
  alignas(64) uint16_t name_[kRows];
  uint32_t rows_[kRows];
  execution::CodeMeaning meanings_[4];
  execution::Chunk chunk_;
  plan::Schema schema_;
};

Expr LessThan() {
  return Node(Op::kLess, Type::Bool(), {Slot(1, Type::Integer()), Slot(2, Type::Integer())});
}
/// price · (100 - x) + y
Expr ThreeNodes() {
  Expr less = Node(Op::kSubtract, Type::Integer(), {Number(100), Slot(1, Type::Integer())});
  Expr product = Node(Op::kMultiply, Type::Integer(), {Slot(0, Type::Integer()), std::move(less)});
  return Node(Op::kAdd, Type::Integer(), {std::move(product), Slot(2, Type::Integer())});
}
Expr LikeGreen() {
  Expr e = Node(Op::kLike, Type::Bool(), {Slot(3, Type::String())});
  e.literal = Value::String("%green%");
  return e;
}

void CountRows(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * kRows);
}

void Comparison(benchmark::State& state) {
  Data data(50);
  const auto program = data.Program(LessThan());
  execution::Frame frame = program->NewFrame();
  for (auto _ : state)
    benchmark::DoNotOptimize(program->Evaluate(0, frame, data.chunk(), data.chunk().selection())->truth);
  CountRows(state);
}
BENCHMARK(Comparison);

int64_t Sum(const int64_t* values, execution::Selection rows) {
  int64_t sum = 0;
  execution::ForEach(rows, [&](uint32_t p) { sum += values[p]; });
  return sum;
}

/// A filter that passes the given percentage, then three nodes, then their sum.
void AfterFilter(benchmark::State& state) {
  Data data(static_cast<int>(state.range(0)));
  const auto filter = data.Program(LessThan()), program = data.Program(ThreeNodes());
  execution::Frame filtering = filter->NewFrame(), frame = program->NewFrame();
  uint32_t kept[kRows];
  for (auto _ : state) {
    data.Reset();
    const uint32_t count = *SelectWhere(*filter, filtering, data.chunk(), data.chunk().selection(), kept);
    const execution::Selection rows{kept, count};
    benchmark::DoNotOptimize(Sum(program->Evaluate(0, frame, data.chunk(), rows)->narrow, rows));
  }
  CountRows(state);
}
BENCHMARK(AfterFilter)->Arg(50)->Arg(5);

void Like(benchmark::State& state) {
  Data data(50);
  const auto program = data.Program(LikeGreen());
  execution::Frame frame = program->NewFrame();
  for (auto _ : state)
    benchmark::DoNotOptimize(program->Evaluate(0, frame, data.chunk(), data.chunk().selection())->truth);
  CountRows(state);
}
BENCHMARK(Like);

/// The cost of a thread's first chunk: it evaluates all entries that occur.
void FirstLike(benchmark::State& state) {
  Data data(50);
  for (auto _ : state) {
    const auto program = data.Program(LikeGreen());
    execution::Frame frame = program->NewFrame();
    benchmark::DoNotOptimize(program->Evaluate(0, frame, data.chunk(), data.chunk().selection())->truth);
  }
}
BENCHMARK(FirstLike);

}  // namespace
}  // namespace nam
