#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "plan/aggregate_slots.h"
#include "tests/execution/aggregate/aggregation.h"
#include "types/real.h"
#include "types/sql_error.h"
#include "types/value.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

std::vector<std::vector<Tuple>> Spread(const std::vector<Tuple>& input, uint64_t servers,
                                       RandomStream& random) {
  std::vector<std::vector<Tuple>> shares(servers);
  for (const Tuple& tuple : input) shares[random.Below(servers)].push_back(tuple);
  return shares;
}

TEST(AggregateTest, AnyKeysAndAggregatesGiveTheSameHoweverRowsAreSpread) {
  for (const uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const Aggregation aggregation = RandomAggregation(random, random.Below(7));
    const size_t sizes[] = {0, 1, 1023, 1024, 1025, 3000};
    const std::vector<Tuple> input =
        RandomTuples(aggregation.schema, sizes[random.Below(std::size(sizes))], 1 + random.Below(12), random);
    const std::vector<Tuple> expected = Model(aggregation, input);

    const std::unique_ptr<const AggregatePlan> plan = aggregation.Plan();
    AggregateSink sink(*plan, driver.budget());
    ASSERT_TRUE(driver.RunInto(aggregation.schema, input, sink, 1 + static_cast<int>(random.Below(4))).ok());
    const auto local = ReadFinal(driver, sink);
    ASSERT_TRUE(local.ok()) << local.status();
    ASSERT_EQ(*local, expected);

    const auto merged = Distributed(aggregation, driver, Spread(input, 1 + random.Below(3), random),
                                    1 + static_cast<int>(random.Below(3)));
    ASSERT_TRUE(merged.ok()) << merged.status();
    ASSERT_EQ(*merged, expected);
  }
}

