#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "execution/sort/result_sink.h"
#include "execution/sort/sorter.h"
#include "execution/sort/top_rows.h"
#include "tests/execution/sort/sorting.h"
#include "tests/execution/step_driver.h"
#include "types/value.h"

namespace nam::execution {
namespace {

Sorting RandomSorting(RandomStream& random) {
  const plan::Slot slots[] = {
      {Type::Bool(), true, {}},
      {Type::Integer(), true, {-3, 4, true}},
      {Type::Integer(), true, {INT64_MIN + 1, INT64_MAX, true}},
      {Type::Decimal(2), true, {}},
      {Type::Date(), true, {8000, 9000, true}},
      {Type::String(), true, {}},
  };
  Sorting made;
  for (int i = 0; i < 4; ++i) {
    made.schema.push_back(slots[random.Below(std::size(slots))]);
    made.schema.back().nullable = random.OneIn(2);
  }
  for (uint32_t i = 0; i <= random.Below(4); ++i) {
    made.order.push_back({static_cast<uint32_t>(random.Below(4)), random.OneIn(2), random.OneIn(2)});
  }
  made.plan = RowsPlan::Make(made.schema, RowLayout::kSmallPageBytes).value();
  return made;
}

/// The values of the order's keys.
std::vector<Tuple> KeysOf(const std::vector<OrderSlot>& order, const std::vector<Tuple>& rows) {
  std::vector<Tuple> keys;
  for (const Tuple& row : rows) {
    Tuple& key = keys.emplace_back();
    for (const OrderSlot& slot : order) key.push_back(row[slot.slot]);
  }
  return keys;
}

std::vector<Tuple> ReadAll(StepDriver& driver, Source& source, size_t columns) {
  TaskContext context = driver.NewContext();
  const std::unique_ptr<SourceTask> task = source.NewTask(context);
  Chunk chunk(columns, 0);
  std::vector<Tuple> rows;
  while (task->Next(context, chunk) == Step::kHaveMore) {
    for (Tuple& row : TuplesOf(chunk, columns)) rows.push_back(std::move(row));
  }
  EXPECT_TRUE(context.error().ok()) << context.error();
  return rows;
}

TEST(SorterTest, RowsComeInTheirOrderHoweverTheyAreSpread) {
  for (const uint64_t seed : TestSeeds(25)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const Sorting sorting = RandomSorting(random);
    const size_t sizes[] = {0, 1, 1023, 1025, 9000};
    const std::vector<Tuple> input =
        RandomTuples(sorting.schema, sizes[random.Below(std::size(sizes))], 1 + random.Below(500), random);
    auto sorter = Sorter::Make(*sorting.plan, sorting.order, driver.budget()).value();
    ASSERT_TRUE(driver.RunInto(sorting.schema, input, *sorter, 1 + static_cast<int>(random.Below(4))).ok());
    OrderedSource source(sorter->rows());
    const std::vector<Tuple> rows = ReadAll(driver, source, sorting.schema.size());
    EXPECT_EQ(Sorted(rows), Sorted(input));
    std::vector<Tuple> expected = input;
    std::stable_sort(expected.begin(), expected.end(),
                     [&](const Tuple& a, const Tuple& b) { return StandsBefore(sorting.order, a, b); });
    EXPECT_EQ(KeysOf(sorting.order, rows), KeysOf(sorting.order, expected));
    std::vector<std::span<const std::byte>> pages;
    TaskContext context = driver.NewContext();
    ASSERT_TRUE(sorter->rows().Store(context, 7, pages).ok());
    EXPECT_EQ(RowsOf(*sorting.plan, pages, 7), rows);
  }
}

TEST(SorterTest, ManyRowsAreMergedInParts) {
  StepDriver driver(1);
  Sorting sorting;
  sorting.schema = {{Type::Integer(), true, {0, 40'000, true}}, {Type::String(), true, {}}};
  sorting.order = {{0, true, false}, {1, false, true}};
  sorting.plan = RowsPlan::Make(sorting.schema).value();
  const std::vector<Tuple> input = RandomTuples(sorting.schema, 200'000, 20'000, driver.random());
  auto sorter = Sorter::Make(*sorting.plan, sorting.order, driver.budget()).value();
  ASSERT_TRUE(driver.RunInto(sorting.schema, input, *sorter, 3).ok());
  OrderedSource source(sorter->rows());
  const std::vector<Tuple> rows = ReadAll(driver, source, 2);
  std::vector<Tuple> expected = input;
  std::sort(expected.begin(), expected.end(),
            [&](const Tuple& a, const Tuple& b) { return StandsBefore(sorting.order, a, b); });
  EXPECT_EQ(rows, expected);
}

TEST(SorterTest, RowsWithoutAnOrderAreAllThere) {
  StepDriver driver(1);
  const plan::Schema schema = {{Type::Integer(), true, {0, 40'000, true}}, {Type::String(), true, {}}};
  const auto plan = RowsPlan::Make(schema).value();
  const std::vector<Tuple> input = RandomTuples(schema, 12'000, 20'000, driver.random());
  auto sorter = Sorter::Make(*plan, {}, driver.budget()).value();
  ASSERT_TRUE(driver.RunInto(schema, input, *sorter, 3).ok());
  OrderedSource source(sorter->rows());
  EXPECT_EQ(Sorted(ReadAll(driver, source, 2)), Sorted(input));
}

TEST(OrderedSourceTest, OffsetsLimitsAndRangesAreOfTheOrder) {
  for (const uint64_t seed : TestSeeds(20)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const plan::Schema schema = {{Type::Integer(), true, {0, 40'000, true}}, {Type::String(), true, {}}};
    const std::vector<OrderSlot> order = {{0, random.OneIn(2), random.OneIn(2)}, {1, false, true}};
    const auto plan = RowsPlan::Make(schema).value();
    const std::vector<Tuple> input = RandomTuples(schema, random.Below(25'000), 20'000, random);
    auto sorter = Sorter::Make(*plan, order, driver.budget()).value();
    ASSERT_TRUE(driver.RunInto(schema, input, *sorter, 2).ok());
    std::vector<Tuple> expected = input;
    std::sort(expected.begin(), expected.end(),
              [&](const Tuple& a, const Tuple& b) { return StandsBefore(order, a, b); });
    OrderedSource::Options options{.offset = random.OneIn(3) ? 0 : random.Below(26'000)};
    if (random.OneIn(2)) options.limit = random.Below(20'000);
    expected.erase(expected.begin(),
                   expected.begin() + static_cast<ptrdiff_t>(std::min(options.offset, expected.size())));
    expected.resize(std::min(options.limit, expected.size()));
    OrderedSource in_order(sorter->rows(), options);
    EXPECT_EQ(ReadAll(driver, in_order, 2), expected);
    EXPECT_TRUE(ReadAll(driver, in_order, 2).empty()) << "a second task has nothing to read";

    // By turns of two tasks: each has its ranges in order, both together everything.
    options.in_order = false;
    OrderedSource ranges(sorter->rows(), options);
    TaskContext context = driver.NewContext();
    const std::unique_ptr<SourceTask> tasks[] = {ranges.NewTask(context), ranges.NewTask(context)};
    std::vector<Tuple> of_task[2], all;
    bool ended[2] = {};
    Chunk chunk(2, 0);
    while (!ended[0] || !ended[1]) {
      const size_t t = random.Below(2);
      if (ended[t]) continue;
      ended[t] = tasks[t]->Next(context, chunk) == Step::kDone;
      for (Tuple& row : TuplesOf(chunk, 2)) of_task[t].push_back(std::move(row));
    }
    for (const std::vector<Tuple>& rows : of_task) {
      EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                                 [&](const Tuple& a, const Tuple& b) { return StandsBefore(order, a, b); }));
      all.insert(all.end(), rows.begin(), rows.end());
    }
    EXPECT_EQ(Sorted(all), Sorted(expected));
    if (expected.size() > 20'000) {
      EXPECT_FALSE(of_task[0].empty() || of_task[1].empty());
    }
  }
}

TEST(TopRowsTest, TheFirstRowsOfManyAreKept) {
  for (const uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const Sorting sorting = RandomSorting(random);
    const size_t sizes[] = {0, 1, 1025, 5000, 30'000};
    const std::vector<Tuple> input =
        RandomTuples(sorting.schema, sizes[random.Below(std::size(sizes))], 1 + random.Below(20'000), random);
    const uint64_t limits[] = {0, 1, 10, 1000, 3000, 100'000};
    const uint64_t limit = limits[random.Below(std::size(limits))];
    auto top = TopRows::Make(*sorting.plan, sorting.order, limit, driver.budget()).value();
    ASSERT_TRUE(driver.RunInto(sorting.schema, input, *top, 1 + static_cast<int>(random.Below(4))).ok());
    OrderedSource source(top->rows());
    const std::vector<Tuple> rows = ReadAll(driver, source, sorting.schema.size());
    std::vector<Tuple> expected = input;
    std::stable_sort(expected.begin(), expected.end(),
                     [&](const Tuple& a, const Tuple& b) { return StandsBefore(sorting.order, a, b); });
    expected.resize(std::min<size_t>(expected.size(), limit));
    // Any of the rows with equal keys may be kept, but each only once.
    EXPECT_EQ(KeysOf(sorting.order, rows), KeysOf(sorting.order, expected));
    const std::vector<Tuple> all = Sorted(input), kept = Sorted(rows);
    EXPECT_TRUE(std::includes(all.begin(), all.end(), kept.begin(), kept.end()));
    std::vector<std::span<const std::byte>> pages;
    TaskContext context = driver.NewContext();
    ASSERT_TRUE(top->rows().Store(context, 7, pages).ok());
    EXPECT_EQ(RowsOf(*sorting.plan, pages, 7), rows);
  }
}

/// Rows that are not among the first do not stay in memory.
TEST(TopRowsTest, MemoryFollowsTheLimit) {
  StepDriver driver(1, 4 << 20);
  Sorting sorting;
  sorting.schema = {{Type::Integer(), false, {0, 1 << 30, true}}, {Type::String(), false, {}}};
  sorting.plan = RowsPlan::Make(sorting.schema).value();
  std::vector<Tuple> input;
  for (int i = 100'000; i > 0; --i) input.push_back({Cell::Number(i), Cell::Text(std::string(50, 'x'))});
  const OrderSlot order[] = {{0, false, false}};
  auto top = TopRows::Make(*sorting.plan, order, 10, driver.budget()).value();
  ASSERT_TRUE(driver.RunInto(sorting.schema, input, *top).ok());
  EXPECT_LT(driver.budget().most(), 2u << 20);
}

/// A few thousand rows may be more than a query may hold.
TEST(TopRowsTest, LongRowsAreDroppedSooner) {
  StepDriver driver(1, 16 << 20);
  Sorting sorting;
  sorting.schema = {{Type::Integer(), false, {0, 1 << 30, true}}, {Type::String(), false, {}}};
  sorting.plan = RowsPlan::Make(sorting.schema).value();
  const OrderSlot order[] = {{0, false, false}};
  auto top = TopRows::Make(*sorting.plan, order, 10, driver.budget()).value();
  const std::string text(20'000, 'x');
  std::vector<int64_t> numbers(kChunkRows);
  const std::vector<std::string_view> texts(kChunkRows, text);
  Chunk chunk(2, 0);
  chunk.columns()[0] = {.kind = Column::Kind::kValues,
                        .width = WidthOf(Physical::kInt64),
                        .physical = Physical::kInt64,
                        .base = reinterpret_cast<const std::byte*>(numbers.data())};
  chunk.columns()[1] = {.kind = Column::Kind::kValues,
                        .width = WidthOf(Physical::kText),
                        .physical = Physical::kText,
                        .base = reinterpret_cast<const std::byte*>(texts.data())};
  TaskContext context = driver.NewContext();
  std::unique_ptr<SinkTask> task = top->NewTask(context);
  for (int64_t next = 3000; next > 0; next -= 1000) {
    for (int64_t i = 0; i < 1000; ++i) numbers[static_cast<size_t>(i)] = next - i;
    chunk.SelectAll(1000);
    ASSERT_EQ(task->Consume(context, chunk), Step::kNeedInput) << context.error();
  }
  ASSERT_EQ(task->Finish(context), Step::kDone);
  task.reset();
  ASSERT_EQ(top->CombineParts(), 1u);
  ASSERT_TRUE(top->Combine(context, 0).ok());
  OrderedSource source(top->rows());
  const std::vector<Tuple> rows = ReadAll(driver, source, 2);
  ASSERT_EQ(rows.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rows[static_cast<size_t>(i)][0], Cell::Number(i + 1));
}

TEST(ResultSinkTest, AnyRowsUpToTheLimit) {
  for (const uint64_t seed : TestSeeds(20)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const Sorting sorting = RandomSorting(random);
    const std::vector<Tuple> input = RandomTuples(sorting.schema, random.Below(5000), 100, random);
    std::optional<uint64_t> limit;
    if (random.OneIn(2)) limit = random.Below(6000);
    auto sink = ResultSink::Make(*sorting.plan, limit, driver.budget()).value();
    ASSERT_TRUE(driver.RunInto(sorting.schema, input, *sink, 1 + static_cast<int>(random.Below(4))).ok());
    const std::unique_ptr<Source> source = sink->RowsAtRest(false);
    const std::vector<Tuple> rows = Sorted(ReadAll(driver, *source, sorting.schema.size()));
    EXPECT_EQ(rows.size(), std::min<size_t>(input.size(), limit.value_or(input.size())));
    EXPECT_EQ(sink->Satisfied(), limit && *limit <= input.size());
    const std::vector<Tuple> all = Sorted(input);
    EXPECT_TRUE(std::includes(all.begin(), all.end(), rows.begin(), rows.end()));
    std::vector<std::span<const std::byte>> pages;
    TaskContext context = driver.NewContext();
    EXPECT_TRUE(sink->Store(context, 7, pages).ok());
    EXPECT_EQ(Sorted(RowsOf(*sorting.plan, pages, 7)), rows);
  }
}

/// Reads the windows of a sink while its tasks run, as the client of an attempt does.
class WindowReader {
 public:
  WindowReader(const RowsPlan& plan, ResultSink& sink, uint64_t seed)
      : plan_(plan), sink_(sink), random_(seed), thread_([this] { Run(); }) {}
  /// Called when the tasks have ended: the rows of all windows.
  std::vector<Tuple> Rows() {
    over_ = true;
    thread_.join();
    return rows_;
  }
  int windows() const { return windows_; }

 private:
  void Run() {
    while (!over_) {
      if (!sink_.window()->full()) {
        std::this_thread::yield();
        continue;
      }
      std::vector<std::span<const std::byte>> pages;
      const std::vector<uint32_t> taken = sink_.window()->Store(7, pages);
      EXPECT_EQ(taken.size(), pages.size());
      // The tasks fill other windows meanwhile: a window that was taken does not change.
      for (uint64_t pause = random_.Below(4); pause > 0; --pause) std::this_thread::yield();
      for (Tuple& row : RowsOf(plan_, pages, 7)) rows_.push_back(std::move(row));
      sink_.window()->GiveBack(taken);
      ++windows_;
    }
  }

  const RowsPlan& plan_;
  ResultSink& sink_;
  RandomStream random_;
  std::vector<Tuple> rows_;
  int windows_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

TEST(ResultSinkTest, WindowsHaveEveryRowOnce) {
  for (const uint64_t seed : TestSeeds(20)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const Sorting sorting = RandomSorting(random);
    const std::vector<Tuple> input = RandomTuples(sorting.schema, random.Below(30'000), 100, random);
    std::optional<uint64_t> limit;
    if (random.OneIn(3)) limit = random.Below(30'000);
    const int tasks = 1 + static_cast<int>(random.Below(4));
    const uint64_t window_pages = 1 + random.Below(4);
    auto sink =
        ResultSink::Make(*sorting.plan, limit, driver.budget(), window_pages * RowLayout::kSmallPageBytes)
            .value();
    WindowReader reader(*sorting.plan, *sink, seed);
    ASSERT_TRUE(driver.RunInto(sorting.schema, input, *sink, tasks).ok());
    std::vector<Tuple> rows = reader.Rows();
    std::vector<std::span<const std::byte>> pages;
    TaskContext context = driver.NewContext();
    EXPECT_TRUE(sink->Store(context, 7, pages).ok());
    for (Tuple& row : RowsOf(*sorting.plan, pages, 7)) rows.push_back(std::move(row));
    rows = Sorted(std::move(rows));
    EXPECT_EQ(rows.size(), std::min<size_t>(input.size(), limit.value_or(input.size())));
    const std::vector<Tuple> all = Sorted(input);
    EXPECT_TRUE(std::includes(all.begin(), all.end(), rows.begin(), rows.end()));
  }
}

/// The memory does not depend on the number of rows: two windows, and each task's share for a chunk.
TEST(ResultSinkTest, WindowsBoundTheMemory) {
  constexpr uint64_t kWindowBytes = 512 << 10;
  StepDriver driver(1);
  const plan::Schema schema = {{Type::Integer(), false, {0, 1 << 30, true}}, {Type::String(), false, {}}};
  const auto plan = RowsPlan::Make(schema).value();
  std::vector<Tuple> input;
  for (int i = 0; i < 200'000; ++i) input.push_back({Cell::Number(i), Cell::Text(std::string(50, 'x'))});
  auto sink = ResultSink::Make(*plan, std::nullopt, driver.budget(), kWindowBytes).value();
  WindowReader reader(*plan, *sink, 1);
  ASSERT_TRUE(driver.RunInto(schema, input, *sink, 2).ok());
  std::vector<std::span<const std::byte>> pages;
  const size_t read = reader.Rows().size();
  EXPECT_GT(reader.windows(), 10);
  TaskContext context = driver.NewContext();
  EXPECT_TRUE(sink->Store(context, 7, pages).ok());
  EXPECT_EQ(read + RowsOf(*plan, pages, 7).size(), input.size());
  EXPECT_LT(driver.budget().most(), 3 * kWindowBytes);
}

/// A task that waits for its window to be taken takes in no rows, and returns the same at each call.
TEST(ResultSinkTest, AFullWindowBlocks) {
  StepDriver driver(1);
  const plan::Schema schema = {{Type::Integer(), false, {0, 1 << 30, true}}};
  const auto plan = RowsPlan::Make(schema, RowLayout::kSmallPageBytes).value();
  auto sink = ResultSink::Make(*plan, std::nullopt, driver.budget(), RowLayout::kSmallPageBytes).value();
  int told = 0;
  sink->window()->OnFull([&] { ++told; });
  TaskContext context = driver.NewContext();
  const auto task = sink->NewTask(context);
  ChunkMaker maker(schema, driver.random());
  std::vector<Tuple> tuples(kChunkRows, Tuple{Cell::Number(5)});
  Chunk chunk(schema.size(), schema.size());
  maker.Fill(tuples, chunk);
  uint64_t rows = 0;
  Step step;
  while ((step = task->Consume(context, chunk)) == Step::kNeedInput) rows += kChunkRows;
  ASSERT_EQ(step, Step::kBlocked);
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(context.gate()->open());
  EXPECT_EQ(task->Consume(context, chunk), Step::kBlocked);
  std::vector<std::span<const std::byte>> pages;
  const Gate* const gate = context.gate();
  const std::vector<uint32_t> taken = sink->window()->Store(7, pages);
  EXPECT_TRUE(gate->open());
  EXPECT_LE(RowsOf(*plan, pages, 7).size(), rows);
  EXPECT_EQ(task->Consume(context, chunk), Step::kNeedInput);
  sink->window()->GiveBack(taken);
}

TEST(SortTest, BudgetsThatRunOutFailTheQueryAndLeakNothing) {
  int failed = 0;
  for (const uint64_t seed : TestSeeds(30)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    RandomStream sizes(seed);
    StepDriver driver(seed, static_cast<uint64_t>(sizes.Magnitude(1 << 10, 4 << 20)));
    const Sorting sorting = RandomSorting(driver.random());
    const std::vector<Tuple> input = RandomTuples(sorting.schema, 12'000, 5000, driver.random());
    absl::Status status;
    if (sizes.OneIn(2)) {
      auto sorter = Sorter::Make(*sorting.plan, sorting.order, driver.budget()).value();
      status = driver.RunInto(sorting.schema, input, *sorter, 2);
    } else {
      auto top = TopRows::Make(*sorting.plan, sorting.order, 5000, driver.budget()).value();
      status = driver.RunInto(sorting.schema, input, *top, 2);
    }
    failed += !status.ok();
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(driver.budget().used(), 0u);
  }
  if (TestSeeds(30).size() > 1) {
    EXPECT_GT(failed, 0);
  }
}

}  // namespace
}  // namespace nam::execution
