#include "execution/partition/parted_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "execution/partition/partition_source.h"
#include "execution/partition/parts.h"
#include "plan/aggregate_slots.h"
#include "tests/execution/aggregate/aggregation.h"
#include "tests/execution/partition/scratch_cluster.h"
#include "types/sql_error.h"
#include "types/value.h"

namespace nam::execution {
namespace {

constexpr uint32_t kPipeline = 3;

/// The aggregates are those whose states can go by parts.
Aggregation RandomParted(RandomStream& random) {
  Aggregation made = RandomAggregation(random, 1 + random.Below(6));
  std::erase_if(made.aggregates, plan::IsDistinct);
  return made;
}

std::unique_ptr<const AggregatePlan> AggregatePlanOf(const Aggregation& aggregation, uint32_t parts,
                                                     AggregateInput input) {
  return *AggregatePlan::Make({.group_by = aggregation.keys,
                               .aggregates = aggregation.aggregates,
                               .schema = aggregation.schema,
                               .meanings = aggregation.meanings,
                               .input = input,
                               .parts = parts,
                               .part_by_part = input == AggregateInput::kGroups});
}

std::vector<uint32_t> KeysOf(const AggregatePlan& plan) {
  std::vector<uint32_t> keys(plan.keys().size());
  std::iota(keys.begin(), keys.end(), 0);
  return keys;
}

std::vector<partitioner::Piece> PiecesOf(uint32_t parts) {
  std::vector<partitioner::Piece> pieces;
  for (uint32_t part = 0; part < parts; ++part) pieces.push_back({part, 0, 1});
  return pieces;
}

/// A stage that groups by parts, on several servers, and the stage that merges.
class Stages {
 public:
  Stages(StepDriver& driver, ScratchCluster& cluster, const Aggregation& aggregation, uint32_t parts)
      : driver_(driver),
        cluster_(cluster),
        aggregation_(aggregation),
        parts_(parts),
        plan_(AggregatePlanOf(aggregation, parts, AggregateInput::kRows)),
        merge_(AggregatePlanOf(aggregation, parts, AggregateInput::kGroups)) {}

  /// One attempt; its directory is kept. Groups that were few are written as the coordinator does.
  absl::Status Group(const std::vector<Tuple>& input, PartedGroups::Options options, int tasks) {
    options.parts = parts_;
    options.attempt = ++attempt_;
    options.threads = tasks;
    const std::unique_ptr<storage::ScratchSpace> space = cluster_.NewSpace();
    PartedGroups sink(*plan_, options, *space, driver_.budget());
    if (absl::Status status = cluster_.RunInto(aggregation_.schema, input, sink, tasks); !status.ok())
      return status;
    slab_bytes_ += space->slab_bytes();
    parted_ = sink.parted();
    if (parted_) {
      directories_.push_back(sink.output().directory().ToProto(attempt_, kPipeline));
      return absl::OkStatus();
    }
    const std::unique_ptr<TaskContext> context = cluster_.NewContext();
    std::vector<std::span<const std::byte>> pages;
    if (absl::Status status = sink.groups().Store(*context, attempt_, pages); !status.ok()) return status;
    const auto kept = KeptGroups::Make(
        {.group_by = aggregation_.keys, .aggregates = aggregation_.aggregates, .parts = parts_},
        aggregation_.schema);
    if (!kept.ok()) return kept.status();
    std::vector<std::byte> stored;
    for (const std::span<const std::byte> page : pages) stored.insert(stored.end(), page.begin(), page.end());
    const absl::StatusOr<PartDirectory> directory = (*kept)->Write(*context, stored, attempt_, *space);
    if (!directory.ok()) return directory.status();
    directories_.push_back(directory->ToProto(attempt_, kPipeline));
    return absl::OkStatus();
  }

