#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "execution/sort/sorter.h"
#include "execution/window/window_source.h"
#include "tests/execution/partition/scratch_cluster.h"
#include "tests/execution/step_driver.h"
#include "tests/execution/window/window_model.h"
#include "types/interval.h"
#include "types/real.h"
#include "types/sql_error.h"

/// Windows, compared with a model that looks at every row of a partition for each of its rows.
namespace nam::execution {
namespace {

using plan::AggregateFunction;
using plan::FrameBound;
using plan::WindowCall;
using plan::WindowFrame;
using plan::WindowFunction;

// Slots of the rows.
constexpr uint32_t kPartition = 0, kKey = 1, kNumber = 2, kDecimal = 3, kText = 4, kTruth = 5, kDelimiter = 6,
                   kId = 7;

constexpr size_t kCompared = 150;

plan::Schema RowSchema(const plan::Slot& key) {
  return {{Type::String(), true, {}},
          key,
          {Type::Integer(), true, {-6, 40, true}},
          {Type::Decimal(2), true, {}},
          {Type::String(), true, {}},
          {Type::Bool(), true, {}},
          {Type::String(), true, {}},
          {Type::Integer(), false, {0, 1'000'000, true}}};
}

/// Rows in partitions of about `rows / partitions`; the last slot numbers them.
std::vector<Tuple> RowsOf(const plan::Schema& schema, size_t rows, uint64_t partitions, uint64_t keys,
                          RandomStream& random) {
  std::vector<Tuple> out = RandomTuples(schema, rows, 30, random);
  for (size_t i = 0; i < rows; ++i) {
    if (!out[i][kPartition].null)
      out[i][kPartition] = Cell::Text("p" + std::to_string(random.Below(partitions)));
    if (!out[i][kKey].null)
      out[i][kKey] = RandomCell({schema[kKey].type, false, schema[kKey].bounds}, keys, random);
    if (!out[i][kKey].null && schema[kKey].type.real()) {
      constexpr double kFar[] = {std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN(), 1e300};
      const double near = static_cast<double>(out[i][kKey].number) / 4;
      out[i][kKey] = Cell::Number(OrderedBits(random.OneIn(8) ? kFar[random.Below(4)] : near));
    }
    if (!out[i][kDecimal].null)
      out[i][kDecimal] = Cell::Number(static_cast<int64_t>(random.Below(2'000'000)) - 900'000);
    out[i][kId] = Cell::Number(static_cast<int64_t>(i));
  }
  return out;
}

/// A distance between keys of the kind.
__int128 RandomDistance(RandomStream& random, TypeKind key) {
  const Interval intervals[] = {{},         {0, 1, 0},    {1, 0, 0},      {0, 20, 3'600'000'000},
                                {14, 3, 1}, {0, 0, 1500}, {120'000, 0, 0}};
  const double reals[] = {0, 0.5, 1, 7.25, 1e300, std::numeric_limits<double>::infinity()};
  const __int128 numbers[] = {0, 1, 2, 5, 1500, PowerOfTen(37)};
  if (key == TypeKind::kDate || key == TypeKind::kTimestamp)
    return PackInterval(intervals[random.Below(std::size(intervals))]);
  if (key == TypeKind::kDouble) return OrderedBits(reals[random.Below(std::size(reals))]);
  return numbers[random.Below(std::size(numbers))];
}

FrameBound RandomBound(RandomStream& random, bool offsets, TypeKind key) {
  using Kind = FrameBound::Kind;
  const Kind kinds[] = {Kind::kUnboundedPreceding, Kind::kCurrentRow, Kind::kUnboundedFollowing,
                        Kind::kPreceding, Kind::kFollowing};
  FrameBound bound{kinds[random.Below(offsets ? 5 : 3)], 0};
  if (bound.kind == Kind::kPreceding || bound.kind == Kind::kFollowing)
    bound.offset = RandomDistance(random, key);
  return bound;
}

/// `key`: of the order's column, if there is one.
WindowFrame RandomFrame(RandomStream& random, bool ordered, TypeKind key) {
  while (true) {
    WindowFrame frame;
    frame.unit = static_cast<WindowFrame::Unit>(random.Below(3));
    const bool offsets = ordered || frame.unit == WindowFrame::Unit::kRows;
    const TypeKind of = frame.unit == WindowFrame::Unit::kRange ? key : TypeKind::kInteger;
    frame.start = RandomBound(random, offsets, of);
    frame.end = RandomBound(random, offsets, of);
    if (frame.start.kind == FrameBound::Kind::kUnboundedFollowing) continue;
    if (frame.end.kind == FrameBound::Kind::kUnboundedPreceding || frame.end.kind < frame.start.kind)
      continue;
    if (random.OneIn(2)) frame.exclusion = static_cast<WindowFrame::Exclusion>(random.Below(4));
    return frame;
  }
}

struct Windowing {
  plan::Schema schema;
  WindowSource::Options options;
  std::vector<Tuple> input;
};

absl::StatusOr<std::vector<Tuple>> Windowed(StepDriver& driver, const Windowing& windowing, size_t tasks) {
  const auto plan = RowsPlan::Make(windowing.schema, RowLayout::kSmallPageBytes).value();
  std::vector<OrderSlot> order = windowing.options.partition;
  order.insert(order.end(), windowing.options.order.begin(), windowing.options.order.end());
  auto sorter = Sorter::Make(*plan, order, driver.budget()).value();
  if (absl::Status sorted = driver.RunInto(windowing.schema, windowing.input, *sorter, 2); !sorted.ok())
    return sorted;
  auto source = WindowSource::Make(sorter->rows(), windowing.options);
  if (!source.ok()) return source.status();
  const size_t columns = (*source)->schema().size();
  std::vector<std::vector<Tuple>> rows(tasks);
  std::vector<absl::Status> status(tasks);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < tasks; ++t) {
    threads.emplace_back([&, t] {
      TaskContext context = driver.NewContext();
      const std::unique_ptr<SourceTask> task = (*source)->NewTask(context);
      Chunk chunk(columns, 0);
      while (task->Next(context, chunk) == Step::kHaveMore) {
        for (Tuple& row : TuplesOf(chunk, columns)) rows[t].push_back(std::move(row));
      }
      status[t] = context.error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Tuple> all;
  for (size_t t = 0; t < tasks; ++t) {
    if (!status[t].ok()) return status[t];
    all.insert(all.end(), rows[t].begin(), rows[t].end());
  }
  return all;
}

/// Compares the windows' results with the model, which gets the rows in the engine's order: peers may have
/// any order.
void Check(const Windowing& windowing, const absl::StatusOr<std::vector<Tuple>>& actual) {
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_EQ(actual->size(), windowing.input.size());
  std::map<Tuple, std::vector<Tuple>> partitions;
  for (const Tuple& row : *actual) {
    const auto id = static_cast<size_t>(row[kId].number);
    ASSERT_EQ(Tuple(row.begin(), row.begin() + static_cast<ptrdiff_t>(windowing.schema.size())),
              windowing.input[id]);
    Tuple key;
    for (const OrderSlot& slot : windowing.options.partition) key.push_back(row[slot.slot]);
    partitions[key].push_back(row);
  }
  for (const auto& [key, rows] : partitions) {
    // Rows of one partition come from one task, in order.
    ASSERT_TRUE(InOrder(rows, windowing.options.order));
    for (size_t c = 0; c < windowing.options.calls.size(); ++c) {
      const WindowCall& call = windowing.options.calls[c];
      SCOPED_TRACE(testing::Message()
                   << "function " << static_cast<int>(call.function) << " aggregate "
                   << static_cast<int>(call.aggregate) << " unit " << static_cast<int>(call.frame.unit)
                   << " start " << static_cast<int>(call.frame.start.kind) << " end "
                   << static_cast<int>(call.frame.end.kind) << " exclusion "
                   << static_cast<int>(call.frame.exclusion));
      // The model looks at all rows for each row, so only some rows of large partitions are compared, among
      // them the first and last.
      const size_t step = 1 + rows.size() / kCompared;
      for (size_t i = 0; i < rows.size();
           i = i + 1 < rows.size() ? std::min(i + step, rows.size() - 1) : i + 1) {
        ASSERT_EQ(rows[i][windowing.schema.size() + c],
                  ModelOf(call, windowing.schema, rows, windowing.options.order, i))
            << "row " << i << " of " << rows.size();
      }
    }
  }
}

void Check(StepDriver& driver, const Windowing& windowing, size_t tasks) {
  Check(windowing, Windowed(driver, windowing, tasks));
}

WindowCall Aggregate(AggregateFunction function, std::vector<uint32_t> arguments, Type type,
                     const WindowFrame& frame) {
  return {WindowFunction::kAggregate, function, std::move(arguments), frame, type};
}

WindowCall RandomCall(RandomStream& random, bool ordered, TypeKind key) {
  const WindowFrame frame = RandomFrame(random, ordered, key);
  const Type integer = Type::Integer();
  switch (random.Below(25)) {
    case 0:
      return {WindowFunction::kRowNumber, {}, {}, {}, integer};
    case 1:
      return {WindowFunction::kRank, {}, {}, {}, integer};
    case 2:
      return {WindowFunction::kDenseRank, {}, {}, {}, integer};
    case 3:
      return {WindowFunction::kPercentRank, {}, {}, {}, Type::Double()};
    case 4:
      return {WindowFunction::kCumeDist, {}, {}, {}, Type::Double()};
    case 5:
    case 6: {
      WindowCall call{
          random.OneIn(2) ? WindowFunction::kLag : WindowFunction::kLead, {}, {kText}, {}, Type::String()};
      if (random.OneIn(2)) call.arguments.push_back(kNumber);
      if (call.arguments.size() > 1 && random.OneIn(2)) call.arguments.push_back(kDelimiter);
      return call;
    }
    case 7: {
      WindowCall call{WindowFunction::kLead, {}, {kDecimal, kNumber, kDecimal}, {}, Type::Decimal(2)};
      if (random.OneIn(2)) call.arguments = {kTruth, kNumber, kTruth}, call.type = Type::Bool();
      return call;
    }
    case 8:
      return {WindowFunction::kFirstValue, {}, {kText}, frame, Type::String()};
    case 9:
      return {WindowFunction::kLastValue, {}, {kDecimal}, frame, Type::Decimal(2)};
    case 10:
      return {WindowFunction::kLastValue, {}, {kText}, frame, Type::String()};
    case 11:
      return Aggregate(AggregateFunction::kCountRows, {}, integer, frame);
    case 12:
      return Aggregate(AggregateFunction::kCount, {kText}, integer, frame);
    case 13:
    case 14:
      return Aggregate(AggregateFunction::kSum, {kDecimal}, Type::Decimal(2), frame);
    case 15:
      return Aggregate(AggregateFunction::kAverage, {kNumber}, Type::Numeric(), frame);
    case 16:
    case 17:
      return Aggregate(random.OneIn(2) ? AggregateFunction::kMin : AggregateFunction::kMax, {kText},
                       Type::String(), frame);
    case 18:
      return Aggregate(random.OneIn(2) ? AggregateFunction::kMin : AggregateFunction::kMax, {kDecimal},
                       Type::Decimal(2), frame);
    case 19:
      return Aggregate(random.OneIn(2) ? AggregateFunction::kBoolAnd : AggregateFunction::kBoolOr, {kTruth},
                       Type::Bool(), frame);
    case 20: {
      const AggregateFunction functions[] = {AggregateFunction::kBitAnd, AggregateFunction::kBitOr,
                                             AggregateFunction::kBitXor};
      return Aggregate(functions[random.Below(3)], {kNumber}, integer, frame);
    }
    case 21:
    case 22:
      return Aggregate(AggregateFunction::kStringAggregate, {kText, kDelimiter}, Type::String(), frame);
    case 23:
      return Aggregate(random.OneIn(2) ? AggregateFunction::kVarPop : AggregateFunction::kVarSamp, {kNumber},
                       Type::Numeric(), frame);
    default:
      return Aggregate(AggregateFunction::kCovarPop, {kNumber, kDecimal}, Type::Double(), frame);
  }
}

Windowing RandomWindowing(RandomStream& random, size_t rows, uint64_t partitions) {
  const plan::Slot keys[] = {{Type::Integer(), true, {-50, 200, true}},
                             {Type::Decimal(1), true, {}},
                             {Type::Date(), true, {9000, 9060, true}},
                             {Type::Timestamp(), true, {}},
                             {Type::Double(), true, {}}};
  Windowing made;
  made.schema = RowSchema(keys[random.Below(std::size(keys))]);
  made.input = RowsOf(made.schema, rows, partitions, 1 + random.Below(60), random);
  if (partitions > 1 || random.OneIn(2))
    made.options.partition = {{kPartition, random.OneIn(2), random.OneIn(2)}};
  const bool ordered = !random.OneIn(5);
  if (ordered) made.options.order = {{kKey, random.OneIn(2), random.OneIn(2)}};
  for (uint64_t calls = 1 + random.Below(6); calls > 0; --calls)
    made.options.calls.push_back(RandomCall(random, ordered, made.schema[kKey].type.kind));
  return made;
}

TEST(WindowTest, CallsSayWhatTheModelSays) {
  for (const uint64_t seed : TestSeeds(120)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const size_t sizes[] = {1, 2, 100, 700, 1300};
    const Windowing windowing = RandomWindowing(random, sizes[random.Below(5)], 1 + random.Below(40));
    Check(driver, windowing, 1 + random.Below(3));
  }
}

TEST(WindowTest, PartitionsOfOneRowAndOfAllRows) {
  for (const uint64_t partitions : {1, 3, 20'000}) {
    StepDriver driver(partitions);
    RandomStream& random = driver.random();
    Windowing windowing;
    windowing.schema = RowSchema({Type::Integer(), true, {0, 100'000, true}});
    windowing.input = RowsOf(windowing.schema, 14'000, partitions, 5000, random);
    for (Tuple& row : windowing.input) {
      if (row[kPartition].null) row[kPartition] = Cell::Text("p0");
    }
    windowing.options.partition = {{kPartition, false, false}};
    windowing.options.order = {{kKey, true, false}};
    WindowFrame frame;
    frame.unit = WindowFrame::Unit::kRange;
    frame.start = {FrameBound::Kind::kPreceding, 7};
    frame.end = {FrameBound::Kind::kFollowing, 3};
    windowing.options.calls = {
        {WindowFunction::kRowNumber, {}, {}, {}, Type::Integer()},
        Aggregate(AggregateFunction::kSum, {kDecimal}, Type::Decimal(2), frame),
        Aggregate(AggregateFunction::kMax, {kText}, Type::String(), frame),
        Aggregate(AggregateFunction::kStringAggregate, {kText, kDelimiter}, Type::String(), frame),
        {WindowFunction::kLag, {}, {kText, kNumber}, {}, Type::String()}};
    Check(driver, windowing, 3);
  }
}

/// Memory therefore follows partitions, not the rows.
TEST(WindowTest, ManyPartitionsTakeLittleMemory) {
  StepDriver driver(1);
  Windowing windowing;
  windowing.schema = RowSchema({Type::Integer(), true, {0, 100, true}});
  windowing.input = RowsOf(windowing.schema, 40'000, 1000, 100, driver.random());
  windowing.options.partition = {{kPartition, false, false}};
  ASSERT_TRUE(Windowed(driver, windowing, 1).ok());
  const uint64_t sorted = driver.budget().most();
  for (int i = 0; i < 5; ++i)
    windowing.options.calls.push_back(Aggregate(AggregateFunction::kSum, {kDecimal}, Type::Decimal(2), {}));
  ASSERT_TRUE(Windowed(driver, windowing, 1).ok());
  EXPECT_LT(driver.budget().most(), sorted + (2 << 20));
  EXPECT_EQ(driver.budget().used(), 0u);
}

TEST(WindowTest, PlacesBelowOneAreErrors) {
  StepDriver driver(1);
  Windowing windowing;
  windowing.schema = RowSchema({Type::Integer(), true, {0, 100, true}});
  windowing.input = RowsOf(windowing.schema, 10, 1, 100, driver.random());
  for (Tuple& row : windowing.input) row[kNumber] = Cell::Number(0);
  windowing.options.calls = {{WindowFunction::kNtile, {}, {kNumber}, {}, Type::Integer()}};
  EXPECT_EQ(SqlErrorOf(Windowed(driver, windowing, 1).status())->sqlstate, "22014");
  windowing.options.calls = {{WindowFunction::kNthValue, {}, {kText, kNumber}, {}, Type::String()}};
  EXPECT_EQ(SqlErrorOf(Windowed(driver, windowing, 1).status())->sqlstate, "22016");
  for (Tuple& row : windowing.input) row[kNumber] = Cell();
  EXPECT_TRUE(Windowed(driver, windowing, 1).ok()) << "NULL is no error";
}

TEST(WindowTest, BucketsAndNthValuesAreThoseOfTheModel) {
  for (const uint64_t seed : TestSeeds(30)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    Windowing windowing = RandomWindowing(random, 1 + random.Below(2500), 1 + random.Below(30));
    for (Tuple& row : windowing.input) {
      if (!row[kNumber].null) row[kNumber] = Cell::Number(1 + static_cast<int64_t>(random.Below(12)));
    }
    const bool ordered = !windowing.options.order.empty();
    windowing.options.calls = {{WindowFunction::kNtile, {}, {kNumber}, {}, Type::Integer()},
                               {WindowFunction::kNthValue,
                                {},
                                {kText, kNumber},
                                RandomFrame(random, ordered, windowing.schema[kKey].type.kind),
                                Type::String()}};
    Check(driver, windowing, 1 + random.Below(3));
  }
}

TEST(WindowTest, SumsBeyondTheirDigitsAreErrorsAndThoseThatCancelAreNot) {
  StepDriver driver(1);
  Windowing windowing;
  windowing.schema = RowSchema({Type::Integer(), true, {0, 100, true}});
  windowing.input = RowsOf(windowing.schema, 4, 1, 100, driver.random());
  const __int128 most = PowerOfTen(38) - 1;
  for (size_t i = 0; i < 4; ++i) {
    windowing.input[i][kKey] = Cell::Number(static_cast<int64_t>(i));
    windowing.input[i][kDecimal] = Cell::Number(i % 2 == 0 ? most : -most);
  }
  windowing.options.order = {{kKey, false, false}};
  windowing.options.calls = {Aggregate(AggregateFunction::kSum, {kDecimal}, Type::Decimal(2), {})};
  Check(driver, windowing, 1);
  for (Tuple& row : windowing.input) row[kDecimal] = Cell::Number(most);
  EXPECT_EQ(SqlErrorOf(Windowed(driver, windowing, 1).status())->sqlstate, sqlstate::kNumberOutOfRange);
  // Three of them would wrap to a number of 38 digits.
  windowing.input.pop_back();
  windowing.options.calls[0].frame.end.kind = FrameBound::Kind::kUnboundedFollowing;
  const absl::Status wrapped = Windowed(driver, windowing, 1).status();
  ASSERT_FALSE(wrapped.ok());
  EXPECT_EQ(SqlErrorOf(wrapped)->sqlstate, sqlstate::kNumberOutOfRange);
}

TEST(WindowTest, CancelledAndWithoutMemory) {
  StepDriver small(1, 3 << 20);
  Windowing windowing;
  windowing.schema = RowSchema({Type::Integer(), true, {0, 100, true}});
  windowing.input = RowsOf(windowing.schema, 20'000, 1, 100, small.random());
  for (int i = 0; i < 8; ++i)
    windowing.options.calls.push_back(Aggregate(AggregateFunction::kSum, {kDecimal}, Type::Decimal(2), {}));
  EXPECT_TRUE(absl::IsResourceExhausted(Windowed(small, windowing, 1).status()));
  EXPECT_EQ(small.budget().used(), 0u);
}

/// Like Windowed, but the rows are in runs in scratch memory, and there is one task.
absl::StatusOr<std::vector<Tuple>> WindowedByRuns(StepDriver& driver, const Windowing& windowing) {
  ScratchCluster cluster(driver);
  const std::unique_ptr<storage::ScratchSpace> space = cluster.NewSpace();
  const auto plan = RowsPlan::Make(windowing.schema, RowLayout::kSmallPageBytes).value();
  const auto runs_plan = MakeRunsPlan(windowing.schema, driver.budget().bytes()).value();
  std::vector<OrderSlot> order = windowing.options.partition;
  order.insert(order.end(), windowing.options.order.begin(), windowing.options.order.end());
  auto sorter = Sorter::Make(*plan, order, driver.budget(),
                             {.runs = plan::Runs::kAlways,
                              .place = [&](TaskContext& context) -> absl::StatusOr<RunPlace> {
                                return RunPlace{space.get(), context.channels().scratch};
                              },
                              .plan = runs_plan.get(),
                              .attempt = 5},
                             [&](uint64_t bytes) {
                               return storage::Channel::Open(cluster.fabric(), cluster.servers(),
                                                             {.buffer_bytes = bytes});
                             })
                    .value();
  absl::Status sorted = cluster.RunInto(windowing.schema, windowing.input, *sorter, 1);
  if (!sorted.ok()) return sorted;
  auto source = WindowSource::Make(*sorter, windowing.options);
  if (!source.ok()) return source.status();
  const size_t columns = (*source)->schema().size();
  const std::unique_ptr<TaskContext> context = cluster.NewContext();
  const std::unique_ptr<SourceTask> task = (*source)->NewTask(*context);
  Chunk chunk(columns, 0);
  std::vector<Tuple> rows;
  while (task->Next(*context, chunk) == Step::kHaveMore) {
    for (Tuple& row : TuplesOf(chunk, columns)) rows.push_back(std::move(row));
  }
  if (!context->error().ok()) return context->error();
  return rows;
}

TEST(WindowTest, CallsOverRunsSayWhatTheModelSays) {
  for (const uint64_t seed : TestSeeds(15)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const size_t sizes[] = {1, 700, 3000, 7000};
    Windowing windowing = RandomWindowing(random, sizes[random.Below(4)], 1 + random.Below(40));
    if (windowing.options.order.empty()) windowing.options.order = {{kKey, false, false}};
    Check(windowing, WindowedByRuns(driver, windowing));
  }
}

/// The rows exceed the budget, and partitions have all sizes: memory follows the largest.
TEST(WindowTest, PartitionsOfRunsComeIntoMemoryOneByOne) {
  constexpr uint64_t kBudgetBytes = 3 << 20;
  for (const uint64_t partitions : {3, 50, 20'000}) {
    StepDriver driver(partitions, kBudgetBytes);
    Windowing windowing;
    windowing.schema = RowSchema({Type::Integer(), true, {0, 100'000, true}});
    windowing.input = RowsOf(windowing.schema, 60'000, partitions, 5000, driver.random());
    for (Tuple& row : windowing.input) {
      if (row[kPartition].null) row[kPartition] = Cell::Text("p0");
    }
    windowing.options.partition = {{kPartition, false, false}};
    windowing.options.order = {{kKey, true, false}};
    windowing.options.calls = {{WindowFunction::kRowNumber, {}, {}, {}, Type::Integer()},
                               Aggregate(AggregateFunction::kSum, {kDecimal}, Type::Decimal(2), {})};
    const auto rows = WindowedByRuns(driver, windowing);
    if (partitions == 3) {
      ASSERT_FALSE(rows.ok());
      const auto error = SqlErrorOf(rows.status());
      ASSERT_TRUE(error.has_value()) << rows.status();
      EXPECT_EQ(error->sqlstate, "53200");
      EXPECT_NE(error->message.find("partition of a window"), std::string::npos) << error->message;
      EXPECT_NE(error->hint, "");
      continue;
    }
    Check(windowing, rows);
    EXPECT_LE(driver.budget().most(), kBudgetBytes);
  }
}

}  // namespace
}  // namespace nam::execution