TEST(AggregateTest, VariancesAreExactHoweverLargeTheirSums) {
  Aggregation aggregation;
  aggregation.schema = {{Type::Decimal(2), true, {}}, {Type::Decimal(2), true, {}}};
  using Function = AggregateFunction;
  for (const Function function :
       {Function::kVarPop, Function::kStddevPop, Function::kCovarPop, Function::kCorr, Function::kVarSamp}) {
    aggregation.aggregates.push_back(MakeAggregate(function, aggregation.schema, 0));
    if (plan::ArgumentsOf(function) == 1) {
      continue;
    }
    aggregation.aggregates.back().second = SlotExpr(aggregation.schema, 1);
  }
  // Numbers of 38 digits that differ by little: 2 and 6 above a common one, whose squares have 76 digits.
  const __int128 far = PowerOfTen(38) - 1000;
  std::vector<Tuple> input;
  for (int i = 0; i < 12'000; ++i)
    input.push_back(
        {Cell::Number(far + (i % 2 == 0 ? 200 : 600)), Cell::Number(-far - (i % 2 == 0 ? 100 : 0))});
  StepDriver driver(1);
  const auto numeric = [](std::string_view text) {
    return Cell::Number(PackNumeric(ParseNumericText(text).value()));
  };
  const Tuple wanted = {numeric("4.0000000000000000"), numeric("2.0000000000000000"),
                        Cell::Number(OrderedBits(1.0)), Cell::Number(OrderedBits(1.0)),
                        numeric("4.0003333611134261")};  // 4 · 12000 / 11999
  const std::unique_ptr<const AggregatePlan> plan = aggregation.Plan();
  AggregateSink sink(*plan, driver.budget());
  ASSERT_TRUE(driver.RunInto(aggregation.schema, input, sink, 3).ok());
  EXPECT_EQ(ReadFinal(driver, sink).value(), std::vector<Tuple>{wanted});
  EXPECT_EQ(Distributed(aggregation, driver, Spread(input, 3, driver.random()), 2).value(),
            std::vector<Tuple>{wanted});
}

TEST(AggregateTest, AVarianceBeyondItsDigitsIsAnError) {
  Aggregation aggregation;
  aggregation.schema = {{Type::Decimal(0), true, {}}};
  aggregation.aggregates = {MakeAggregate(AggregateFunction::kVarPop, aggregation.schema, 0)};
  StepDriver driver(1);
  const std::unique_ptr<const AggregatePlan> plan = aggregation.Plan();
  AggregateSink sink(*plan, driver.budget());
  const std::vector<Tuple> input = {{Cell::Number(PowerOfTen(30))}, {Cell::Number(0)}};
  ASSERT_TRUE(driver.RunInto(aggregation.schema, input, sink).ok());
  EXPECT_EQ(SqlErrorOf(ReadFinal(driver, sink).status())->sqlstate, sqlstate::kNumberOutOfRange);
}

/// An aggregation of grouping sets returns such rows for sets without keys.
TEST(AggregateTest, TotalsAreThereWithoutRows) {
  Aggregation aggregation;
  aggregation.schema = {
      Bounded(Type::Integer(), 0, 3, false), {Type::String(), true, {}}, Bounded(Type::Integer(), 0, 9)};
  aggregation.keys = {SlotExpr(aggregation.schema, 0), SlotExpr(aggregation.schema, 1)};
  for (const AggregateFunction function :
       {AggregateFunction::kCountRows, AggregateFunction::kSum, AggregateFunction::kCountDistinct,
        AggregateFunction::kVarPop, AggregateFunction::kMax})
    aggregation.aggregates.push_back(MakeAggregate(function, aggregation.schema, 2));
  aggregation.aggregates.push_back(MakeAggregate(AggregateFunction::kSum, aggregation.schema, 2));
  aggregation.aggregates.back().distinct = true;
  const uint32_t totals[] = {1, 3};
  for (const AggregateInput input : {AggregateInput::kRows, AggregateInput::kGroups}) {
    StepDriver driver(1);
    const std::unique_ptr<const AggregatePlan> plan = aggregation.Plan(input);
    AggregateSink sink(*plan, driver.budget());
    EXPECT_EQ(sink.CombineParts(), 0u);
    TaskContext context = driver.NewContext();
    AggregateSource source(sink, totals);
    const std::unique_ptr<SourceTask> tasks[] = {source.NewTask(context), source.NewTask(context)};
    Chunk chunk(8, 0);
    ASSERT_EQ(tasks[0]->Next(context, chunk), Step::kHaveMore);
    const Cell zero = Cell::Number(0);
    const std::vector<Tuple> wanted = {{Cell::Number(1), Cell(), zero, Cell(), zero, Cell(), Cell(), Cell()},
                                       {Cell::Number(3), Cell(), zero, Cell(), zero, Cell(), Cell(), Cell()}};
    EXPECT_EQ(TuplesOf(chunk, 8), wanted);
    EXPECT_EQ(tasks[0]->Next(context, chunk), Step::kDone);
    EXPECT_EQ(tasks[1]->Next(context, chunk), Step::kDone);
  }
  StepDriver driver(1);
  const std::unique_ptr<const AggregatePlan> plan = aggregation.Plan();
  AggregateSink sink(*plan, driver.budget());
  const std::vector<Tuple> row = {{Cell::Number(0), Cell::Text("x"), Cell::Number(5)}};
  ASSERT_TRUE(driver.RunInto(aggregation.schema, row, sink).ok());
  TaskContext context = driver.NewContext();
  AggregateSource source(sink, totals);
  const std::unique_ptr<SourceTask> task = source.NewTask(context);
  Chunk chunk(8, 0);
  ASSERT_EQ(task->Next(context, chunk), Step::kHaveMore);
  EXPECT_EQ(chunk.size(), 1u) << "rows have come: their own groups are all";
  EXPECT_EQ(task->Next(context, chunk), Step::kDone);
}

/// There are more groups of each form than one thread combines.
TEST(AggregateTest, ManyGroupsAreCombinedInParts) {
  const plan::Slot keys[] = {Bounded(Type::Integer(), 0, 100'000, false),                // direct
                             Bounded(Type::Integer(), -5'000'000'000, 5'000'000'000),    // packed
                             {.type = Type::String(), .nullable = true, .bounds = {}}};  // rows
  const GroupForm forms[] = {GroupForm::kDirect, GroupForm::kPacked, GroupForm::kRows};
  for (size_t k = 0; k < std::size(keys); ++k) {
    StepDriver driver(k + 1);
    Aggregation aggregation;
    aggregation.schema = {keys[k], Bounded(Type::Integer(), -50, 1000), keys[2]};
    aggregation.keys = {SlotExpr(aggregation.schema, 0)};
    for (const AggregateFunction function :
         {AggregateFunction::kSum, AggregateFunction::kCountDistinct, AggregateFunction::kAverage,
          AggregateFunction::kVarSamp, AggregateFunction::kBitXor}) {
      aggregation.aggregates.push_back(MakeAggregate(function, aggregation.schema, 1));
    }
    aggregation.aggregates.push_back(MakeAggregate(AggregateFunction::kSum, aggregation.schema, 1));
    aggregation.aggregates.back().distinct = true;
    aggregation.aggregates.push_back(MakeAggregate(AggregateFunction::kMin, aggregation.schema, 2));
    const std::vector<Tuple> input = RandomTuples(aggregation.schema, 40'000, 9000, driver.random());
    const std::vector<Tuple> expected = Model(aggregation, input);
    ASSERT_GT(expected.size(), 5000u);
    const std::unique_ptr<const AggregatePlan> plan = aggregation.Plan();
    EXPECT_EQ(plan->keys().form(), forms[k]);
    AggregateSink sink(*plan, driver.budget());
    ASSERT_TRUE(driver.RunInto(aggregation.schema, input, sink, 3).ok());
    EXPECT_EQ(ReadFinal(driver, sink).value(), expected);
    EXPECT_EQ(Distributed(aggregation, driver, Spread(input, 2, driver.random()), 2).value(), expected);
  }
}

/// Groups by a text that comes as entries of dictionaries.
class DictionaryTest : public ::testing::Test {
 protected:
  DictionaryTest() {
    aggregation_.schema = {{.type = Type::String(), .nullable = true, .bounds = {}}};
    aggregation_.keys = {SlotExpr(aggregation_.schema, 0)};
    aggregation_.aggregates = {MakeAggregate(AggregateFunction::kCountRows, aggregation_.schema, 0)};
  }
  static CodeMeaning Meaning(uint64_t id, const std::vector<std::string_view>& entries) {
    CodeMeaning meaning{.type = Type::String(),
                        .null_code = true,
                        .base = -1,
                        .codes = entries.size() + 1,
                        .max = std::ssize(entries) - 1,
                        .dictionary_id = id};
    meaning.dictionary = storage::Dictionary::Decode(storage::Dictionary::Encode(entries)).value();
    return meaning;
  }
  void Consume(SinkTask& task, const CodeMeaning& meaning, const std::vector<uint8_t>& codes) {
    Chunk chunk(1, 0);
    chunk.columns()[0] = {.kind = Column::Kind::kCodes,
                          .width = 1,
                          .physical = Physical::kText,
                          .base = reinterpret_cast<const std::byte*>(codes.data()),
                          .meaning = &meaning};
    chunk.SelectAll(static_cast<uint32_t>(codes.size()));
    ASSERT_EQ(task.Consume(context_, chunk), Step::kNeedInput);
  }
  StepDriver driver_{1};
  TaskContext context_ = driver_.NewContext();
  Aggregation aggregation_;
};

TEST_F(DictionaryTest, CodesOfOtherDictionariesMeetTheirTexts) {
  const CodeMeaning one = Meaning(1, {"a", "b", "c"}), two = Meaning(2, {"b", "d"});
  aggregation_.meanings = {&one};
  const std::unique_ptr<const AggregatePlan> plan = aggregation_.Plan();
  EXPECT_EQ(plan->keys().form(), GroupForm::kDirect);
  AggregateSink sink(*plan, driver_.budget());
  const auto both = sink.NewTask(context_), first = sink.NewTask(context_), second = sink.NewTask(context_);
  Consume(*both, one, {0, 1, 2, 3, 3});
  Consume(*both, two, {0, 1, 2});
  Consume(*both, one, {1});
  Consume(*first, one, {1, 2});
  Consume(*second, two, {1, 1});
  ASSERT_EQ(sink.CombineParts(), 1u);
  ASSERT_TRUE(sink.Combine(context_, 0).ok());
  const std::vector<Tuple> expected = {{Cell::Text("a"), Cell::Number(3)},
                                       {Cell::Text("b"), Cell::Number(5)},
                                       {Cell::Text("c"), Cell::Number(2)},
                                       {Cell::Text("d"), Cell::Number(1)},
                                       {Cell(), Cell::Number(2)}};
  EXPECT_EQ(ReadFinal(driver_, sink).value(), expected);
}

TEST(AggregateTest, WithoutRowsThereIsOneGroupOnlyWithoutKeys) {
  StepDriver driver(1);
  Aggregation aggregation;
  aggregation.schema = {Bounded(Type::Integer(), 0, 5), Bounded(Type::Integer(), 0, 5)};
  for (const AggregateFunction function :
       {AggregateFunction::kCountRows, AggregateFunction::kSum, AggregateFunction::kAverage,
        AggregateFunction::kMin, AggregateFunction::kCountDistinct}) {
    aggregation.aggregates.push_back(MakeAggregate(function, aggregation.schema, 1));
  }
  const std::vector<std::vector<Tuple>> servers(2);
  const std::vector<Tuple> one = {{Cell::Number(0), Cell(), Cell(), Cell(), Cell::Number(0)}};
  EXPECT_EQ(Distributed(aggregation, driver, servers, 2).value(), one);
  aggregation.keys = {SlotExpr(aggregation.schema, 0)};
  EXPECT_EQ(Distributed(aggregation, driver, servers, 2).value(), std::vector<Tuple>());
}

TEST(AggregateTest, DistinctValuesTravelWithoutAnythingElse) {
  StepDriver driver(1);
  Aggregation aggregation;
  aggregation.schema = {Bounded(Type::Integer(), 0, 5000), Bounded(Type::Integer(), 0, 5000)};
  for (const uint32_t slot : {0, 1, 0}) {
    aggregation.aggregates.push_back(
        MakeAggregate(AggregateFunction::kCountDistinct, aggregation.schema, slot));
  }
  const std::vector<Tuple> input = RandomTuples(aggregation.schema, 9000, 4000, driver.random());
  EXPECT_EQ(Distributed(aggregation, driver, Spread(input, 3, driver.random()), 2).value(),
            Model(aggregation, input));
}

std::string StateOf(const absl::Status& status) {
  const std::optional<SqlError> error = SqlErrorOf(status);
  return error ? error->sqlstate : std::string(status.ToString());
}

/// PostgreSQL's scales: at least 16 significant digits.
TEST(AverageTest, ItsScaleDependsOnTheValue) {
  const auto average = [](__int128 sum, int64_t count, int scale) {
    const auto word = AverageOf(sum, count, scale);
    return word.ok() ? NumericText(UnpackNumeric(*word)) : StateOf(word.status());
  };
  EXPECT_EQ(average(1, 3'000'000, 0), "0.000000333333333333333333");
  EXPECT_EQ(average(-1, 4, 0), "-0.25000000000000000000");
  EXPECT_EQ(average(5, 3, 0), "1.6666666666666667");
  EXPECT_EQ(average(-7, 1, 1), "-0.70000000000000000000");
  EXPECT_EQ(average(PowerOfTen(38) - 1, 3, 2), "333333333333333333333333333333333333");
  EXPECT_EQ(average(PowerOfTen(38), 1, 0), "22003");
}

/// Intermediate sums may have more than 38 digits, on any server; a result may not.
TEST(AggregateTest, OnlyTheWholeSumHasABound) {
  StepDriver driver(1);
  Aggregation aggregation;
  aggregation.schema = {{.type = Type::Decimal(0), .nullable = true, .bounds = {}}};
  aggregation.aggregates = {MakeAggregate(AggregateFunction::kSum, aggregation.schema, 0)};
  const Cell most = Cell::Number(PowerOfTen(38) - 1), least = Cell::Number(1 - PowerOfTen(38));
  const std::vector<std::vector<Tuple>> servers = {{{most}, {Cell::Number(7)}}, {{least}}};
  EXPECT_EQ(Distributed(aggregation, driver, servers, 1).value(), std::vector<Tuple>({{Cell::Number(7)}}));
  const auto beyond = Distributed(aggregation, driver, std::span(servers).first(1), 1);
  EXPECT_EQ(StateOf(beyond.status()), "22003");
  const std::vector<std::vector<Tuple>> overflow = {{{most}, {most}, {most}}};
  EXPECT_EQ(StateOf(Distributed(aggregation, driver, overflow, 1).status()), "22003");
}

TEST(AggregateTest, BudgetsThatRunOutFailTheQueryAndLeakNothing) {
  int failed = 0, passed = 0;
  for (const uint64_t seed : TestSeeds(60)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    RandomStream sizes(seed);
    StepDriver driver(seed, static_cast<uint64_t>(sizes.Magnitude(1 << 10, 8 << 20)));
    const Aggregation aggregation = RandomAggregation(driver.random(), driver.random().Below(4));
    const std::vector<Tuple> input = RandomTuples(aggregation.schema, 2500, 2000, driver.random());
    const auto result = Distributed(aggregation, driver, Spread(input, 2, driver.random()),
                                    1 + static_cast<int>(sizes.Below(3)));
    if (result.ok()) {
      ++passed;
      EXPECT_EQ(*result, Model(aggregation, input));
    } else {
      ++failed;
      EXPECT_TRUE(absl::IsResourceExhausted(result.status())) << result.status();
    }
    EXPECT_EQ(driver.budget().used(), 0u);
  }
  if (TestSeeds(60).size() > 1) {
    EXPECT_GT(failed, 0);
    EXPECT_GT(passed, 0);
  }
}

class StoredGroupsTest : public ::testing::Test {
 protected:
  StoredGroupsTest() {
    aggregation_.schema = {Bounded(Type::Integer(), 0, 100),
                           Bounded(Type::Integer(), 0, 100),
                           {.type = Type::String(), .nullable = true, .bounds = {}}};
    aggregation_.keys = {SlotExpr(aggregation_.schema, 0)};
    aggregation_.aggregates = {MakeAggregate(AggregateFunction::kCountDistinct, aggregation_.schema, 1),
                               MakeAggregate(AggregateFunction::kMax, aggregation_.schema, 2)};
    const std::unique_ptr<const AggregatePlan> plan = aggregation_.Plan();
    AggregateSink sink(*plan, driver_.budget());
    const std::vector<Tuple> input = RandomTuples(aggregation_.schema, 900, 50, driver_.random());
    EXPECT_TRUE(driver_.RunInto(aggregation_.schema, input, sink).ok());
    stored_ = PagesOf(driver_, sink, 7).value();
  }
  absl::Status Add(std::span<const std::byte> stored, uint64_t attempt) {
    const std::unique_ptr<const AggregatePlan> plan = aggregation_.Plan(AggregateInput::kGroups);
    AggregateSink sink(*plan, driver_.budget());
    StoredGroups groups(sink, driver_.budget());
    TaskContext context = driver_.NewContext();
    return groups.Add(context, stored, attempt);
  }
  StepDriver driver_{3};
  Aggregation aggregation_;
  std::vector<std::byte> stored_;
};

TEST_F(StoredGroupsTest, PagesOfOthersAreRefused) {
  EXPECT_TRUE(Add(stored_, 7).ok());
  EXPECT_TRUE(absl::IsDataLoss(Add(stored_, 8)));
  EXPECT_TRUE(absl::IsDataLoss(Add(std::span(stored_).first(stored_.size() - 1), 7)));
  // Pairs whose groups have not arrived.
  const std::span<const std::byte> pairs = std::span(stored_).subspan(RowLayout::kSmallPageBytes);
  EXPECT_TRUE(absl::IsDataLoss(Add(pairs, 7)));
  RandomStream random(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> damaged = stored_;
    const size_t at = random.Below(damaged.size());
    damaged[at] ^= static_cast<std::byte>(1 + random.Below(255));
    const absl::Status status = Add(damaged, 7);
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
  }
}

TEST_F(StoredGroupsTest, EndsSoonAfterTheQueryIsCancelled) {
  driver_.cancel() = true;
  EXPECT_TRUE(absl::IsCancelled(Add(stored_, 7)));
}

/// A value beyond the bounds that the plan states never becomes an index, whatever has passed it on.
TEST(AggregateTest, ValuesBeyondThePlansBoundsAreNoIndex) {
  StepDriver driver(1);
  Aggregation aggregation;
  aggregation.schema = {Bounded(Type::Integer(), 0, 9, false)};
  aggregation.keys = {SlotExpr(aggregation.schema, 0)};
  const std::unique_ptr<const AggregatePlan> plan = aggregation.Plan();
  AggregateSink sink(*plan, driver.budget());
  TaskContext context = driver.NewContext();
  const auto task = sink.NewTask(context);
  const int64_t values[] = {3, 10};
  Chunk chunk(1, 0);
  chunk.columns()[0] = {.kind = Column::Kind::kValues, .base = reinterpret_cast<const std::byte*>(values)};
  chunk.SelectAll(1);
  EXPECT_EQ(task->Consume(context, chunk), Step::kNeedInput);
  chunk.SelectAll(2);
  EXPECT_EQ(task->Consume(context, chunk), Step::kFailed);
  EXPECT_TRUE(absl::IsDataLoss(context.error()));
}

/// A new best text takes the place of the old one.
TEST(AggregateTest, BestTextsKeepNoMoreThanTheyNeed) {
  MemoryBudget budget(1 << 16);
  KeptTexts texts(budget);
  KeptTexts::Text kept = {};
  for (uint32_t i = 0; i < 20'000; ++i) {
    const std::string text(1 + i % 2000, 'x');
    ASSERT_TRUE(texts.Keep(text, kept).ok());
    ASSERT_EQ(std::string_view(kept.text, kept.bytes), text);
  }
}

}  // namespace
}  // namespace nam::execution
