#include "execution/scan/block_scan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>

#include "base/random.h"
#include "execution/join/probe.h"
#include "execution/scan/absorb.h"
#include "plan/work_cost.h"
#include "tests/execution/scan/scan_rows.h"
#include "tests/execution/scan/scan_table.h"

namespace nam::execution {
namespace {

using plan::Expr;
using plan::Op;

/// The blocks of all partitions in runs; sometimes not all of them.
std::vector<partitioner::Piece> RandomPieces(RandomStream& random, const proto::Table& table, bool all) {
  std::vector<partitioner::Piece> pieces;
  for (uint32_t p = 0; p < static_cast<uint32_t>(table.partitions_size()); ++p) {
    const uint32_t blocks = table.partitions(static_cast<int>(p)).blocks();
    for (uint32_t first = 0; first < blocks;) {
      const uint32_t run = 1 + static_cast<uint32_t>(random.Below(blocks - first));
      if (all || random.Below(6) != 0) pieces.push_back({p, first, run});
      first += run;
    }
  }
  return pieces;
}

/// Threads that scan, each with its own channels and context.
class Scanner {
 public:
  Scanner(fabric::Kind kind, ScanTable& table, int threads)
      : fabric_(storage::OpenFabric(kind)), threads_(threads) {
    for (int t = 0; t < 2 * threads; ++t)
      channels_.push_back(*storage::Channel::Open(*fabric_, table.servers(), {}));
  }

