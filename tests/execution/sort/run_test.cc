#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "execution/sort/merge_passes.h"
#include "execution/sort/run_sink.h"
#include "execution/sort/sorter.h"
#include "proto/compute.pb.h"
#include "tests/execution/partition/scratch_cluster.h"
#include "tests/execution/sort/sorting.h"
#include "tests/execution/step_driver.h"
#include "types/sql_error.h"

/// Sorted runs in scratch memory: servers leave them, the session adds its own, and they are merged.
namespace nam::execution {
namespace {

constexpr uint64_t kAttempt = 77;

Sorting RandomRunSorting(RandomStream& random) {
  const plan::Slot slots[] = {
      {Type::Bool(), true, {}},
      {Type::Integer(), true, {-3, 4, true}},
      {Type::Integer(), true, {INT64_MIN + 1, INT64_MAX, true}},
      {Type::Decimal(2), true, {}},
      {Type::Double(), true, {}},
      {Type::Date(), true, {8000, 9000, true}},
      {Type::String(), true, {}},
  };
  Sorting made;
  for (int i = 0; i < 4; ++i) {
    made.schema.push_back(slots[random.Below(std::size(slots))]);
    made.schema.back().nullable = random.OneIn(2);
    made.texts = made.texts || made.schema.back().type.kind == TypeKind::kString;
  }
  for (uint32_t i = 0; i <= random.Below(4); ++i)
    made.order.push_back({static_cast<uint32_t>(random.Below(4)), random.OneIn(2), random.OneIn(2)});
  made.plan = RowsPlan::Make(made.schema, RowLayout::kSmallPageBytes).value();
  return made;
}

/// Two memory servers, and places to write to them.
struct World {
  explicit World(StepDriver& driver, fabric::Kind kind = fabric::Kind::kShm)
      : cluster(driver, kind), space(cluster.NewSpace()) {}

  FindRunPlace Place() {
    return [this](TaskContext& context) -> absl::StatusOr<RunPlace> {
      return RunPlace{space.get(), context.channels().scratch};
    };
  }
  OpenChannel Open() {
    return [this](uint64_t bytes) {
      return storage::Channel::Open(cluster.fabric(), cluster.servers(), {.buffer_bytes = bytes});
    };
  }

