// Joins by parts compared with a naive model, run as compute servers run them: their plans, attempts and
// directories.
#include "execution/partition/partition_join.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "execution/attempt.h"
#include "execution/partition/partition_sink.h"
#include "plan/check.h"
#include "plan/expression_tree.h"
#include "plan/flow.h"
#include "plan/slot_of.h"
#include "tests/execution/partition/scratch_cluster.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::JoinKind;

constexpr JoinKind kKinds[] = {JoinKind::kInner, JoinKind::kLeft,         JoinKind::kRight, JoinKind::kFull,
                               JoinKind::kSemi,  JoinKind::kAnti,         JoinKind::kMark,  JoinKind::kSingle,
                               JoinKind::kMark,  JoinKind::kNullAwareAnti};

/// A key on both sides, of different bounds, widths or types that compare.
struct Key {
  plan::Slot probe, build;
};

plan::Slot Number(__int128 low, __int128 high) {
  return {.type = Type::Integer(), .nullable = true, .bounds = {low, high, true}};
}

Key RandomKey(RandomStream& random) {
  switch (random.Below(4)) {
    case 0:
      return {Number(-1000, 7'000'000), Number(-3, 60'000)};
    case 1:
      return {{.type = Type::Decimal(0), .nullable = true}, Number(-3, 60'000)};
    case 2:
      return {{.type = Type::String(), .nullable = true}, {.type = Type::String(), .nullable = true}};
    default:
      return {{.type = plan::CharType(20), .nullable = true}, {.type = plan::CharType(20), .nullable = true}};
  }
}

/// Keys, then a number x or y, then a text.
struct Join {
  JoinKind kind = JoinKind::kInner;
  bool residual = false;  // x < y
  bool of_in = false;     // the mark is that of IN, not of EXISTS
  size_t keys = 1;
  plan::KeyDomain domain;  // of the only key
  plan::Schema probe_schema, build_schema;
  std::vector<Tuple> probe, build;

  /// IN or NOT IN by the key.
  bool asks_for_nulls() const {
    return kind == JoinKind::kNullAwareAnti || (kind == JoinKind::kMark && of_in);
  }
  uint32_t x() const { return static_cast<uint32_t>(keys); }
  Tuple RandomTuple(const plan::Schema& schema, uint64_t distinct, RandomStream& random) const {
    Tuple tuple;
    for (size_t k = 0; k < keys; ++k) {
      const auto number = static_cast<int64_t>(random.Below(distinct)) - 3;
      const bool text = PhysicalOf(schema[k].type) == Physical::kText;
      tuple.push_back(schema[k].nullable && random.OneIn(12) ? Cell()
                      : text                                 ? Cell::Text("key " + std::to_string(number))
                                                             : Cell::Number(number));
    }
    tuple.push_back(RandomCell(schema[x()], 31, random));
    tuple.push_back(RandomCell(schema[x() + 1], 50, random));
    return tuple;
  }
  Tuple Output(const Tuple* p, const Tuple* b) const {
    Tuple out = p == nullptr ? Tuple(keys + 2) : *p;
    for (uint32_t column : {x(), x() + 1}) out.push_back(b == nullptr ? Cell() : (*b)[column]);
    return out;
  }
  /// nullopt: an error.
  std::optional<std::vector<Tuple>> Expected() const;
};

std::optional<std::vector<Tuple>> Join::Expected() const {
  const auto key_of = [&](const Tuple& tuple) { return Tuple(tuple.begin(), tuple.begin() + x()); };
  std::map<Tuple, std::vector<size_t>> by_key;
  for (size_t i = 0; i < build.size(); ++i) by_key[key_of(build[i])].push_back(i);
  const bool null_built =
      std::any_of(build.begin(), build.end(), [](const Tuple& tuple) { return tuple[0].null; });
  std::vector<Tuple> out;
  std::vector<bool> matched(build.size());
  for (const Tuple& p : probe) {
    size_t matches = 0;
    const Tuple key = key_of(p);
    const bool null = std::any_of(key.begin(), key.end(), [](const Cell& cell) { return cell.null; });
    for (const size_t i : null ? std::vector<size_t>() : by_key[key]) {
      const Tuple& b = build[i];
      if (residual && (p[x()].null || b[x()].null || p[x()].number >= b[x()].number)) continue;
      ++matches;
      matched[i] = true;
      if (kind <= JoinKind::kFull || kind == JoinKind::kSingle) out.push_back(Output(&p, &b));
    }
    if (kind == JoinKind::kSingle && matches > 1) return std::nullopt;
    const bool outer = kind == JoinKind::kLeft || kind == JoinKind::kFull || kind == JoinKind::kSingle;
    if (outer && matches == 0) out.push_back(Output(&p, nullptr));
    if ((kind == JoinKind::kSemi && matches > 0) || (kind == JoinKind::kAnti && matches == 0))
      out.push_back(p);
    // IN is never unknown where there is no row at all.
    const bool unknown = asks_for_nulls() && matches == 0 && !build.empty() && (null || null_built);
    if (kind == JoinKind::kMark) {
      out.push_back(p);
      out.back().push_back(unknown ? Cell() : Cell::Number(matches > 0));
    }
    if (kind == JoinKind::kNullAwareAnti && matches == 0 && !unknown) out.push_back(p);
  }
  for (size_t i = 0; i < build.size(); ++i) {
    if (!matched[i] && (kind == JoinKind::kRight || kind == JoinKind::kFull))
      out.push_back(Output(nullptr, &build[i]));
  }
  return out;
}

plan::Pipeline JoinPipeline(plan::SourceNode source, plan::Schema rows, plan::SinkNode sink, uint32_t stage) {
  return {.source = std::move(source),
          .steps = {},
          .sink = std::move(sink),
          .schemas = {std::move(rows)},
          .estimates = {{0, 1}},
          .after = {},
          .stage = stage};
}

/// P0 and P1 leave the probe side and the build side by parts, P2 joins them.
plan::PhysicalPlan PartitionJoinPlan(const Join& join, uint32_t parts) {
  plan::PhysicalPlan plan;
  plan::PartitionSink by{.keys = {}, .parts = parts, .domain = join.domain};
  for (uint32_t k = 0; k < join.keys; ++k) by.keys.push_back(k);
  plan.pipelines.push_back(JoinPipeline(plan::ValuesSource{}, join.probe_schema, by, 0));
  by.counts_nulls = join.asks_for_nulls();
  plan.pipelines.push_back(JoinPipeline(plan::ValuesSource{}, join.build_schema, by, 1));
  plan::JoinSource source{
      .probed = 0, .build = {.payload = {join.x(), join.x() + 1}}, .probe = {.build = 1, .kind = join.kind}};
  source.probe.null_aware = join.asks_for_nulls() && join.kind == JoinKind::kMark;
  for (const uint32_t k : by.keys) {
    source.probe.keys.push_back(plan::SlotExpr(join.probe_schema, k));
    source.build.keys.push_back(plan::SlotExpr(join.build_schema, k));
  }
  for (uint32_t slot = 0; slot < join.probe_schema.size(); ++slot) source.probe.keep.push_back(slot);
  source.probe.fetch = {0, 1};
  const plan::Schema partners = plan::SchemasOf(plan, source)->partners;
  if (join.residual) {
    source.probe.residuals = {
        plan::MakeNode(plan::Op::kLess, Type::Bool(), -1,
                       {plan::SlotExpr(partners, join.x()), plan::SlotExpr(partners, join.x() + 2)})};
  }
  plan::Schema output = plan::SchemasOf(plan, source)->output;
  plan.pipelines.push_back(JoinPipeline(std::move(source), std::move(output), plan::ResultSink{}, 2));
  plan.pipelines[2].after = {0, 1};
  for (uint32_t s = 0; s < 3; ++s) plan.stages.push_back({.claimed = s, .result = {}});
  EXPECT_TRUE(plan::Check(plan).ok()) << plan::Check(plan);
  return plan;
}

/// The memory that an attempt may take.
struct Limits {
  uint64_t build_bytes = 64 << 20;
  int threads = 2;
  std::shared_ptr<MemoryGrant> memory = nullptr;
};

class Runner {
 public:
  explicit Runner(uint64_t seed)
      : driver_(seed),
        cluster_(driver_, driver_.random().OneIn(4) ? fabric::Kind::kTcp : fabric::Kind::kShm),
        channels_(cluster_.fabric(), cluster_.servers(), {.buffer_bytes = 2 << 20}) {}

  /// Both sides as attempts leave them.
  void Write(const Join& join, uint32_t parts) {
    if (join.domain.known()) parts = std::bit_ceil(parts);
    parts_ = parts;
    for (uint32_t part = 0; part < parts; ++part) pieces_.push_back({part, 0, 1});
    for (const bool of_probe : {true, false}) {
      const plan::Schema& schema = of_probe ? join.probe_schema : join.build_schema;
      std::vector<std::vector<Tuple>> shares(1 + driver_.random().Below(2));
      for (const Tuple& tuple : of_probe ? join.probe : join.build)
        shares[driver_.random().Below(shares.size())].push_back(tuple);
      for (const std::vector<Tuple>& share : shares) {
        PartitionSink::Options options{.rows = schema,
                                       .by = {{}, parts, join.domain},
                                       .counts_nulls = !of_probe && join.asks_for_nulls(),
                                       .attempt = ++attempt_};
        for (uint32_t k = 0; k < join.keys; ++k) options.by.keys.push_back(k);
        spaces_.push_back(cluster_.NewSpace());
        auto sink = PartitionSink::Make(options, *spaces_.back(), driver_.budget());
        ASSERT_TRUE(sink.ok()) << sink.status();
        const absl::Status status = cluster_.RunInto(schema, share, **sink, 2);
        ASSERT_TRUE(status.ok()) << status;
        directories_.push_back((*sink)->output().directory().ToProto(options.attempt, of_probe ? 0 : 1));
      }
    }
  }
  absl::StatusOr<std::vector<Tuple>> Run(const Join& join, const Limits& limits) {
    StageInputs inputs;
    inputs.plan = PartitionJoinPlan(join, parts_);
    inputs.stage = 2;
    inputs.settings.set_result_bytes_max(256 << 20);
    inputs.settings.set_build_bytes_max(limits.build_bytes);
    inputs.threads = limits.threads;
    inputs.attempt = 99;
    inputs.directories = directories_;
    inputs.memory = limits.memory;
    inputs.pieces = pieces_;
    absl::StatusOr<std::unique_ptr<PreparedStage>> stage = PreparedStage::Make(std::move(inputs), leaving_);
    if (!stage.ok()) return stage.status();
    std::atomic<bool> cancel = false;
    Attempt attempt(**stage, MulticastBuild(), channels_, channels_, cancel);
    attempt.Start();
    EXPECT_FALSE(attempt.Await([] {}));
    if (!attempt.status().ok()) return attempt.status();
    slices_ = dynamic_cast<PartitionJoin&>(*(*stage)->pipeline(2).source).slices();
    EXPECT_EQ((*stage)->build_budget().used(), 0u);
    const std::unique_ptr<Source> rows = (*stage)->pipeline(2).sink->RowsAtRest(false);
    return cluster_.ReadAll(*rows, (*stage)->plan().pipelines[2].schemas[0].size(), 1);
  }

  StepDriver& driver() { return driver_; }
  RandomStream& random() { return driver_.random(); }
  uint64_t slices() const { return slices_; }
  std::vector<proto::Directory>& directories() { return directories_; }
  std::vector<partitioner::Piece>& pieces() { return pieces_; }

 private:
  StepDriver driver_;
  ScratchCluster cluster_;
  ChannelPool channels_;
  const std::atomic<bool> leaving_ = false;
  std::vector<std::unique_ptr<storage::ScratchSpace>> spaces_;
  std::vector<proto::Directory> directories_;
  std::vector<partitioner::Piece> pieces_;
  uint64_t attempt_ = 0;
  uint32_t parts_ = 1;
  uint64_t slices_ = 0;
};

Join RandomJoin(RandomStream& random, size_t probe_rows, size_t build_rows, uint64_t distinct) {
  Join join;
  join.kind = kKinds[random.Below(std::size(kKinds))];
  join.of_in = random.OneIn(2);
  join.keys = join.asks_for_nulls() ? 1 : 1 + random.Below(2);
  join.residual = !join.asks_for_nulls() && random.OneIn(2);
  for (size_t k = 0; k < join.keys; ++k) {
    const Key key = RandomKey(random);
    join.probe_schema.push_back(key.probe);
    join.build_schema.push_back(key.build);
  }
  const plan::Bounds& of_probe = join.probe_schema[0].bounds;
  if (join.keys == 1 && of_probe.known && random.OneIn(2)) join.domain = {-3, 16};
  const bool narrow = random.OneIn(2);
  for (plan::Schema* schema : {&join.probe_schema, &join.build_schema}) {
    schema->push_back(Number(0, 30));
    schema->push_back(narrow ? Number(0, 90) : plan::Slot{.type = Type::String(), .nullable = true});
    for (size_t k = 0; narrow && k < join.keys; ++k) (*schema)[k].nullable = random.OneIn(2);
  }
  for (size_t i = 0; i < probe_rows; ++i)
    join.probe.push_back(join.RandomTuple(join.probe_schema, distinct, random));
  for (size_t i = 0; i < build_rows; ++i)
    join.build.push_back(join.RandomTuple(join.build_schema, distinct, random));
  return join;
}

void ExpectJoined(Runner& runner, const Join& join, const Limits& limits = {}) {
  absl::StatusOr<std::vector<Tuple>> actual = runner.Run(join, limits);
  std::optional<std::vector<Tuple>> expected = join.Expected();
  if (!expected.has_value()) {
    ASSERT_FALSE(actual.ok());
    EXPECT_EQ(SqlErrorOf(actual.status())->sqlstate, "21000") << actual.status();
    return;
  }
  ASSERT_TRUE(actual.ok()) << actual.status();
  std::sort(expected->begin(), expected->end());
  ExpectTuples(*actual, *expected);
}

TEST(PartitionJoinTest, JoinsAsTheModelDoes) {
  constexpr size_t kRows[] = {0, 1, 300, 1025, 3000};
  for (const uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    Runner runner(seed);
    RandomStream& random = runner.random();
    const size_t probe_rows = kRows[random.Below(std::size(kRows))];
    const size_t build_rows = kRows[random.Below(std::size(kRows))];
    constexpr uint64_t kDistinct[] = {40, 500, 5000, 5000};
    const Join join =
        RandomJoin(random, probe_rows, build_rows, kDistinct[random.Below(std::size(kDistinct))]);
    runner.Write(join, 1 + static_cast<uint32_t>(random.Below(40)));
    if (::testing::Test::HasFatalFailure()) return;
    ExpectJoined(runner, join);
    if (::testing::Test::HasFailure()) return;
  }
}

/// Rows of 8 bytes, in small consecutive pages; some keys have most of the rows.
TEST(PartitionJoinTest, NarrowRowsOfADomainAreJoined) {
  for (const uint64_t seed : TestSeeds(20)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    Runner runner(seed);
    RandomStream& random = runner.random();
    Join join;
    join.kind = random.OneIn(2) ? JoinKind::kInner : kKinds[random.Below(std::size(kKinds))];
    join.of_in = random.OneIn(2);
    join.domain = {1000, 17};
    const int64_t base = 1000, size = 1 << 17;
    // The probe side's keys are of the domain, or some lie before and behind it.
    const int64_t beyond = random.OneIn(2) ? 40'000 : 0;
    const auto number = [](int64_t low, int64_t high) {
      return plan::Slot{.type = Type::Integer(), .nullable = false, .bounds = {low, high, true}};
    };
    join.probe_schema = {number(base - beyond, base + size - 1 + beyond), number(0, 60'000),
                         number(7, 60'000)};
    join.build_schema = {number(base, base + size - 1), number(-5, 60'000), number(7, 60'000)};
    const auto tuple = [&](int64_t low, int64_t count) {
      const int64_t key = low + static_cast<int64_t>(random.Below(static_cast<uint64_t>(count)));
      return Tuple{Cell::Number(key), Cell::Number(static_cast<int64_t>(random.Below(60'000))),
                   Cell::Number(7 + static_cast<int64_t>(random.Below(1'000)))};
    };
    const bool popular = random.OneIn(2);
    for (int i = 0; i < 30'000; ++i) join.build.push_back(tuple(base, popular && i % 2 == 0 ? 3 : size));
    for (int i = 0; i < 2'000; ++i)
      join.probe.push_back(popular && i < 4 ? tuple(base, 3)
                                            : tuple(base + 3 - beyond, size - 3 + 2 * beyond));
    if (join.kind == JoinKind::kSingle) join.kind = JoinKind::kLeft;
    constexpr uint32_t kParts[] = {1, 8, 512};
    runner.Write(join, kParts[random.Below(std::size(kParts))]);
    if (::testing::Test::HasFatalFailure()) return;
    ExpectJoined(runner, join, {.build_bytes = random.OneIn(2) ? 1u << 20 : 64u << 20});
    if (::testing::Test::HasFailure()) return;
  }
}

/// The field of a NULL holds the least key.
TEST(PartitionJoinTest, NullsAreNoKeysOfADomain) {
  Runner runner(12);
  Join join;
  join.kind = JoinKind::kFull;
  join.domain = {-3, 16};
  join.probe_schema = {Number(-1000, 7'000'000), Number(0, 30), Number(0, 90)};
  join.build_schema = {Number(-3, 60'000), Number(0, 30), Number(0, 90)};
  for (int i = 0; i < 400; ++i) {
    join.probe.push_back(join.RandomTuple(join.probe_schema, 40, runner.random()));
    join.build.push_back(join.RandomTuple(join.build_schema, 40, runner.random()));
  }
  runner.Write(join, 4);
  ExpectJoined(runner, join);
}

/// NULLs as keys are included: they are equal to no others, and all in one part.
TEST(PartitionJoinTest, PartsThatAreTooLargeAreJoinedSliceBySlice) {
  for (const uint64_t seed : TestSeeds(12)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    Runner runner(seed);
    RandomStream& random = runner.random();
    Join join = RandomJoin(random, 6'000, 50'000, 40'000);
    if (join.kind == JoinKind::kSingle) join.kind = JoinKind::kFull;
    const auto parts = 1 + static_cast<uint32_t>(random.Below(3));
    runner.Write(join, parts);
    if (::testing::Test::HasFatalFailure()) return;
    ExpectJoined(runner, join, {.build_bytes = 1 << 20});
    EXPECT_GE(runner.slices(), 2 * parts);
    if (::testing::Test::HasFailure()) return;
  }
}

/// Its rows are the same `count` times on the build side, and probed ten times.
Join JoinOfOneKey(RandomStream& random, JoinKind kind, size_t count, bool null_key) {
  Join join = RandomJoin(random, 0, 0, 10);
  join.kind = kind;
  join.probe_schema[0].nullable = join.build_schema[0].nullable = true;
  Tuple row;
  do {
    row = join.RandomTuple(join.build_schema, 10, random);
  } while (std::any_of(row.begin(), row.end(), [](const Cell& cell) { return cell.null; }));
  if (null_key) row[0] = Cell();
  join.build.assign(count, row);
  join.probe.assign(10, row);
  return join;
}

/// A part may have no row of the build side where others have, and NULLs are in no part.
TEST(PartitionJoinTest, InAndNotInAskTheWholeBuildSide) {
  enum Built { kNothing, kNulls, kRows, kRowsAndOneNull, kBuilt };
  for (const uint64_t seed : TestSeeds(3)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    for (int built = kNothing; built < kBuilt; ++built) {
      for (const JoinKind kind : {JoinKind::kMark, JoinKind::kNullAwareAnti}) {
        Runner runner(seed);
        Join join = RandomJoin(runner.random(), 0, 0, 5000);
        while (join.keys != 1 || join.residual) join = RandomJoin(runner.random(), 0, 0, 5000);
        join.kind = kind;
        join.of_in = true;
        join.probe_schema[0].nullable = join.build_schema[0].nullable = true;
        const auto row = [&](const plan::Schema& schema, bool null) {
          Tuple tuple;
          do {
            tuple = join.RandomTuple(schema, 5000, runner.random());
          } while (tuple[0].null && !null);
          if (null) tuple[0] = Cell();
          return tuple;
        };
        for (int i = 0; i < 2'000; ++i) join.probe.push_back(row(join.probe_schema, i % 7 == 0));
        const bool rows = built == kRows || built == kRowsAndOneNull;
        for (int i = 0; rows && i < 30; ++i) join.build.push_back(row(join.build_schema, false));
        if (built == kRowsAndOneNull) join.build.push_back(row(join.build_schema, true));
        for (int i = 0; built == kNulls && i < 1'500; ++i) join.build.push_back(row(join.build_schema, true));
        runner.Write(join, 40);
        if (::testing::Test::HasFatalFailure()) return;
        ExpectJoined(runner, join);
        ASSERT_FALSE(::testing::Test::HasFailure()) << "build side " << built;
      }
    }
  }
}

/// A sink that was not asked to count says that it has written all rows.
TEST(PartitionJoinTest, RowsThatNobodyWasToCountAreDamage) {
  Runner runner(11);
  Join join = RandomJoin(runner.random(), 100, 100, 50);
  join.kind = JoinKind::kLeft;
  runner.Write(join, 4);
  runner.directories().back().set_null_rows(1);
  const auto result = runner.Run(join, {});
  EXPECT_TRUE(absl::IsDataLoss(result.status())) << result.status();
}

TEST(PartitionJoinTest, AKeyWithMoreRowsThanFitIsAnError) {
  Runner runner(5);
  const Join join = JoinOfOneKey(runner.random(), JoinKind::kInner, 40'000, /*null_key=*/false);
  runner.Write(join, 4);
  const auto result = runner.Run(join, {.build_bytes = 512 << 10});
  ASSERT_FALSE(result.ok());
  const auto error = SqlErrorOf(result.status());
  ASSERT_TRUE(error.has_value()) << result.status();
  EXPECT_EQ(error->sqlstate, "53200");
  EXPECT_NE(error->message.find("too many with equal keys"), std::string::npos) << error->message;
  EXPECT_NE(error->hint.find("nam.build_mib_max"), std::string::npos) << error->hint;
}

/// All rows are in one part, and no bits of a hash tell them apart.
TEST(PartitionJoinTest, RowsWithoutAKeyAreNeverTooMany) {
  Runner runner(7);
  const Join join = JoinOfOneKey(runner.random(), JoinKind::kFull, 40'000, /*null_key=*/true);
  runner.Write(join, 4);
  ExpectJoined(runner, join, {.build_bytes = 512 << 10});
  EXPECT_GE(runner.slices(), 3u + 2);
}

/// This holds however many threads there are: each would have less than a page.
TEST(PartitionJoinTest, ThreadsWithoutAShareLeavePartsToOthers) {
  Runner runner(8);
  Join join = RandomJoin(runner.random(), 2'000, 3'000, 500);
  join.kind = JoinKind::kFull;
  runner.Write(join, 8);
  ExpectJoined(runner, join, {.build_bytes = 1 << 20, .threads = 16});
}

/// Sinks take their memory from the same grant.
TEST(PartitionJoinTest, TablesLeaveTheServersMemoryToSinks) {
  constexpr uint64_t kMib = 1 << 20;
  Runner runner(9);
  Join join = RandomJoin(runner.random(), 10, 60'000, 50'000);
  join.kind = JoinKind::kSemi;
  runner.Write(join, 1);
  ServerMemory memory(4 * kMib);
  Limits limits{.threads = 1, .memory = std::make_shared<MemoryGrant>(memory, 0)};
  ExpectJoined(runner, join, limits);
  EXPECT_LE(limits.memory->bytes(), 2 * kMib) << "a step more than a quarter";
  EXPECT_FALSE(limits.memory->refused());
}

TEST(PartitionJoinTest, APieceThatIsNoPartIsRefused) {
  Runner runner(10);
  const Join join = RandomJoin(runner.random(), 10, 10, 10);
  runner.Write(join, 4);
  for (const partitioner::Piece& piece : {partitioner::Piece{4, 0, 1}, {0, 1, 1}, {0, 2, 2}, {0, 0, 0}}) {
    runner.pieces() = {piece};
    EXPECT_TRUE(absl::IsInvalidArgument(runner.Run(join, {}).status()));
  }
}

/// Any server may claim them, in any order, since each of them stands alone.
TEST(PartitionJoinTest, TheSharesOfAPartAreItsJoin) {
  for (const uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    Runner runner(seed);
    RandomStream& random = runner.random();
    constexpr size_t kRows[] = {0, 1, 300, 3'000, 20'000};
    // Half of them with many rows on the build side, which is shared then.
    const bool of_built = random.OneIn(2);
    Join join = RandomJoin(random, of_built ? 3'000 : kRows[random.Below(std::size(kRows))],
                           of_built ? 20'000 : kRows[random.Below(std::size(kRows))],
                           random.OneIn(2) ? 40'000 : 3'000);
    if (of_built) join.kind = random.OneIn(2) ? JoinKind::kInner : JoinKind::kRight;
    if (join.kind == JoinKind::kFull) join.kind = JoinKind::kInner;
    runner.Write(join, 1 + static_cast<uint32_t>(random.Below(5)));
    if (::testing::Test::HasFatalFailure()) return;
    std::vector<partitioner::Piece> pieces;
    for (const partitioner::Piece& part : runner.pieces()) {
      const auto count = static_cast<uint32_t>(1 + random.Below(5));
      for (uint32_t number = 0; number < count; ++number) pieces.push_back({part.partition, number, count});
    }
    for (size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[random.Below(i)]);
    runner.pieces() = pieces;
    ExpectJoined(runner, join, {.build_bytes = random.OneIn(2) ? 1u << 20 : 64u << 20});
    if (::testing::Test::HasFailure()) return;
  }
}

/// Rows of one key on the build side that a task could not hold, and of which each of several has some.
TEST(PartitionJoinTest, SharesOfABuildSideAreHeldBySeveralTasks) {
  Runner runner(5);
  const Join join = JoinOfOneKey(runner.random(), JoinKind::kInner, 40'000, /*null_key=*/false);
  runner.Write(join, 1);
  std::vector<partitioner::Piece>& pieces = runner.pieces();
  pieces.clear();
  for (uint32_t number = 0; number < 16; ++number) pieces.push_back({0, number, 16});
  ExpectJoined(runner, join, {.build_bytes = 512 << 10});
  EXPECT_EQ(runner.slices(), 16u);
}

/// Rows of either side may be without a partner, which no share alone can know.
TEST(PartitionJoinTest, SharesOfAFullJoinAreRefused) {
  for (const JoinKind kind : {JoinKind::kFull, JoinKind::kRight}) {
    Runner runner(10);
    Join join = RandomJoin(runner.random(), 10, 10, 10);
    join.kind = kind;
    runner.Write(join, 4);
    runner.pieces() = {{0, 0, 2}, {0, 1, 2}};
    EXPECT_EQ(absl::IsInvalidArgument(runner.Run(join, {}).status()), kind == JoinKind::kFull);
  }
}

TEST(PartitionJoinTest, APartThatIsNotWhatItsDirectorySaysIsDamaged) {
  Runner runner(6);
  Join join = RandomJoin(runner.random(), 3'000, 3'000, 5000);
  join.kind = JoinKind::kFull;
  runner.Write(join, 4);
  for (proto::Directory& directory : runner.directories()) {
    if (directory.pipeline() != 1 || directory.parts_size() == 0) continue;
    directory.mutable_parts(0)->set_rows(directory.parts(0).rows() - 1);
    break;
  }
  const auto result = runner.Run(join, {});
  EXPECT_TRUE(absl::IsDataLoss(result.status())) << result.status();
}

}  // namespace
}  // namespace nam::execution