  /// The groups of those parts, merged by this many tasks.
  absl::StatusOr<std::vector<Tuple>> Merge(std::vector<partitioner::Piece> pieces, int tasks) {
    PieceQueue queue(std::move(pieces));
    absl::StatusOr<std::unique_ptr<PartitionSource>> source =
        PartitionSource::Make({.layout = merge_->partial_layout(),
                               .by = {KeysOf(*merge_), parts_, merge_->domain()},
                               .pipeline = kPipeline,
                               .directories = directories_,
                               .merge = merge_.get()},
                              queue, driver_.budget());
    if (!source.ok()) return source.status();
    return cluster_.ReadAll(**source, merge_->final_schema().size(), tasks);
  }

  std::vector<proto::Directory>& directories() { return directories_; }
  bool parted() const { return parted_; }
  const AggregatePlan& plan() const { return *plan_; }
  /// The scratch memory that attempts have taken.
  uint64_t slab_bytes() const { return slab_bytes_; }

 private:
  StepDriver& driver_;
  ScratchCluster& cluster_;
  const Aggregation& aggregation_;
  const uint32_t parts_;
  const std::unique_ptr<const AggregatePlan> plan_, merge_;
  std::vector<proto::Directory> directories_;
  uint64_t attempt_ = 100, slab_bytes_ = 0;
  bool parted_ = false;
};

/// Limits are small, so that everything happens with few rows.
PartedGroups::Options RandomOptions(RandomStream& random) {
  return {.few_groups = static_cast<uint32_t>(random.Below(300)),
          .table_groups = static_cast<uint32_t>(1024 + random.Below(2000)),
          .sample_groups = static_cast<uint32_t>(1 + random.Below(2000)),
          .rows_without_table = 1 + random.Below(3000)};
}

TEST(PartedGroupsTest, AnyKeysAndAggregatesGiveTheSameByAnyParts) {
  int parted = 0, whole = 0;
  for (const uint64_t seed : TestSeeds(30)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    ScratchCluster cluster(driver);
    const Aggregation aggregation = RandomParted(random);
    const uint32_t parts = 1 + static_cast<uint32_t>(random.Below(random.OneIn(2) ? 8 : 256));
    Stages stages(driver, cluster, aggregation, parts);
    std::vector<Tuple> all;
    for (uint64_t attempt = 1 + random.Below(3); attempt > 0; --attempt) {
      const size_t rows = random.Below(5000);
      const std::vector<Tuple> input =
          RandomTuples(aggregation.schema, rows, 1 + random.Below(random.OneIn(2) ? 12 : 2000), random);
      const int tasks = 1 + static_cast<int>(random.Below(3));
      const absl::Status status = stages.Group(input, RandomOptions(random), tasks);
      ASSERT_TRUE(status.ok()) << status;
      ++(stages.parted() ? parted : whole);
      all.insert(all.end(), input.begin(), input.end());
    }
    const auto merged = stages.Merge(PiecesOf(parts), 1 + static_cast<int>(random.Below(3)));
    ASSERT_TRUE(merged.ok()) << merged.status();
    ExpectTuples(*merged, Model(aggregation, all));
  }
  if (TestSeeds(30).size() < 30) return;
  EXPECT_GT(parted, 5);
  EXPECT_GT(whole, 5);
}

/// Two integers and their bounds: keys that pack, as those of the benchmark.
Aggregation PackedSums() {
  Aggregation made;
  made.schema = {{Type::Integer(), false, {0, 6'000'000, true}},
                 {Type::Integer(), true, {1, 7, true}},
                 {Type::Integer(), false, {0, 10'000, true}}};
  made.keys = {SlotExpr(made.schema, 0), SlotExpr(made.schema, 1)};
  made.aggregates = {MakeAggregate(plan::AggregateFunction::kSum, made.schema, 2),
                     MakeAggregate(plan::AggregateFunction::kCountRows, made.schema, 0)};
  return made;
}

TEST(PartedGroupsTest, ManyGroupsNeedNoMoreThanTheBudget) {
  StepDriver driver(7, 6 << 20);
  ScratchCluster cluster(driver);
  const Aggregation aggregation = PackedSums();
  Stages stages(driver, cluster, aggregation, 16);
  std::vector<Tuple> input;
  for (int i = 0; i < 120'000; ++i) {
    input.push_back({Cell::Number(i / 2), Cell::Number(1 + i % 2), Cell::Number(driver.random().Below(9))});
  }
  ASSERT_TRUE(stages.Group(input, {}, 2).ok());
  EXPECT_TRUE(stages.parted());
  EXPECT_EQ(stages.directories()[0].parts_size(), 16);
  EXPECT_LT(driver.budget().most(), 5u << 20);
  const auto merged = stages.Merge(PiecesOf(16), 2);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ExpectTuples(*merged, Model(aggregation, input));
}

TEST(PartedGroupsTest, APartWithMoreGroupsThanTheBudgetAllowsIsMergedSliceBySlice) {
  StepDriver driver(9, 6 << 20);
  ScratchCluster cluster(driver);
  const Aggregation aggregation = PackedSums();
  Stages stages(driver, cluster, aggregation, 1);
  std::vector<Tuple> input;
  for (int i = 0; i < 250'000; ++i)
    input.push_back({Cell::Number(i * 20), Cell::Number(1 + i % 7), Cell::Number(driver.random().Below(9))});
  ASSERT_TRUE(stages.Group(input, {}, 1).ok());
  EXPECT_TRUE(stages.parted());
  const auto merged = stages.Merge(PiecesOf(1), 1);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ExpectTuples(*merged, Model(aggregation, input));
}

/// Keys of a domain: the table of each part is an array, most of it without groups.
TEST(PartedGroupsTest, DenseKeysAreFoundByTheirPlace) {
  for (const uint64_t seed : TestSeeds(20)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    ScratchCluster cluster(driver);
    const int64_t low = static_cast<int64_t>(random.Below(2000)) - 1000;
    const auto keys = static_cast<int64_t>(1 + random.Below(random.OneIn(2) ? 20 : 20'000));
    Aggregation made;
    made.schema = {{Type::Integer(), false, {low, low + keys - 1, true}},
                   {Type::Integer(), random.OneIn(2), {-5, 10'000, true}}};
    made.keys = {SlotExpr(made.schema, 0)};
    made.aggregates = {MakeAggregate(plan::AggregateFunction::kSum, made.schema, 1),
                       MakeAggregate(plan::AggregateFunction::kCountRows, made.schema, 0),
                       MakeAggregate(plan::AggregateFunction::kMin, made.schema, 1)};
    const uint32_t parts = 1u << random.Below(7);
    Stages stages(driver, cluster, made, parts);
    ASSERT_TRUE(stages.plan().domain().known());
    std::vector<Tuple> input;
    for (uint64_t rows = random.Below(20'000); rows > 0; --rows) {
      input.push_back({Cell::Number(low + static_cast<int64_t>(random.Below(keys))),
                       Cell::Number(static_cast<int64_t>(random.Below(10'000)) - 5)});
    }
    ASSERT_TRUE(stages.Group(input, RandomOptions(random), 2).ok());
    const auto merged = stages.Merge(PiecesOf(parts), 2);
    ASSERT_TRUE(merged.ok()) << merged.status();
    ExpectTuples(*merged, Model(made, input));
  }
}

/// States and rows that attempts have written.
uint64_t RowsOf(std::span<const proto::Directory> directories) {
  uint64_t rows = 0;
  for (const proto::Directory& directory : directories) {
    for (const proto::PartPages& part : directory.parts()) rows += part.rows();
  }
  return rows;
}

TEST(PartedGroupsTest, RowsThatMakeNoFewerGroupsAreWrittenOnce) {
  StepDriver driver(8);
  ScratchCluster cluster(driver);
  const Aggregation aggregation = PackedSums();
  Stages stages(driver, cluster, aggregation, 4);
  std::vector<Tuple> input;
  for (int i = 0; i < 50'000; ++i) input.push_back({Cell::Number(i), Cell::Number(1), Cell::Number(i % 5)});
  ASSERT_TRUE(stages.Group(input, {.few_groups = 100, .sample_groups = 2000}, 1).ok());
  EXPECT_EQ(RowsOf(stages.directories()), input.size());
  const auto merged = stages.Merge(PiecesOf(4), 1);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ExpectTuples(*merged, Model(aggregation, input));
}

/// First keys that come four times each, in consecutive rows, then keys that come once: a table makes fewer
/// rows of the former, but not of the latter.
std::vector<Tuple> RepeatedAndNot(const plan::Schema& schema, RandomStream& random) {
  std::vector<Tuple> input = RandomTuples(schema, 16'000, 50, random);
  for (size_t i = 0; i < input.size(); ++i)
    input[i][0] = Cell::Number(static_cast<int64_t>(i < 8000 ? i / 4 : i - 6000));
  return input;
}

constexpr PartedGroups::Options kSmallTables{.few_groups = 10, .table_groups = 1500, .sample_groups = 500};

/// Each argument is written once, however many aggregates use it; of a text that is only counted, only
/// whether it is NULL is written.
TEST(PartedGroupsTest, RowsHaveWhatTheirAggregatesLookAt) {
  using Function = plan::AggregateFunction;
  StepDriver driver(14);
  ScratchCluster cluster(driver);
  Aggregation made;
  made.schema = {{Type::Integer(), false, {0, 6'000'000, true}},
                 {Type::String(), true, {}},
                 {Type::Integer(), true, {-9, 9, true}},
                 {Type::Integer(), false, {100, 900, true}}};
  made.keys = {SlotExpr(made.schema, 0)};
  made.aggregates = {
      MakeAggregate(Function::kCount, made.schema, 1), MakeAggregate(Function::kSum, made.schema, 2),
      MakeAggregate(Function::kSum, made.schema, 3), MakeAggregate(Function::kMin, made.schema, 2),
      MakeAggregate(Function::kCountRows, made.schema, 0)};
  Stages stages(driver, cluster, made, 4);
  EXPECT_EQ(stages.plan().row_layout().fields(), 4U);
  const std::vector<Tuple> input = RepeatedAndNot(made.schema, driver.random());
  ASSERT_TRUE(stages.Group(input, kSmallTables, 1).ok());
  EXPECT_LT(RowsOf(stages.directories()), input.size() - 4000) << "some are states";
  EXPECT_GT(RowsOf(stages.directories()), 8000U) << "and some are rows";
  const auto merged = stages.Merge(PiecesOf(4), 2);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ExpectTuples(*merged, Model(made, input));
}

/// A key and a number, and a key and how many such numbers: their fields are the same.
TEST(PartedGroupsTest, RowsAndStatesWithTheSameFieldsAreToldApart) {
  StepDriver driver(15);
  ScratchCluster cluster(driver);
  Aggregation made;
  made.schema = {{Type::Integer(), false, {0, 6'000'000, true}},
                 {Type::Integer(), false, {0, INT64_MAX, true}}};
  made.keys = {SlotExpr(made.schema, 0)};
  made.aggregates = {MakeAggregate(plan::AggregateFunction::kCount, made.schema, 1)};
  Stages stages(driver, cluster, made, 4);
  ASSERT_EQ(stages.plan().row_layout().stride(), stages.plan().partial_layout().stride());
  const std::vector<Tuple> input = RepeatedAndNot(made.schema, driver.random());
  ASSERT_TRUE(stages.Group(input, kSmallTables, 1).ok());
  const auto merged = stages.Merge(PiecesOf(4), 1);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ExpectTuples(*merged, Model(made, input));
}

/// A number that is only counted may take more room than its count: then a page holds more states than rows.
TEST(PartedGroupsTest, PagesAreFullOfStatesThatAreNarrowerThanRows) {
  StepDriver driver(16);
  ScratchCluster cluster(driver);
  Aggregation made;
  made.schema = {{Type::Integer(), false, {0, 6'000'000, true}}, {Type::Decimal(2), true, {}}};
  made.keys = {SlotExpr(made.schema, 0)};
  made.aggregates = {MakeAggregate(plan::AggregateFunction::kCount, made.schema, 1)};
  Stages stages(driver, cluster, made, 1);
  ASSERT_GT(stages.plan().row_layout().stride(), stages.plan().partial_layout().stride());
  std::vector<Tuple> input;
  for (int i = 0; i < 80'000; ++i)
    input.push_back({Cell::Number(i / 4), i % 3 == 0 ? Cell() : Cell::Number(i)});
  ASSERT_TRUE(stages.Group(input, {.few_groups = 10}, 1).ok());
  const auto merged = stages.Merge(PiecesOf(1), 1);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ExpectTuples(*merged, Model(made, input));
}

/// A number is stored as its distance from the least one. The states that come first are sums of one number
/// each, which leave room in 64 bits; pages have no more rows than a chunk.
TEST(PartedGroupsTest, SumsOfRowsGoBeyond64Bits) {
  StepDriver driver(17);
  ScratchCluster cluster(driver);
  Aggregation made;
  constexpr int64_t kFar = int64_t{1} << 52;
  made.schema = {{Type::Integer(), false, {0, 5999, true}},
                 {Type::Integer(), false, {kFar, kFar + 100, true}},
                 {Type::Integer(), false, {-kFar, -kFar + 100, true}}};
  made.keys = {SlotExpr(made.schema, 0)};
  made.aggregates = {MakeAggregate(plan::AggregateFunction::kSum, made.schema, 1),
                     MakeAggregate(plan::AggregateFunction::kSum, made.schema, 2)};
  Stages stages(driver, cluster, made, 256);
  std::vector<Tuple> input = RandomTuples(made.schema, 9000, 100, driver.random());
  for (size_t i = 0; i < input.size(); ++i)
    input[i][0] = Cell::Number(i < 3000 ? static_cast<int64_t>(i) : 7);
  ASSERT_TRUE(stages.Group(input, kSmallTables, 1).ok());
  EXPECT_EQ(RowsOf(stages.directories()), input.size()) << "most are rows";
  const auto merged = stages.Merge(PiecesOf(256), 1);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ExpectTuples(*merged, Model(made, input));
}

/// Arrays over all numbers of a part, with the states of many aggregates, are more than the budget.
TEST(PartedGroupsTest, APartOfDenseKeysIsMergedSliceBySlice) {
  StepDriver driver(18, 6 << 20);
  ScratchCluster cluster(driver);
  Aggregation made;
  made.schema = {{Type::Integer(), false, {1000, 1000 + (1 << 18) - 1, true}},
                 {Type::Integer(), true, {0, 10'000, true}}};
  made.keys = {SlotExpr(made.schema, 0)};
  for (int i = 0; i < 10; ++i)
    made.aggregates.push_back(MakeAggregate(plan::AggregateFunction::kSum, made.schema, 1));
  Stages stages(driver, cluster, made, 2);
  ASSERT_TRUE(stages.plan().domain().known());
  std::vector<Tuple> input = RandomTuples(made.schema, 60'000, 1000, driver.random());
  for (Tuple& row : input) row[0] = Cell::Number(1000 + static_cast<int64_t>(driver.random().Below(1 << 18)));
  ASSERT_TRUE(stages.Group(input, {}, 1).ok());
  EXPECT_TRUE(stages.parted());
  const auto merged = stages.Merge(PiecesOf(2), 1);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ExpectTuples(*merged, Model(made, input));
}

/// Tasks may have few pages open, for ten times as many parts: pages have a few rows each. Pages with texts
/// would need 64 KiB each.
TEST(PartedGroupsTest, TextsTakeTheirBytesInScratchMemory) {
  for (const uint64_t seed : TestSeeds(1)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed, 6 << 20);
    RandomStream& random = driver.random();
    ScratchCluster cluster(driver);
    Aggregation aggregation;
    aggregation.schema = {
        {Type::String(), false, {}}, {Type::String(), true, {}}, {Type::Integer(), false, {0, 9, true}}};
    aggregation.keys = {SlotExpr(aggregation.schema, 0), SlotExpr(aggregation.schema, 1)};
    aggregation.aggregates = {MakeAggregate(plan::AggregateFunction::kSum, aggregation.schema, 2)};
    constexpr uint32_t kParts = 64;
    Stages stages(driver, cluster, aggregation, kParts);
    std::vector<Tuple> input;
    uint64_t bytes = 0;
    for (int i = 0; i < 75'000; ++i) {
      Cell name = Cell::Text(std::to_string(i) + std::string(20 + random.Below(80), 'n'));
      Cell note = random.OneIn(4) ? Cell() : Cell::Text(std::string(random.Below(9), 'x'));
      bytes += stages.plan().partial_layout().stride() + name.text.size() + note.text.size();
      input.push_back({std::move(name), std::move(note), Cell::Number(i % 10)});
    }
    const absl::Status status = stages.Group(input, {}, 4);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(stages.parted());
    uint64_t rows = 0, pages = 0, page_bytes = 0;
    for (const proto::PartPages& part : stages.directories()[0].parts()) {
      rows += part.rows();
      pages += static_cast<uint64_t>(part.pages_size());
      for (const uint32_t of_page : part.bytes()) page_bytes += of_page;
    }
    EXPECT_EQ(rows, input.size()) << "all are groups of their own";
    EXPECT_GT(pages, 20 * kParts) << "the test has short pages";
    EXPECT_LT(page_bytes, bytes * 3 / 2) << pages << " pages";
    EXPECT_LT(stages.slab_bytes(), bytes * 3);
    const auto merged = stages.Merge(PiecesOf(kParts), 2);
    ASSERT_TRUE(merged.ok()) << merged.status();
    ExpectTuples(*merged, Model(aggregation, input));
  }
}

TEST(PartedGroupsTest, FewGroupsStay) {
  StepDriver driver(9);
  ScratchCluster cluster(driver);
  const Aggregation aggregation = PackedSums();
  Stages stages(driver, cluster, aggregation, 4);
  const std::vector<Tuple> input = RandomTuples(aggregation.schema, 20'000, 40, driver.random());
  ASSERT_TRUE(stages.Group(input, {}, 3).ok());
  EXPECT_FALSE(stages.parted());
  EXPECT_EQ(stages.directories()[0].parts_size(), 4) << "the coordinator writes them by parts";
  EXPECT_EQ(RowsOf(stages.directories()), Model(aggregation, input).size());
  const auto merged = stages.Merge(PiecesOf(4), 2);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ExpectTuples(*merged, Model(aggregation, input));
}

TEST(PartedGroupsTest, KeptGroupsAreCheckedBeforeTheyAreWritten) {
  StepDriver driver(19);
  ScratchCluster cluster(driver);
  const Aggregation aggregation = PackedSums();
  const auto kept = KeptGroups::Make(
      {.group_by = aggregation.keys, .aggregates = aggregation.aggregates, .parts = 4}, aggregation.schema);
  ASSERT_TRUE(kept.ok()) << kept.status();
  const std::unique_ptr<storage::ScratchSpace> space = cluster.NewSpace();
  const std::unique_ptr<TaskContext> context = cluster.NewContext();
  const std::vector<std::byte> page(
      AggregatePlanOf(aggregation, 4, AggregateInput::kRows)->partial_layout().page_bytes());
  EXPECT_TRUE(absl::IsDataLoss((*kept)->Write(*context, page, 1, *space).status()));
  EXPECT_TRUE(absl::IsDataLoss((*kept)->Write(*context, std::span(page).first(100), 1, *space).status()));
}

TEST(PartedGroupsTest, APartThatIsTooLargeSaysSo) {
  StepDriver driver(10, 6 << 20);
  ScratchCluster cluster(driver);
  const Aggregation aggregation = PackedSums();
  Stages stages(driver, cluster, aggregation, 1);
  std::vector<Tuple> input;
  for (int i = 0; i < 150'000; ++i) input.push_back({Cell::Number(i), Cell::Number(1), Cell::Number(i % 5)});
  ASSERT_TRUE(stages.Group(input, {}, 1).ok());
  // Others hold the rest: not even the smallest slice of it fits.
  const uint64_t taken = driver.budget().bytes() - driver.budget().used() - 4096;
  ASSERT_TRUE(driver.budget().Reserve(taken));
  const auto merged = stages.Merge(PiecesOf(1), 1);
  driver.budget().Release(taken);
  const std::optional<SqlError> error = SqlErrorOf(merged.status());
  ASSERT_TRUE(error.has_value()) << merged.status();
  EXPECT_EQ(error->sqlstate, sqlstate::kOutOfMemory);
  EXPECT_NE(error->message.find("one part of the groups"), std::string::npos);
}

TEST(PartedGroupsTest, FullScratchMemorySaysSo) {
  StepDriver driver(11);
  ScratchCluster cluster(driver);
  cluster.bytes_left() = 1 << 20;
  const Aggregation aggregation = PackedSums();
  Stages stages(driver, cluster, aggregation, 8);
  std::vector<Tuple> input;
  for (int i = 0; i < 100'000; ++i) input.push_back({Cell::Number(i), Cell::Number(1), Cell::Number(i % 5)});
  const absl::Status status = stages.Group(input, {}, 2);
  const std::optional<SqlError> error = SqlErrorOf(status);
  ASSERT_TRUE(error.has_value()) << status;
  EXPECT_EQ(error->sqlstate, sqlstate::kOutOfMemory);
  EXPECT_EQ(error->message, "scratch memory is full");
  EXPECT_NE(error->hint.find("--scratch"), std::string::npos);
}

class ForeignDirectoryTest : public ::testing::Test {
 protected:
  ForeignDirectoryTest() : driver_(12), cluster_(driver_), stages_(driver_, cluster_, aggregation_, 4) {
    std::vector<Tuple> input;
    for (int i = 0; i < 30'000; ++i) input.push_back({Cell::Number(i), Cell::Number(1), Cell::Number(i % 5)});
    EXPECT_TRUE(stages_.Group(input, {.few_groups = 10}, 1).ok());
    EXPECT_TRUE(stages_.Merge(PiecesOf(4), 1).ok());
  }
  absl::StatusCode Refused() { return stages_.Merge(PiecesOf(4), 1).status().code(); }
  proto::Directory& directory() { return stages_.directories()[0]; }

  StepDriver driver_;
  ScratchCluster cluster_;
  const Aggregation aggregation_ = PackedSums();
  Stages stages_;
};

TEST_F(ForeignDirectoryTest, OfAnotherAttempt) {
  directory().set_attempt(7);
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss);
}
TEST_F(ForeignDirectoryTest, Twice) {
  stages_.directories().push_back(directory());
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss);
}
TEST_F(ForeignDirectoryTest, WithAPageLess) {
  directory().mutable_parts(1)->mutable_pages()->RemoveLast();
  directory().mutable_parts(1)->mutable_bytes()->RemoveLast();
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss) << "its rows say so";
}
TEST_F(ForeignDirectoryTest, WithARowLess) {
  proto::PartPages& part = *directory().mutable_parts(1);
  part.set_rows(part.rows() - 1);
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss);
}
TEST_F(ForeignDirectoryTest, WithPlacesAndSizesThatNoPageHas) {
  const proto::Directory good = directory();
  directory().mutable_parts(0)->set_bytes(0, 1);
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss);
  directory() = good;
  directory().mutable_parts(0)->set_pages(0, good.parts(0).pages(0) + 8);
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss);
  directory() = good;
  directory().mutable_parts(0)->set_pages(0, storage::RemotePtr<void>(MemoryServerId(1), 1ull << 40).raw());
  EXPECT_EQ(Refused(), absl::StatusCode::kOutOfRange);
  directory() = good;
  directory().mutable_parts(0)->mutable_bytes()->Add(1);
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss);
  directory() = good;
  directory().mutable_parts(0)->set_rows(1ull << 40);
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss);
}
TEST_F(ForeignDirectoryTest, WithPartsThatAreNone) {
  directory().mutable_parts(3)->set_part(4);
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss);
  directory().mutable_parts(3)->set_part(2);
  EXPECT_EQ(Refused(), absl::StatusCode::kDataLoss);
}
TEST_F(ForeignDirectoryTest, PiecesThatAreNoParts) {
  EXPECT_EQ(stages_.Merge({{4, 0, 1}}, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stages_.Merge({{0, 1, 1}}, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stages_.Merge({{0, 0, 2}}, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace nam::execution
