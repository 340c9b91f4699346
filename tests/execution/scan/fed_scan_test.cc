#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include "base/random.h"
#include "execution/scan/block_feed.h"
#include "execution/scan/block_scan.h"
#include "partitioner/table_metadata.h"
#include "tests/execution/scan/scan_rows.h"
#include "tests/execution/scan/scan_table.h"

/// Scans whose blocks come from outside.
namespace nam::execution {
namespace {

using plan::Op;

constexpr fabric::Kind kKind = fabric::Kind::kShm;

/// Delivers all blocks of a table, with all columns.
class Blocks {
 public:
  explicit Blocks(ScanTable& table)
      : table_(table),
        fabric_(storage::OpenFabric(kKind)),
        channel_(*storage::Channel::Open(*fabric_, table.servers(), {})) {}

  void ForEach(const std::function<bool(const storage::BlockView&)>& body) {
    static constexpr uint32_t kAll[] = {0, 1, 2, 3};
    const proto::Table& meta = *table_.meta();
    uint32_t next = 0;
    storage::BlockStream stream(*channel_, partitioner::StreamTableOf(meta, kAll), {.window = 4},
                                [&]() -> std::optional<storage::ChainStart> {
                                  while (next < static_cast<uint32_t>(meta.partitions_size())) {
                                    const auto chain = partitioner::ChainStartOf(meta, next++);
                                    if (chain.blocks > 0) return chain;
                                  }
                                  return std::nullopt;
                                });
    storage::BlockView block;
    while (*stream.Next(block)) {
      if (!body(block)) return;
    }
  }

