#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/random.h"
#include "execution/scan/block_scan.h"
#include "tests/execution/scan/scan_table.h"

/// The cost of a block from the stream to the sink, on one thread, in place: `select sum(wide) from t where
/// key < …`. A lineorder block has about as many rows; 13 of those of Q2.1 are left. The argument is how many
/// of 1,001 keys pass.
namespace nam::execution {
namespace {

constexpr uint32_t kBlockRows = 1650, kBlocks = 100, kRounds = 100;

std::vector<ScanRow> Rows() {
  RandomStream random(1);
  std::vector<ScanRow> rows(size_t{kBlockRows} * kBlocks);
  for (ScanRow& row : rows) {
    row.key = ScanTable::kKeyMin + static_cast<int64_t>(random.Below(1001));
    row.day = ScanTable::kDayMin + static_cast<int64_t>(random.Below(400));
    row.wide = static_cast<int64_t>(random.Below(uint64_t{1} << 40));
  }
  return rows;
}

/// The table, and a list of its blocks in which each occurs often.
struct Setting {
  ScanTable table{
      fabric::Kind::kShm, {.partitions = 1, .block_rows = kBlockRows, .pointer_group = 32}, Rows()};
  std::unique_ptr<fabric::Fabric> fabric = storage::OpenFabric(fabric::Kind::kShm);
  std::shared_ptr<storage::KnownBlocks> known = table.NewKnownBlocks();
  std::vector<partitioner::Piece> Pieces() const {
    return std::vector<partitioner::Piece>(kRounds, {0, 0, kBlocks});
  }
  static Setting& Get() {
    static Setting setting;
    return setting;
  }
};

plan::Expr ReadSlot(uint32_t slot) {
  plan::Expr out;
  out.op = plan::Op::kColumn;
  out.type = Type::Integer();
  out.column = {0, static_cast<int>(slot)};
  return out;
}
plan::Expr FirstKeys(uint32_t slot, int64_t keys) {
  plan::Expr literal;
  literal.type = Type::Integer();
  literal.literal = Value::Integer(ScanTable::kKeyMin + keys);
  plan::Expr out;
  out.op = plan::Op::kLess;
  out.type = Type::Bool();
  out.children = {ReadSlot(slot), std::move(literal)};
  return out;
}

void CountBlocks(benchmark::State& state) {
  const auto blocks = static_cast<double>(state.iterations()) * kRounds * kBlocks;
  state.counters["block"] =
      benchmark::Counter(blocks, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// The smallest possible sink.
class SumSink final : public SinkTask {
 public:
  Step Consume(TaskContext&, const Chunk& in) override {
    const Column& column = in.column(0);
    uint64_t sum = 0;
    WithCodes(column.base, column.width, [&](const auto* codes) {
      ForEach(in.selection(), [&](uint32_t p) { sum += codes[column.rows[p]]; });
    });
    sum_ += static_cast<__int128>(sum) + __int128{in.selection().count} * column.meaning->base;
    return Step::kNeedInput;
  }
  Step Finish(TaskContext&) override {
    benchmark::DoNotOptimize(sum_);
    return Step::kDone;
  }

 private:
  __int128 sum_ = 0;
};

void ScanBlocks(benchmark::State& state) {
  Setting& setting = Setting::Get();
  BlockScan::Options options = setting.table.ScanOf({ScanTable::kKey, ScanTable::kWide});
  options.filters = {FirstKeys(0, state.range(0))};
  options.outputs = {{ScanOutput::kScanned, 1}};
  options.known = setting.known;
  options.in_place = true;
  const auto channel = *storage::Channel::Open(*setting.fabric, setting.table.servers(), {});
  MemoryBudget budget(0);
  for (auto _ : state) {
    std::atomic<bool> cancel = false;
    PieceQueue queue(setting.Pieces());
    const auto scan = *BlockScan::Make(options, queue);
    TaskContext context(setting.fabric->clock(), budget, cancel, {channel.get(), nullptr});
    std::vector<std::unique_ptr<Chunk>> chunks;
    chunks.push_back(scan->NewChunk());
    auto source = scan->NewTask(context);
    PipelineTask task(std::move(source), {}, std::make_unique<SumSink>(), std::move(chunks));
    NAM_CHECK(task.Run(context) == Step::kDone);
  }
  CountBlocks(state);
}

// No row, 13 of 1,650 rows, and all rows: whole chunks.
BENCHMARK(ScanBlocks)->Arg(0)->Arg(8)->Arg(2000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace nam::execution