  /// Runs all threads to their ends. `each` sees every chunk; it returns false if the thread wants no more.
  absl::StatusOr<std::vector<TextRow>> Run(BlockScan& scan,
                                           const std::function<bool(int thread, const Chunk&)>& each = {}) {
    std::vector<std::vector<TextRow>> rows(channels_.size());
    std::vector<absl::Status> errors(channels_.size());
    {
      std::vector<std::unique_ptr<fabric::Thread>> running;
      for (int t = 0; t < threads_; ++t) {
        running.push_back(fabric_->StartThread("scan", [&, t] {
          const auto i = static_cast<size_t>(t);
          errors[i] = RunThread(scan, t, each, rows[i]);
        }));
      }
    }
    std::vector<TextRow> all;
    for (int t = 0; t < threads_; ++t) {
      const auto i = static_cast<size_t>(t);
      if (!errors[i].ok()) return errors[i];
      all.insert(all.end(), rows[i].begin(), rows[i].end());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::atomic<bool>& cancel() { return cancel_; }
  storage::Channel& channel(int thread) { return *channels_[static_cast<size_t>(thread)]; }
  TaskContext Context(int thread) {
    return {fabric_->clock(), budget_, cancel_, {&channel(thread), &channel(threads_ + thread)}};
  }

 private:
  absl::Status RunThread(BlockScan& scan, int thread, const std::function<bool(int, const Chunk&)>& each,
                         std::vector<TextRow>& rows) {
    TaskContext context = Context(thread);
    const auto chunk = scan.NewChunk();
    const auto task = scan.NewTask(context);
    while (true) {
      const Step step = task->Next(context, *chunk);
      if (step == Step::kDone) return absl::OkStatus();
      if (step == Step::kFailed) return context.error();
      NAM_CHECK(step == Step::kHaveMore);
      Take(*chunk, rows);
      if (each && !each(thread, *chunk)) {
        task->Stop();
        return absl::OkStatus();
      }
    }
  }

  std::unique_ptr<fabric::Fabric> fabric_;
  const int threads_;
  std::vector<std::unique_ptr<storage::Channel>> channels_;
  MemoryBudget budget_{uint64_t{1} << 30};
  std::atomic<bool> cancel_ = false;
};

/// The rows that reading the pieces row by row yields. `partners` adds a row's partners, or drops the row.
std::vector<TextRow> NaiveBlockScan(const ScanTable& table, const std::vector<partitioner::Piece>& pieces,
                                    const BlockScan::Options& options,
                                    const std::function<bool(const ScanRow&, TextRow&)>& partners = {}) {
  std::vector<TextRow> out;
  for (const partitioner::Piece& piece : pieces) {
    const std::vector<ScanRow>& rows = table.rows(piece.partition);
    const size_t block_rows = table.meta()->partitions(static_cast<int>(piece.partition)).block_rows();
    const size_t end = std::min(rows.size(), (piece.first_block + piece.blocks) * block_rows);
    for (size_t r = piece.first_block * block_rows; r < end; ++r) {
      const auto value_of = [&](const Expr& column) {
        return ScanTable::ValueOf(rows[r], options.columns[static_cast<size_t>(column.column.column)]);
      };
      const bool passes =
          std::all_of(options.filters.begin(), options.filters.end(), [&](const Expr& filter) {
            const Value truth = *plan::Evaluate(filter, value_of);
            return !truth.null && truth.number != 0;
          });
      if (!passes) continue;
      TextRow row;
      for (const ScanOutput& output : options.outputs) {
        if (output.probe == ScanOutput::kScanned)
          row.push_back(TextOf(ScanTable::ValueOf(rows[r], options.columns[output.column])));
      }
      if (partners && !partners(rows[r], row)) continue;
      out.push_back(std::move(row));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// A build side by key or by day that is complete: keys that are there, each with a number as payload.
class Dimension final : public BuildSide {
 public:
  Dimension(DirectTable::Options options, const std::function<bool(int64_t)>& has) {
    options.rows = 1000;
    options.unique = true;
    options.payload_widths = {2};
    NAM_CHECK(DirectTable::Fits(options));
    table_ = *DirectTable::Make(options, budget_);
    for (int64_t key = options.key_min; key <= options.key_max; ++key) {
      if (!has(key) || !table_->IsHere(key)) continue;
      NAM_CHECK(table_->InsertUnique(key));
      table_->Inserted(key, key, 1);
      reinterpret_cast<uint16_t*>(table_->payload(0))[table_->PositionOf(key)] =
          static_cast<uint16_t>(SaysOf(key) - meaning_.base);
    }
  }
  static int64_t SaysOf(int64_t key) { return 3 * key + 7; }
  const DirectTable& table() const { return *table_; }
  BlockScan::Probe Probe(KeyLookup lookup) const { return {lookup, this}; }

  absl::StatusOr<std::unique_ptr<StepOperator>> NewProbe(ProbeOptions) const override {
    return absl::UnimplementedError("scans look its keys up");
  }
  std::unique_ptr<SinkTask> NewTask(TaskContext&) override { return nullptr; }
  Column PayloadOf(size_t i, const uint32_t* rows) const override {
    return {.kind = Column::Kind::kCodes,
            .width = 2,
            .base = table_->payload(i),
            .rows = rows,
            .meaning = &meaning_};
  }
  size_t payload_columns() const override { return 1; }

 private:
  MemoryBudget budget_{uint64_t{1} << 30};
  std::unique_ptr<DirectTable> table_;
  const CodeMeaning meaning_{
      .type = Type::Integer(), .width = 2, .base = -1000, .codes = 65536, .min = -1000, .max = 64535};
};

class BlockScanTest : public ::testing::TestWithParam<fabric::Kind> {};

TEST_P(BlockScanTest, GivesTheRowsThatANaiveScanGives) {
  EXPECT_TRUE(rc::check("scan = naive loop", [&] {
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    RandomStream random(seed);
    static constexpr uint32_t kBlockRows[] = {1, 100, 1023, 1024, 1025, 3000};
    const ScanTable::Shape shape{.partitions = 1u << random.Below(3),
                                 .groups = 1 + static_cast<uint32_t>(random.Below(2)),
                                 .block_rows = kBlockRows[random.Below(6)],
                                 .pointer_group = 2 + static_cast<uint32_t>(random.Below(4))};
    const size_t count = random.Below(shape.block_rows == 1 ? 40 : 9000);
    ScanTable table(GetParam(), shape, RandomRows(random, count, shape));
    const auto pieces = RandomPieces(random, *table.meta(), random.Below(3) != 0);

    std::vector<uint32_t> columns;
    const bool probe_key = random.Below(2) == 0, probe_day = random.Below(3) == 0;
    for (uint32_t c = 0; c < ScanTable::kColumns; ++c) {
      if ((c == ScanTable::kKey && probe_key) || (c == ScanTable::kDay && probe_day) || random.Below(3) != 0)
        columns.push_back(c);
    }
    if (columns.empty()) columns.push_back(ScanTable::kWide);
    BlockScan::Options options = table.ScanOf(columns);
    if (random.Below(3) == 0) options.outputs.pop_back();
    for (uint64_t f = random.Below(4); f > 0; --f) options.filters.push_back(RandomFilter(random, columns));
    options.window = 1 + static_cast<uint32_t>(random.Below(10));
    options.in_place = random.Below(2) == 0;
    options.verify = random.Below(2) == 0;
    options.slow_start = random.Below(2) == 0;
    if (random.Below(2) == 0) options.known = table.NewKnownBlocks();

    // The key lookup has the parts that the pieces need, if the build side is split as the table is.
    DirectTable::Options by_key{.key_min = ScanTable::kKeyMin, .key_max = ScanTable::kKeyMax};
    const bool split = random.Below(2) == 0;
    if (split) {
      by_key.parts = shape.partitions;
      for (const partitioner::Piece& piece : pieces) by_key.here.push_back(piece.partition);
      by_key.here.erase(std::unique(by_key.here.begin(), by_key.here.end()), by_key.here.end());
    }
    const auto has_key = [](int64_t key) { return key % 3 != 0; };
    const int64_t first_day = 1000 + static_cast<int64_t>(random.Below(390));
    const auto has_day = [&](int64_t day) { return day >= first_day && day < first_day + 100; };
    const Dimension keys(by_key, has_key);
    const Dimension days({.key_min = ScanTable::kDayMin, .key_max = ScanTable::kDayMax}, has_day);
    const auto slot_of = [&](uint32_t column) {
      return static_cast<uint32_t>(std::find(columns.begin(), columns.end(), column) - columns.begin());
    };
    const auto add = [&](const Dimension& build, uint32_t column, int32_t co_partitioned) {
      const auto number = static_cast<int32_t>(options.probes.size());
      options.probes.push_back(
          build.Probe(LookupOf(build.table(), slot_of(column), column, co_partitioned, *table.meta())));
      if (random.Below(3) == 0) return false;
      options.outputs.push_back({number, 0});
      return true;
    };
    const bool key_wanted = probe_key && add(keys, ScanTable::kKey, split ? 0 : -1);
    const bool day_wanted = probe_day && add(days, ScanTable::kDay, -1);
    const auto partners = [&](const ScanRow& row, TextRow& out) {
      if (probe_key && (!row.key || !has_key(*row.key))) return false;
      if (probe_day && !has_day(row.day)) return false;
      if (key_wanted) out.push_back(std::to_string(Dimension::SaysOf(*row.key)));
      if (day_wanted) out.push_back(std::to_string(Dimension::SaysOf(row.day)));
      return true;
    };

    const std::vector<TextRow> expected = NaiveBlockScan(table, pieces, options, partners);
    Scanner scanner(GetParam(), table, 1 + static_cast<int>(random.Below(3)));
    for (int again = 0; again < 2; ++again) {  // the second time with the facts that the first has learned
      PieceQueue queue(pieces);
      const auto scan = BlockScan::Make(options, queue);
      RC_ASSERT(scan.ok());
      const auto rows = scanner.Run(**scan);
      RC_ASSERT(rows.ok());
      RC_ASSERT(*rows == expected);
      std::vector<uint32_t> begun;
      for (const auto& of_task : (*scan)->totals().begun)
        begun.insert(begun.end(), of_task.begin(), of_task.end());
      std::sort(begun.begin(), begun.end());
      RC_ASSERT(begun.size() == pieces.size());
      for (uint32_t i = 0; i < begun.size(); ++i) RC_ASSERT(begun[i] == i);
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Fabrics, BlockScanTest, ::testing::Values(fabric::Kind::kShm, fabric::Kind::kSim),
                         [](const auto& info) { return info.param == fabric::Kind::kShm ? "shm" : "sim"; });

// ---- Chunks.

TEST(BlockScanChunks, WhatPassesOfABlockIsGathered) {
  const ScanTable::Shape shape{.partitions = 1, .block_rows = 3000};
  ScanTable table(fabric::Kind::kShm, shape, Numbered(6000));
  Scanner scanner(fabric::Kind::kShm, table, 1);
  BlockScan::Options options = table.ScanOf({ScanTable::kKey, ScanTable::kWide});
  std::vector<uint32_t> sizes;
  const auto each = [&](int, const Chunk& chunk) {
    sizes.push_back(chunk.size());
    return true;
  };
  {
    PieceQueue queue(Whole(*table.meta()));
    ASSERT_EQ(scanner.Run(**BlockScan::Make(options, queue), each)->size(), 6000u);
    EXPECT_EQ(sizes, (std::vector<uint32_t>{1024, 1024, 952, 1024, 1024, 952}));
  }
  // 600 of 900 keys pass: the rows beyond a full chunk begin the next one.
  options.filters = {Compare(Op::kGreaterEqual, Read(0, ScanTable::kKey), 300)};
  sizes.clear();
  {
    PieceQueue queue(Whole(*table.meta()));
    ASSERT_EQ(scanner.Run(**BlockScan::Make(options, queue), each)->size(), 3900u);
    EXPECT_EQ(sizes, (std::vector<uint32_t>{1024, 776, 1024, 1024, 52}));
  }
  // 60 of 900 keys pass, in three windows a block.
  options.filters = {Compare(Op::kLess, Read(0, ScanTable::kKey), 60)};
  sizes.clear();
  PieceQueue queue(Whole(*table.meta()));
  ASSERT_EQ(scanner.Run(**BlockScan::Make(options, queue), each)->size(), 420u);
  EXPECT_EQ(sizes, (std::vector<uint32_t>{240, 180}));
}

TEST(BlockScanChunks, AChunkOfWhichNothingIsLeftDoesNotLeaveTheScan) {
  const ScanTable::Shape shape{.partitions = 1, .block_rows = 3000};
  ScanTable table(fabric::Kind::kShm, shape, Numbered(6000));
  Scanner scanner(fabric::Kind::kShm, table, 1);
  BlockScan::Options options = table.ScanOf({ScanTable::kKey, ScanTable::kWide});
  // The filter is no test of codes: it passes rows 2,000 to 2,009 of 6,000.
  options.filters.push_back(Compare(
      Op::kEqual,
      Node(Op::kDivide, Type::Integer(), {Read(1, ScanTable::kWide), Literal(Value::Integer(10))}), 200));
  std::vector<uint32_t> counts;
  PieceQueue queue(Whole(*table.meta()));
  const auto scan = *BlockScan::Make(options, queue);
  EXPECT_EQ(scan->general_filters(), 1u);
  const auto rows = scanner.Run(*scan, [&](int, const Chunk& chunk) {
    counts.push_back(chunk.selection().count);
    return true;
  });
  EXPECT_EQ(rows->size(), 10u);
  EXPECT_EQ(counts, (std::vector<uint32_t>{10}));
}

TEST(BlockScanChunks, BlocksOutsideOfTheSortColumnsCodesAreNotRead) {
  const ScanTable::Shape shape{.partitions = 4, .groups = 2, .block_rows = 50};
  RandomStream random(3);
  ScanTable table(fabric::Kind::kShm, shape, RandomRows(random, 8000, shape));
  Scanner scanner(fabric::Kind::kShm, table, 1);
  BlockScan::Options options = table.ScanOf({ScanTable::kDay, ScanTable::kWide});
  options.filters.push_back(Compare(Op::kEqual, Read(0, ScanTable::kDay), 1200));
  options.known = table.NewKnownBlocks();
  const auto pieces = Whole(*table.meta());
  const std::vector<TextRow> expected = NaiveBlockScan(table, pieces, options);
  ASSERT_FALSE(expected.empty());
  ScanTotals totals[2];
  for (ScanTotals& each : totals) {
    PieceQueue queue(pieces);
    const auto scan = *BlockScan::Make(options, queue);
    EXPECT_EQ(*scanner.Run(*scan), expected);
    each = scan->totals();
  }
  EXPECT_EQ(totals[0].stream.skipped_blocks, 0u) << "nothing is known yet";
  EXPECT_GT(totals[1].stream.skipped_blocks, 140u) << "of 160, in both groups";
  EXPECT_EQ(totals[0].stream.blocks, totals[1].stream.blocks) << "skipped ones count";
  EXPECT_GE(totals[0].skipped_blocks, totals[1].stream.skipped_blocks);
}

// ---- Ends.

TEST(BlockScanEnds, ACancelledScanFails) {
  ScanTable table(fabric::Kind::kShm, {.partitions = 1}, Numbered(6000));
  Scanner scanner(fabric::Kind::kShm, table, 2);
  RandomStream random(1);
  PieceQueue queue(RandomPieces(random, *table.meta(), true));
  const auto scan = *BlockScan::Make(table.ScanOf({ScanTable::kKey}), queue);
  const auto rows = scanner.Run(*scan, [&](int, const Chunk&) {
    scanner.cancel() = true;
    return true;
  });
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kCancelled);
}

TEST(BlockScanEnds, AScanThatIsStoppedReportsWhatItDid) {
  ScanTable table(fabric::Kind::kShm, {.partitions = 1}, Numbered(6000));
  Scanner scanner(fabric::Kind::kShm, table, 1);
  PieceQueue queue({{0, 0, 10}, {0, 10, 50}});
  const auto scan = *BlockScan::Make(table.ScanOf({ScanTable::kKey}), queue);
  const auto rows = scanner.Run(*scan, [&](int, const Chunk&) { return false; });
  EXPECT_EQ(rows->size(), 100u);
  EXPECT_EQ(scan->totals().rows_in, 100u);
  ASSERT_EQ(scan->totals().begun.size(), 1u);
  EXPECT_FALSE(scanner.channel(0).broken());
  PieceQueue again({{0, 0, 60}});
  EXPECT_EQ(scanner.Run(**BlockScan::Make(table.ScanOf({ScanTable::kKey}), again))->size(), 6000u);
}

/// Only a selected row may cause an error, and it fails the scan.
TEST(BlockScanEnds, AFilterThatFailsFailsTheScan) {
  ScanTable table(fabric::Kind::kShm, {.partitions = 1}, Numbered(3000));
  Scanner scanner(fabric::Kind::kShm, table, 1);
  BlockScan::Options options = table.ScanOf({ScanTable::kWide});
  const Expr divisor =
      Node(Op::kSubtract, Type::Integer(), {Read(0, ScanTable::kWide), Literal(Value::Integer(2000))});
  options.filters.push_back(Compare(
      Op::kGreaterEqual, Node(Op::kDivide, Type::Integer(), {Literal(Value::Integer(1)), divisor}), 0));
  PieceQueue queue(Whole(*table.meta()));
  EXPECT_FALSE(scanner.Run(**BlockScan::Make(options, queue)).ok());
  options.filters.insert(options.filters.begin(), Compare(Op::kGreater, Read(0, ScanTable::kWide), 2000));
  PieceQueue other(Whole(*table.meta()));
  EXPECT_EQ(scanner.Run(**BlockScan::Make(options, other))->size(), 999u);
}

TEST(BlockScanEnds, WhatDoesNotExistIsRefused) {
  ScanTable table(fabric::Kind::kShm, {.partitions = 2}, Numbered(500));
  const auto refused = [&](BlockScan::Options options, std::vector<partitioner::Piece> pieces) {
    PieceQueue queue(std::move(pieces));
    return BlockScan::Make(std::move(options), queue).status().code() == absl::StatusCode::kInvalidArgument;
  };
  const BlockScan::Options good = table.ScanOf({ScanTable::kKey});
  EXPECT_FALSE(refused(good, Whole(*table.meta())));
  EXPECT_TRUE(refused(good, {{2, 0, 1}}));
  EXPECT_TRUE(refused(good, {{0, 1, table.meta()->partitions(0).blocks()}}));
  EXPECT_TRUE(refused(good, {{0, 1, UINT32_MAX}}));
  BlockScan::Options options = good;
  options.columns = {ScanTable::kColumns};
  EXPECT_TRUE(refused(options, {}));
  options = good;
  options.outputs.push_back({ScanOutput::kScanned, 1});
  EXPECT_TRUE(refused(options, {}));
  options = good;
  options.outputs.push_back({0, 0});
  EXPECT_TRUE(refused(options, {}));
  options = good;
  options.filters.push_back(Compare(Op::kLess, Read(1, ScanTable::kDay), 3));
  EXPECT_TRUE(refused(options, {}));
  // The build side has one part, but the keys are any.
  const Dimension part({.key_min = 0, .key_max = 99, .parts = 2, .here = {1}}, [](int64_t) { return true; });
  options = good;
  options.probes.push_back(part.Probe({&part.table(), 0}));
  EXPECT_TRUE(refused(options, {}));
  options.probes[0].lookup.parts = 2;
  EXPECT_FALSE(refused(options, {}));
}

// ---- Claims.

/// Two servers with two threads each share a counter.
TEST(BlockScanClaims, EveryPieceIsClaimedOnceAmongServers) {
  const ScanTable::Shape shape{.partitions = 4, .block_rows = 20};
  RandomStream random(5);
  ScanTable table(fabric::Kind::kShm, shape, RandomRows(random, 8000, shape));
  std::vector<partitioner::Piece> pieces;
  for (uint32_t p = 0; p < 4; ++p) {
    for (uint32_t b = 0; b < table.meta()->partitions(static_cast<int>(p)).blocks(); ++b)
      pieces.push_back({p, b, 1});
  }
  const storage::WorkCounter counter = table.NewCounter();
  const BlockScan::Options options = table.ScanOf({ScanTable::kWide});
  Scanner scanners[] = {{fabric::Kind::kShm, table, 2}, {fabric::Kind::kShm, table, 2}};
  std::vector<TextRow> rows;
  std::vector<uint32_t> begun;
  uint32_t claims = 0;
  for (int s = 0; s < 2; ++s) {
    std::atomic<bool> leaving = false;
    PieceQueue queue(pieces, counter, &leaving);
    const auto scan = *BlockScan::Make(options, queue);
    // The first one leaves early: the blocks that it has begun are read to their end.
    std::atomic<int> chunks = 0;
    const auto of_server = scanners[s].Run(*scan, [&](int, const Chunk&) {
      if (s == 0 && ++chunks == 30) leaving = true;
      return true;
    });
    ASSERT_TRUE(of_server.ok()) << of_server.status();
    rows.insert(rows.end(), of_server->begin(), of_server->end());
    for (const auto& of_task : scan->totals().begun)
      begun.insert(begun.end(), of_task.begin(), of_task.end());
    claims += scan->totals().claims_made;
    if (s == 0) {
      EXPECT_LT(begun.size(), pieces.size());
    }
  }
  // The coordinator hands out again the blocks that the first had claimed and not begun.
  std::vector<partitioner::Piece> read;
  std::sort(begun.begin(), begun.end());
  EXPECT_EQ(std::adjacent_find(begun.begin(), begun.end()), begun.end());
  for (const uint32_t piece : begun) read.push_back(pieces[piece]);
  EXPECT_GE(begun.size() + 2 * 128, pieces.size());
  EXPECT_LT(claims, pieces.size()) << "several pieces a claim";
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, NaiveBlockScan(table, read, options));
}

// ---- Virtual time.

/// Counts what is charged; its time moves only that way.
class CountingClock final : public Clock {
 public:
  int64_t NowNs() const override { return charged_ns_; }
  void SleepUntil(Deadline) override {}
  void Charge(int64_t ns) override {
    ++charges_;
    charged_ns_ += ns;
  }
  int64_t charged_ns() const { return charged_ns_; }
  int charges() const { return charges_; }

 private:
  int64_t charged_ns_ = 0;
  int charges_ = 0;
};

TEST(BlockScanTime, EveryBlockIsChargedOnce) {
  namespace work_cost = plan::work_cost;
  ScanTable table(fabric::Kind::kShm, {.partitions = 1, .block_rows = 1000}, Numbered(4000));
  const auto fabric = storage::OpenFabric(fabric::Kind::kShm);
  const auto channel = *storage::Channel::Open(*fabric, table.servers(), {});
  const Dimension keys({.key_min = 0, .key_max = 900}, [](int64_t key) { return key < 90; });
  BlockScan::Options options = table.ScanOf({ScanTable::kKey, ScanTable::kWide});
  options.probes.push_back(keys.Probe({&keys.table(), 0}));
  options.outputs.push_back({0, 0});
  options.filters.push_back(Compare(
      Op::kNotEqual,
      Node(Op::kModulo, Type::Integer(), {Read(1, ScanTable::kWide), Literal(Value::Integer(2))}), 1));
  PieceQueue queue(Whole(*table.meta()));
  const auto scan = *BlockScan::Make(options, queue);
  CountingClock clock;
  MemoryBudget budget(0);
  std::atomic<bool> cancel = false;
  TaskContext context(clock, budget, cancel, {channel.get(), nullptr});
  const auto chunk = scan->NewChunk();
  const auto task = scan->NewTask(context);
  uint64_t rows = 0;
  while (task->Next(context, *chunk) == Step::kHaveMore) rows += chunk->selection().count;
  ASSERT_TRUE(context.error().ok());
  // Keys count to 900 and start again: 90 of each round pass, half of which have an even number.
  const int64_t passed = 4 * 90 + 90;
  EXPECT_EQ(rows, static_cast<uint64_t>(passed) / 2);
  const int64_t expected_ps = 4 * work_cost::kBlockPs + 4000 * 12 * work_cost::kChecksumBytePs +
                              // Two tests of keys, not NULL (which zones decide) and existing, and the
                              // general filter.
                              4000 * work_cost::kFirstFilterRowPs + passed * work_cost::kFilterRowPs +
                              passed / 2 * work_cost::kPartnerRowPs;
  EXPECT_NEAR(static_cast<double>(clock.charged_ns()), static_cast<double>(expected_ps) / 1000, 1);
  EXPECT_EQ(clock.charges(), 4) << "one a block";
}

}  // namespace
}  // namespace nam::execution