 private:
  ScanTable& table_;
  const std::unique_ptr<fabric::Fabric> fabric_;
  const std::unique_ptr<storage::Channel> channel_;
};

/// Without channels: a fed task needs none.
struct Surroundings {
  MemoryBudget budget{0};
  std::atomic<bool> cancel = false;
  TaskContext context{RealClock(), budget, cancel};
};

/// Until it is not blocked.
Step RunOn(FedTask& fed, TaskContext& context) {
  while (true) {
    const Step step = fed.task.Run(context);
    if (step != Step::kBlocked) return step;
    NAM_CHECK(context.gate()->open());
  }
}

std::vector<TextRow> Sorted(std::vector<TextRow> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// Pipelines of their own columns and filters, each of which gets every block before the next one comes.
TEST(FedScan, GivesTheRowsThatAStreamGives) {
  EXPECT_TRUE(rc::check("fed = streamed", [] {
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    RandomStream random(seed);
    static constexpr uint32_t kBlockRows[] = {1, 100, 1024, 1025, 3000};
    const ScanTable::Shape shape{.partitions = 1u << random.Below(3),
                                 .groups = 1 + static_cast<uint32_t>(random.Below(2)),
                                 .block_rows = kBlockRows[random.Below(5)]};
    const size_t count = random.Below(shape.block_rows == 1 ? 40 : 9000);
    ScanTable table(kKind, shape, RandomRows(random, count, shape));
    Surroundings around;
    PieceQueue unused({});
    std::vector<BlockScan::Options> options;
    std::vector<std::unique_ptr<BlockScan>> scans;
    std::deque<FedTask> fed;
    for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
      std::vector<uint32_t> columns;
      for (uint32_t c = 0; c < ScanTable::kColumns; ++c) {
        if (random.Below(3) != 0) columns.push_back(c);
      }
      if (columns.empty()) columns.push_back(ScanTable::kText);
      options.push_back(table.ScanOf(columns));
      for (uint64_t f = random.Below(3); f > 0; --f)
        options.back().filters.push_back(RandomFilter(random, columns));
      scans.push_back(*BlockScan::Make(options.back(), unused));
      fed.emplace_back(*scans.back(), around.context, seed + i);
    }
    uint64_t blocks = 0;
    Blocks(table).ForEach([&](const storage::BlockView& block) {
      ++blocks;
      for (size_t k = 0, first = random.Below(fed.size()); k < fed.size(); ++k) {
        FedTask& task = fed[(first + k) % fed.size()];
        task.feed.Give(block);
        RC_ASSERT(RunOn(task, around.context) == Step::kNeedInput);
        RC_ASSERT(RunOn(task, around.context) == Step::kNeedInput);  // and takes nothing twice
      }
      return true;
    });
    for (size_t i = 0; i < fed.size(); ++i) {
      RC_ASSERT(!fed[i].result.finished);
      fed[i].feed.Close();
      RC_ASSERT(RunOn(fed[i], around.context) == Step::kDone);
      RC_ASSERT(fed[i].result.finished);
      PieceQueue queue(Whole(*table.meta()));
      const auto streaming = *BlockScan::Make(options[i], queue);
      const auto streamed = StreamedRows(kKind, table, *streaming);
      RC_ASSERT(streamed.ok());
      RC_ASSERT(Sorted(fed[i].result.rows) == *streamed);
      const ScanTotals totals = scans[i]->totals(), expected = streaming->totals();
      RC_ASSERT(totals.rows_in == count);
      RC_ASSERT(totals.skipped_blocks == expected.skipped_blocks);
      RC_ASSERT(totals.stream.blocks == 0u && expected.stream.blocks == blocks);
      RC_ASSERT(totals.begun.empty() && totals.claims_made == 0u);
    }
  }));
}

/// Two tasks of one scan share the blocks.
TEST(FedScan, TasksOfOneScanAddUpTheirTotals) {
  ScanTable table(kKind, {.partitions = 1, .block_rows = 1500}, Numbered(6000));
  Surroundings around;
  PieceQueue unused({});
  const auto scan = *BlockScan::Make(table.ScanOf({ScanTable::kWide}), unused);
  FedTask fed[] = {{*scan, around.context, 1}, {*scan, around.context, 2}};
  size_t blocks = 0;
  Blocks(table).ForEach([&](const storage::BlockView& block) {
    FedTask& task = fed[++blocks % 3 == 0];
    task.feed.Give(block);
    EXPECT_EQ(RunOn(task, around.context), Step::kNeedInput);
    return true;
  });
  EXPECT_EQ(blocks, 4u);
  for (FedTask& task : fed) {
    task.feed.Close();
    EXPECT_EQ(RunOn(task, around.context), Step::kDone);
  }
  EXPECT_EQ(fed[0].result.rows.size(), 4500u);
  EXPECT_EQ(fed[1].result.rows.size(), 1500u);
  EXPECT_EQ(scan->totals().rows_in, 6000u);
  EXPECT_GT(scan->totals().total_ns, 0);
}

TEST(FedScan, AFeedThatIsClosedAtOnceGivesNoRows) {
  ScanTable table(kKind, {}, Numbered(500));
  Surroundings around;
  PieceQueue unused({});
  const auto scan = *BlockScan::Make(table.ScanOf({ScanTable::kKey}), unused);
  FedTask fed(*scan, around.context, 1);
  EXPECT_EQ(RunOn(fed, around.context), Step::kNeedInput);
  fed.feed.Close();
  EXPECT_EQ(RunOn(fed, around.context), Step::kDone);
  EXPECT_TRUE(fed.result.rows.empty() && fed.result.finished);
  EXPECT_EQ(scan->totals().rows_in, 0u);
}

TEST(FedScan, ACancelledTaskFails) {
  ScanTable table(kKind, {.partitions = 1}, Numbered(3000));
  Surroundings around;
  PieceQueue unused({});
  const auto scan = *BlockScan::Make(table.ScanOf({ScanTable::kKey}), unused);
  FedTask fed(*scan, around.context, 1);
  Blocks(table).ForEach([&](const storage::BlockView& block) {
    around.cancel = block.index() == 2;
    fed.feed.Give(block);
    const Step step = RunOn(fed, around.context);
    EXPECT_EQ(step, block.index() == 2 ? Step::kFailed : Step::kNeedInput);
    return step == Step::kNeedInput;
  });
  EXPECT_EQ(around.context.error().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(fed.result.rows.size(), 200u);
  EXPECT_FALSE(fed.result.finished);
}

TEST(FedScan, ASinkThatWantsNoMoreEndsTheTask) {
  ScanTable table(kKind, {.partitions = 1}, Numbered(3000));
  Surroundings around;
  PieceQueue unused({});
  const auto scan = *BlockScan::Make(table.ScanOf({ScanTable::kKey}), unused);
  FedTask fed(*scan, around.context, 1, 150);
  Blocks(table).ForEach([&](const storage::BlockView& block) {
    fed.feed.Give(block);
    const Step step = RunOn(fed, around.context);
    EXPECT_EQ(step, block.index() == 1 ? Step::kDone : Step::kNeedInput);
    return step == Step::kNeedInput;
  });
  EXPECT_TRUE(fed.result.finished);
  EXPECT_EQ(fed.result.rows.size(), 200u);
  EXPECT_EQ(scan->totals().rows_in, 200u) << "reported when it was stopped";
}

TEST(FedScan, AFilterThatFailsFailsTheTask) {
  ScanTable table(kKind, {.partitions = 1}, Numbered(3000));
  Surroundings around;
  BlockScan::Options options = table.ScanOf({ScanTable::kWide});
  options.filters.push_back(Compare(
      Op::kGreaterEqual,
      Node(Op::kDivide, Type::Integer(),
           {Literal(Value::Integer(1)),
            Node(Op::kSubtract, Type::Integer(), {Read(0, ScanTable::kWide), Literal(Value::Integer(250))})}),
      -1));
  PieceQueue unused({});
  const auto scan = *BlockScan::Make(options, unused);
  FedTask fed(*scan, around.context, 1);
  Blocks(table).ForEach([&](const storage::BlockView& block) {
    fed.feed.Give(block);
    const Step step = RunOn(fed, around.context);
    EXPECT_EQ(step, block.index() == 2 ? Step::kFailed : Step::kNeedInput);
    return step == Step::kNeedInput;
  });
  EXPECT_FALSE(around.context.error().ok());
}

}  // namespace
}  // namespace nam::execution