  ScratchCluster cluster;
  std::unique_ptr<storage::ScratchSpace> space;
};

absl::StatusOr<std::vector<Tuple>> ReadMerged(World& world, Source& source, size_t columns) {
  const std::unique_ptr<TaskContext> context = world.cluster.NewContext();
  const std::unique_ptr<SourceTask> task = source.NewTask(*context);
  Chunk chunk(columns, 0);
  std::vector<Tuple> rows;
  Step step;
  while ((step = task->Next(*context, chunk)) == Step::kHaveMore) {
    EXPECT_GT(chunk.selection().count, 0u);
    for (Tuple& row : TuplesOf(chunk, columns)) rows.push_back(std::move(row));
  }
  if (step == Step::kFailed) return context->error();
  return rows;
}

/// The runs that attempts leave, and rows that the session makes itself, are merged into one order.
void ExpectAllInOrder(uint64_t seed, fabric::Kind kind) {
  SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
  StepDriver driver(seed);
  RandomStream& random = driver.random();
  World world(driver, kind);
  const Sorting sorting = RandomRunSorting(random);
  const uint64_t budget_bytes = (sorting.texts ? 2048 : 384) << 10;
  const auto runs_plan = MakeRunsPlan(sorting.schema, budget_bytes).value();
  const auto runs = random.OneIn(3) ? plan::Runs::kAlways : plan::Runs::kIfMany;
  const auto options = [&](int threads) {
    return RunOptions{.runs = runs,
                      .place = world.Place(),
                      .plan = runs_plan.get(),
                      .attempt = kAttempt,
                      .threads = threads};
  };
  MemoryBudget budget(budget_bytes);
  auto sorter = Sorter::Make(*sorting.plan, sorting.order, budget, options(1), world.Open()).value();
  std::vector<Tuple> all, here;
  const size_t sizes[] = {0, 1, 1025, 9000, 40'000};
  for (uint64_t attempts = random.Below(4); attempts > 0; --attempts) {
    const std::vector<Tuple> input =
        RandomTuples(sorting.schema, sizes[random.Below(std::size(sizes))], 1 + random.Below(20'000), random);
    all.insert(all.end(), input.begin(), input.end());
    MemoryBudget of_server(budget_bytes);
    const int tasks = 1 + static_cast<int>(random.Below(2));
    auto sink = RunSink::Make(*sorting.plan, sorting.order, options(tasks), of_server).value();
    ASSERT_TRUE(world.cluster.RunInto(sorting.schema, input, *sink, tasks).ok());
    std::vector<std::span<const std::byte>> pages;
    EXPECT_TRUE(sink->Store(*world.cluster.NewContext(), kAttempt, pages).ok());
    const std::vector<Tuple> few = RowsOf(*sorting.plan, pages, kAttempt);
    if (sink->in_runs()) {
      EXPECT_TRUE(few.empty());
      ASSERT_TRUE(sorter->AddRuns(DirectoryOf(sink->runs(), kAttempt, 3)).ok());
    } else {
      EXPECT_EQ(Sorted(few), Sorted(input));
      here.insert(here.end(), few.begin(), few.end());
    }
  }
  const std::vector<Tuple> more =
      RandomTuples(sorting.schema, sizes[random.Below(std::size(sizes))], 1 + random.Below(20'000), random);
  all.insert(all.end(), more.begin(), more.end());
  here.insert(here.end(), more.begin(), more.end());
  ASSERT_TRUE(world.cluster.RunInto(sorting.schema, here, *sorter, 1).ok());
  if (runs == plan::Runs::kAlways) {
    EXPECT_EQ(sorter->in_runs(), !all.empty());
  }
  SortedSource source(*sorter, {});
  const auto rows = ReadMerged(world, source, sorting.schema.size());
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto end = std::is_sorted_until(rows->begin(), rows->end(), [&](const Tuple& a, const Tuple& b) {
    return StandsBefore(sorting.order, a, b);
  });
  EXPECT_TRUE(end == rows->end()) << "row " << end - rows->begin() << " of " << rows->size() << ": "
                                  << (end == rows->end() ? "" : testing::PrintToString(*end)) << " too late";
  EXPECT_EQ(Sorted(*rows), Sorted(all));
  EXPECT_LE(budget.most(), budget_bytes);
}

TEST(RunTest, RowsOfAllRunsComeInOneOrder) {
  for (const uint64_t seed : TestSeeds(30)) ExpectAllInOrder(seed, fabric::Kind::kShm);
}

/// No memory can be read in place: READs are in flight.
TEST(RunTest, RowsOfAllRunsComeInOneOrderOverTcp) {
  for (const uint64_t seed : TestSeeds(8)) ExpectAllInOrder(seed, fabric::Kind::kTcp);
}

/// Few of them fit the budget at once; texts that are keys differ at their ends.
void ExpectLongRowsInOrder(uint64_t seed, fabric::Kind kind) {
  SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
  StepDriver driver(seed);
  World world(driver, kind);
  Sorting sorting;
  sorting.schema = LongTupleSchema();
  sorting.order = {
      {static_cast<uint32_t>(seed % 3), seed % 2 == 0, false}, {1, false, false}, {2, true, false}};
  sorting.plan = RowsPlan::Make(sorting.schema, RowLayout::kMostPageBytes).value();
  const uint64_t budget_bytes = 12 << 20;
  const auto runs_plan = MakeRunsPlan(sorting.schema, budget_bytes).value();
  const RunOptions options{
      .runs = plan::Runs::kIfMany, .place = world.Place(), .plan = runs_plan.get(), .attempt = kAttempt};
  MemoryBudget budget(budget_bytes);
  auto sorter = Sorter::Make(*sorting.plan, sorting.order, budget, options, world.Open()).value();
  const std::vector<Tuple> of_server = LongTuples(36, driver.random());
  {
    MemoryBudget server_budget(budget_bytes);
    auto sink = RunSink::Make(*sorting.plan, sorting.order, options, server_budget).value();
    ASSERT_TRUE(world.cluster.RunInto(sorting.schema, of_server, *sink, 1).ok());
    ASSERT_TRUE(sink->in_runs());
    ASSERT_TRUE(sorter->AddRuns(DirectoryOf(sink->runs(), kAttempt, 3)).ok());
  }
  std::vector<Tuple> all = LongTuples(36, driver.random());
  const absl::Status run = world.cluster.RunInto(sorting.schema, all, *sorter, 1);
  ASSERT_TRUE(run.ok()) << run;
  all.insert(all.end(), of_server.begin(), of_server.end());
  SortedSource source(*sorter, {});
  const auto rows = ReadMerged(world, source, sorting.schema.size());
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(std::is_sorted(rows->begin(), rows->end(), [&](const Tuple& a, const Tuple& b) {
    return StandsBefore(sorting.order, a, b);
  }));
  EXPECT_TRUE(Sorted(*rows) == Sorted(all));
  EXPECT_LE(budget.most(), budget_bytes);
}

TEST(RunTest, RowsThatFitNoPageComeInOneOrder) {
  for (const uint64_t seed : TestSeeds(9))
    ExpectLongRowsInOrder(seed, seed % 3 == 0 ? fabric::Kind::kTcp : fabric::Kind::kShm);
}

Sorting Numbers() {
  Sorting made;
  made.schema = {{Type::Integer(), false, {0, 1 << 30, true}}, {Type::Integer(), false, {0, 9, true}}};
  made.order = {{0, false, false}};
  made.plan = RowsPlan::Make(made.schema, RowLayout::kSmallPageBytes).value();
  return made;
}

TEST(RunTest, ManyRunsTakeSeveralPasses) {
  StepDriver driver(1);
  World world(driver);
  const Sorting sorting = Numbers();
  const uint64_t budget_bytes = 192 << 10;  // two runs at once
  MemoryBudget budget(budget_bytes);
  const auto runs_plan = MakeRunsPlan(sorting.schema, budget_bytes).value();
  ASSERT_EQ(RunMerge::RunsMax(*runs_plan, {}, budget), 2u);
  auto sorter =
      Sorter::Make(
          *sorting.plan, sorting.order, budget,
          {.runs = plan::Runs::kIfMany, .place = world.Place(), .plan = runs_plan.get(), .attempt = kAttempt},
          world.Open())
          .value();
  std::vector<Tuple> input;
  for (int i = 0; i < 30'000; ++i)
    input.push_back(
        {Cell::Number(static_cast<int64_t>(driver.random().Below(1 << 30))), Cell::Number(i % 10)});
  ASSERT_TRUE(world.cluster.RunInto(sorting.schema, input, *sorter, 1).ok());
  proto::PipelineCounters counters;
  sorter->Count(counters);
  EXPECT_GT(counters.scratch_runs_merged(), 4u);
  EXPECT_GT(counters.merge_passes(), 1u);
  SortedSource source(*sorter, {});
  const auto rows = ReadMerged(world, source, 2);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->size(), input.size());
  EXPECT_TRUE(std::is_sorted(rows->begin(), rows->end(),
                             [](const Tuple& a, const Tuple& b) { return a[0].number < b[0].number; }));
  EXPECT_EQ(Sorted(*rows), Sorted(input));
  EXPECT_LE(budget.most(), budget_bytes);
}

TEST(RunTest, FewRowsTakeNoScratchMemory) {
  StepDriver driver(1);
  World world(driver);
  const Sorting sorting = Numbers();
  MemoryBudget budget(8 << 20);
  const auto runs_plan = MakeRunsPlan(sorting.schema, budget.bytes()).value();
  const RunOptions options{.runs = plan::Runs::kIfMany,
                           .place = [](TaskContext&) -> absl::StatusOr<RunPlace> {
                             ADD_FAILURE() << "no run needs a place";
                             return RunPlace{};
                           },
                           .plan = runs_plan.get(),
                           .attempt = kAttempt,
                           .threads = 2};
  const std::vector<Tuple> input = RandomTuples(sorting.schema, 20'000, 5000, driver.random());
  auto sink = RunSink::Make(*sorting.plan, sorting.order, options, budget).value();
  ASSERT_TRUE(world.cluster.RunInto(sorting.schema, input, *sink, 2).ok());
  EXPECT_FALSE(sink->in_runs());
  proto::PipelineCounters counters;
  sink->Count(counters);
  EXPECT_EQ(counters.scratch_pages_written(), 0u);
  auto sorter = Sorter::Make(*sorting.plan, sorting.order, budget, options, world.Open()).value();
  ASSERT_TRUE(world.cluster.RunInto(sorting.schema, input, *sorter, 1).ok());
  EXPECT_FALSE(sorter->in_runs());
  EXPECT_EQ(world.space->slab_bytes(), 0u);
}

/// The session's sorts take in rows by turns, and write them to one place.
TEST(RunTest, SortsThatTakeTurnsDoNotMeet) {
  StepDriver driver(1);
  World world(driver, fabric::Kind::kTcp);
  const Sorting sorting = Numbers();
  MemoryBudget budget(1 << 20);
  const auto runs_plan = MakeRunsPlan(sorting.schema, budget.bytes()).value();
  const RunOptions options{
      .runs = plan::Runs::kIfMany, .place = world.Place(), .plan = runs_plan.get(), .attempt = kAttempt};
  const std::unique_ptr<TaskContext> context = world.cluster.NewContext();
  ChunkMaker maker(sorting.schema, driver.random());
  struct Sort {
    std::unique_ptr<Sorter> sorter;
    std::unique_ptr<SinkTask> task;
    std::vector<Tuple> input;
  } sorts[2];
  for (Sort& sort : sorts) {
    sort.sorter = Sorter::Make(*sorting.plan, sorting.order, budget, options, world.Open()).value();
    sort.task = sort.sorter->NewTask(*context);
    sort.input = RandomTuples(sorting.schema, 50'000, 1 << 20, driver.random());
  }
  for (size_t done = 0; done < 50'000; done += 1000) {
    for (Sort& sort : sorts) {
      const std::unique_ptr<Chunk> chunk = maker.NewChunk();
      maker.Fill({sort.input.data() + done, 1000}, *chunk);
      ASSERT_EQ(sort.task->Consume(*context, *chunk), Step::kNeedInput) << context->error();
    }
  }
  for (Sort& sort : sorts) {
    ASSERT_EQ(sort.task->Finish(*context), Step::kDone) << context->error();
    sort.task.reset();
    ASSERT_EQ(sort.sorter->CombineParts(), 1u);
    ASSERT_TRUE(sort.sorter->Combine(*context, 0).ok());
    EXPECT_TRUE(sort.sorter->in_runs());
    SortedSource source(*sort.sorter, {});
    const auto rows = ReadMerged(world, source, 2);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(Sorted(*rows), Sorted(sort.input));
  }
}

/// The session has no lease.
TEST(RunTest, WithoutScratchMemoryRowsAreSortedInMemory) {
  for (const auto runs : {plan::Runs::kIfMany, plan::Runs::kAlways}) {
    StepDriver driver(1);
    World world(driver);
    const Sorting sorting = Numbers();
    MemoryBudget budget(2 << 20);
    const auto runs_plan = MakeRunsPlan(sorting.schema, budget.bytes()).value();
    int asked = 0;
    const auto nowhere = [&](TaskContext&) -> absl::StatusOr<RunPlace> {
      ++asked;
      return RunPlace{};
    };
    auto sorter = Sorter::Make(*sorting.plan, sorting.order, budget,
                               {.runs = runs, .place = nowhere, .plan = runs_plan.get(), .attempt = kAttempt},
                               world.Open())
                      .value();
    const std::vector<Tuple> input = RandomTuples(sorting.schema, 30'000, 1 << 20, driver.random());
    const absl::Status status = world.cluster.RunInto(sorting.schema, input, *sorter, 1);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(asked, 1) << "there was no room for all";
    EXPECT_FALSE(sorter->in_runs());
    SortedSource source(*sorter, {});
    const auto rows = ReadMerged(world, source, 2);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_TRUE(std::is_sorted(rows->begin(), rows->end(),
                               [](const Tuple& a, const Tuple& b) { return a[0].number < b[0].number; }));
    EXPECT_EQ(Sorted(*rows), Sorted(input));
  }
}

/// Some tasks' shares were full and others' were not: all their rows become runs.
TEST(RunTest, TasksWithFewRowsWriteThemToo) {
  StepDriver driver(1);
  World world(driver);
  const Sorting sorting = Numbers();
  MemoryBudget budget(1 << 20);
  const auto runs_plan = MakeRunsPlan(sorting.schema, budget.bytes()).value();
  auto sink = RunSink::Make(*sorting.plan, sorting.order,
                            {.runs = plan::Runs::kIfMany,
                             .place = world.Place(),
                             .plan = runs_plan.get(),
                             .attempt = kAttempt,
                             .threads = 2},
                            budget)
                  .value();
  const std::vector<Tuple> input = RandomTuples(sorting.schema, 30'000, 50'000, driver.random());
  ChunkMaker maker(sorting.schema, driver.random());
  const std::unique_ptr<TaskContext> contexts[] = {world.cluster.NewContext(), world.cluster.NewContext()};
  std::unique_ptr<SinkTask> tasks[] = {sink->NewTask(*contexts[0]), sink->NewTask(*contexts[1])};
  for (size_t done = 0; done < input.size(); done += 1000) {
    const std::unique_ptr<Chunk> chunk = maker.NewChunk();
    maker.Fill({input.data() + done, 1000}, *chunk);
    ASSERT_EQ(tasks[done == 0]->Consume(*contexts[done == 0], *chunk), Step::kNeedInput);
  }
  for (int t = 0; t < 2; ++t) ASSERT_EQ(tasks[t]->Finish(*contexts[t]), Step::kDone);
  const uint32_t parts = sink->CombineParts();
  EXPECT_EQ(parts, 1u) << "the task with a thousand rows";
  ASSERT_TRUE(sink->Combine(*contexts[0], 0).ok());
  uint64_t rows = 0;
  for (const ScratchRun& run : sink->runs()) rows += run.rows;
  EXPECT_EQ(rows, input.size());
}

TEST(RunTest, AShortRunWithTextsTakesItsBytes) {
  StepDriver driver(1);
  World world(driver);
  const plan::Schema schema = {{Type::Integer(), false, {0, 100, true}}, {Type::String(), true, {}}};
  const OrderSlot order[] = {{0, false, false}};
  const auto plan = MakeRunsPlan(schema, 8 << 20).value();
  const std::unique_ptr<TaskContext> context = world.cluster.NewContext();
  MemoryBudget budget(8 << 20);
  std::vector<Tuple> rows;
  for (int i = 0; i < 9; ++i)
    rows.push_back({Cell::Number(i), i % 3 == 0 ? Cell() : Cell::Text(std::string(10 * i, 'x'))});
  ScratchRun run;
  {
    RunWriter writer(*plan, kAttempt, {world.space.get(), context->channels().scratch}, budget,
                     context->cancel());
    ChunkMaker maker(schema, driver.random());
    const std::unique_ptr<Chunk> chunk = maker.NewChunk();
    maker.Fill(rows, *chunk);
    ASSERT_TRUE(writer.Append(*context, *chunk).ok());
    run = writer.EndRun(*context).value();
    ASSERT_TRUE(writer.Flush().ok());
    EXPECT_LE(writer.bytes(), 512u);
  }
  auto merge = RunMerge::Make(*plan, order, {run}, world.Open(), budget, context->cancel());
  ASSERT_TRUE(merge.ok()) << merge.status();
  Chunk chunk(2, 0);
  const absl::StatusOr<bool> more = (*merge)->Next(*context, chunk);
  ASSERT_TRUE(more.ok() && *more) << more.status();
  ExpectTuples(TuplesOf(chunk, 2), rows);
}

/// A run whose directory or pages no writer leaves.
class DamagedRunTest : public testing::Test {
 protected:
  /// One run of these numbers, as they come.
  ScratchRun Write(const std::vector<int>& numbers) {
    const std::unique_ptr<TaskContext> context = world_.cluster.NewContext();
    RunWriter writer(*plan_, kAttempt, {world_.space.get(), context->channels().scratch}, budget_,
                     context->cancel());
    std::vector<Tuple> rows;
    for (const int n : numbers) rows.push_back({Cell::Number(n), Cell::Number(1)});
    ChunkMaker maker(sorting_.schema, driver_.random());
    for (size_t done = 0; done < rows.size(); done += kChunkRows) {
      const std::unique_ptr<Chunk> chunk = maker.NewChunk();
      maker.Fill({rows.data() + done, std::min<size_t>(kChunkRows, rows.size() - done)}, *chunk);
      EXPECT_TRUE(writer.Append(*context, *chunk).ok());
    }
    ScratchRun run = writer.EndRun(*context).value();
    EXPECT_TRUE(writer.Flush().ok());
    return run;
  }
  absl::Status Read(std::vector<ScratchRun> runs) {
    const std::unique_ptr<TaskContext> context = world_.cluster.NewContext();
    auto merge =
        RunMerge::Make(*plan_, sorting_.order, std::move(runs), world_.Open(), budget_, context->cancel());
    if (!merge.ok()) return merge.status();
    Chunk chunk(2, 0);
    while (true) {
      const absl::StatusOr<bool> more = (*merge)->Next(*context, chunk);
      if (!more.ok() || !*more) return more.status();
    }
  }
  static std::vector<int> Ascending(int count) {
    std::vector<int> numbers;
    for (int i = 0; i < count; ++i) numbers.push_back(3 * i);
    return numbers;
  }

  StepDriver driver_{1};
  World world_{driver_};
  const Sorting sorting_ = Numbers();
  MemoryBudget budget_{8 << 20};
  const std::unique_ptr<const RowsPlan> plan_ = MakeRunsPlan(sorting_.schema, 8 << 20).value();
};

TEST_F(DamagedRunTest, WhatIsNotARunIsRefused) {
  const ScratchRun whole = Write(Ascending(20'000));
  ASSERT_GT(whole.pages.size(), 3u);
  EXPECT_TRUE(Read({whole, Write(Ascending(5))}).ok());
  ScratchRun run = whole;
  ++run.rows;
  EXPECT_TRUE(absl::IsDataLoss(Read({run}))) << "a row that is not there";
  run = whole;
  --run.rows;
  EXPECT_TRUE(absl::IsDataLoss(Read({run}))) << "a row that the directory does not know";
  run = whole;
  run.attempt = kAttempt + 1;
  EXPECT_TRUE(absl::IsDataLoss(Read({run}))) << "pages of another attempt";
  run = whole;
  std::swap(run.pages[0], run.pages[1]);
  EXPECT_TRUE(absl::IsDataLoss(Read({run}))) << "pages that do not ascend";
  std::vector<int> numbers = Ascending(20'000);
  std::swap(numbers[7000], numbers[9000]);
  EXPECT_TRUE(absl::IsDataLoss(Read({whole, Write(numbers)}))) << "rows that do not ascend";
}

TEST_F(DamagedRunTest, DirectoriesAreChecked) {
  const ScratchRun whole = Write(Ascending(5000));
  const proto::Directory good = DirectoryOf(std::span(&whole, 1), kAttempt, 3);
  const auto runs = RunsOf(good, plan_->layout());
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ((*runs)[0].rows, 5000u);
  EXPECT_EQ((*runs)[0].pages, whole.pages);
  proto::Directory bad = good;
  bad.mutable_parts(0)->set_bytes(0, plan_->layout().page_bytes() + 64);
  EXPECT_TRUE(absl::IsDataLoss(RunsOf(bad, plan_->layout()).status()));
  bad = good;
  bad.mutable_parts(0)->set_rows(uint64_t{1} << 40);
  EXPECT_TRUE(absl::IsDataLoss(RunsOf(bad, plan_->layout()).status()));
}

TEST_F(DamagedRunTest, ThereIsABoundOfPasses) {
  const std::unique_ptr<TaskContext> context = world_.cluster.NewContext();
  const FindRunPlace place = world_.Place();
  const OpenChannel open = world_.Open();
  const auto merged = MergeToFewer(*context,
                                   {.plan = *plan_,
                                    .order = sorting_.order,
                                    .open = open,
                                    .place = place,
                                    .attempt = kAttempt,
                                    .runs_max = 2},
                                   std::vector<ScratchRun>(1000), budget_);
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(SqlErrorOf(merged.status())->sqlstate, "53400");
}

TEST_F(DamagedRunTest, MemoryForPagesIsTheBudgets) {
  MemoryBudget small(100 << 10);
  const ScratchRun run = Write(Ascending(100));
  const std::unique_ptr<TaskContext> context = world_.cluster.NewContext();
  const auto merge =
      RunMerge::Make(*plan_, sorting_.order, {run, run, run}, world_.Open(), small, context->cancel());
  EXPECT_TRUE(absl::IsResourceExhausted(merge.status()));
  EXPECT_EQ(small.used(), 0u);
}

/// A query that is cancelled while it writes runs, makes longer ones of them, and reads the last.
TEST_F(DamagedRunTest, EachStepLooksWhetherTheQueryWasCancelled) {
  const std::unique_ptr<TaskContext> context = world_.cluster.NewContext();
  const ScratchRun run = Write(Ascending(20'000));
  const OpenChannel open = world_.Open();
  const FindRunPlace place = world_.Place();
  Chunk chunk(2, 0);
  auto merge = RunMerge::Make(*plan_, sorting_.order, {run, run}, open, budget_, context->cancel()).value();
  ASSERT_TRUE(merge->Next(*context, chunk).ok());
  const std::vector<Tuple> input = RandomTuples(sorting_.schema, 1000, 5000, driver_.random());
  ChunkMaker maker(sorting_.schema, driver_.random());
  const std::unique_ptr<Chunk> rows = maker.NewChunk();
  maker.Fill(input, *rows);
  const RunOptions options{
      .runs = plan::Runs::kAlways, .place = place, .plan = plan_.get(), .attempt = kAttempt};
  auto sink = RunSink::Make(*sorting_.plan, sorting_.order, options, budget_).value();
  auto sorter = Sorter::Make(*sorting_.plan, sorting_.order, budget_, options, open).value();
  std::unique_ptr<SinkTask> tasks[] = {sink->NewTask(*context), sorter->NewTask(*context)};
  for (const auto& task : tasks) ASSERT_EQ(task->Consume(*context, *rows), Step::kNeedInput);

  driver_.cancel() = true;
  EXPECT_TRUE(absl::IsCancelled(merge->Next(*context, chunk).status()));
  const auto merged = MergeToFewer(*context,
                                   {.plan = *plan_,
                                    .order = sorting_.order,
                                    .open = open,
                                    .place = place,
                                    .attempt = kAttempt,
                                    .runs_max = 2},
                                   {run, run, run}, budget_);
  EXPECT_TRUE(absl::IsCancelled(merged.status())) << merged.status();
  EXPECT_EQ(tasks[1]->Finish(*context), Step::kFailed);
  EXPECT_TRUE(absl::IsCancelled(context->error())) << context->error();
  EXPECT_EQ(tasks[0]->Finish(*context), Step::kDone);
  ASSERT_EQ(sink->CombineParts(), 1u);
  EXPECT_TRUE(absl::IsCancelled(sink->Combine(*context, 0)));
  merge.reset();
  tasks[0].reset(), tasks[1].reset();
  sink.reset(), sorter.reset();
  EXPECT_EQ(budget_.used(), 0u);
}

}  // namespace
}  // namespace nam::execution
