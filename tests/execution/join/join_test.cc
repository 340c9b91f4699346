#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "execution/join/probe.h"
#include "plan/expression.h"
#include "plan/slot_of.h"
#include "tests/execution/join/random_join.h"
#include "tests/execution/step_driver.h"
#include "types/sql_error.h"

/// Joins, compared with nested loops over the same tuples.
namespace nam::execution {
namespace {

using plan::JoinKind;
using testing::Join;
using testing::Key;
using testing::KeyForm;
using testing::Number;
using testing::RandomDistinct;
using testing::RandomForms;
using testing::RandomJoin;
using testing::RandomRows;

constexpr uint32_t kPageBytes = RowLayout::kSmallPageBytes;

std::unique_ptr<const Program> Slots(const plan::Schema& schema, const std::vector<uint32_t>& slots) {
  std::vector<plan::Expr> outputs;
  for (uint32_t slot : slots) outputs.push_back(plan::SlotExpr(schema, slot));
  auto program = Program::Compile(outputs, schema);
  NAM_CHECK(program.ok());
  return *std::move(program);
}

std::vector<uint32_t> UpTo(size_t count) {
  std::vector<uint32_t> numbers(count);
  for (uint32_t i = 0; i < count; ++i) numbers[i] = i;
  return numbers;
}

/// Tables whose columns are codes, with one meaning for all chunks, as the blocks of a table are.
class CodedTable {
 public:
  CodedTable(const plan::Schema& schema, const std::vector<Tuple>& tuples, uint64_t first_dictionary)
      : schema_(schema), tuples_(tuples), columns_(schema.size()) {
    for (size_t slot = 0; slot < schema.size(); ++slot) Encode(slot, first_dictionary + slot);
  }
  const CodeMeaning* meaning(size_t slot) const { return &columns_[slot].meaning; }

  /// Chunks of 1 to 1,024 tuples, some of them behind row numbers, into a task of the sink.
  absl::Status Into(Sink& sink, StepDriver& driver) const {
    TaskContext context = driver.NewContext();
    const std::unique_ptr<SinkTask> task = sink.NewTask(context);
    Chunk chunk(schema_.size(), 1);
    std::vector<uint32_t> positions(kChunkRows);
    for (size_t done = 0; done < tuples_.size();) {
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(
          tuples_.size() - done, static_cast<uint64_t>(driver.random().Between(1, kChunkRows))));
      const bool by_rows = driver.random().OneIn(2);
      for (uint32_t i = 0; i < count; ++i) {
        chunk.row_set(0)[i] = static_cast<uint32_t>(done) + i;
        positions[i] = i;
      }
      for (size_t slot = 0; slot < schema_.size(); ++slot) {
        const Coded& coded = columns_[slot];
        chunk.columns()[slot] = {.kind = Column::Kind::kCodes,
                                 .width = coded.meaning.width,
                                 .physical = ArrayPhysical(schema_[slot]),
                                 .base = coded.codes.data() + (by_rows ? 0 : done * coded.meaning.width),
                                 .rows = by_rows ? chunk.row_set(0) : nullptr,
                                 .meaning = &coded.meaning};
      }
      chunk.Reset(count, {driver.random().OneIn(2) ? positions.data() : nullptr, count});
      if (task->Consume(context, chunk) == Step::kFailed) return context.error();
      done += count;
    }
    const uint32_t parts = sink.CombineParts();
    for (uint32_t part = 0; part < parts; ++part) {
      if (absl::Status status = sink.Combine(context, part); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  struct Coded {
    CodeMeaning meaning;
    std::vector<std::byte> codes;
  };

  void Encode(size_t slot, uint64_t dictionary_id) {
    Coded& coded = columns_[slot];
    CodeMeaning& meaning = coded.meaning;
    meaning.type = schema_[slot].type;
    meaning.null_code = true;
    meaning.min = 0;
    meaning.max = 0;
    std::set<std::string> texts;
    std::set<int64_t> numbers = {0};
    for (const Tuple& tuple : tuples_) {
      if (tuple[slot].null) continue;
      texts.insert(tuple[slot].text);
      numbers.insert(static_cast<int64_t>(tuple[slot].number));
    }
    const bool text = PhysicalOf(meaning.type) == Physical::kText;
    if (text) {
      meaning.dictionary =
          *storage::Dictionary::Decode(storage::Dictionary::Encode({texts.begin(), texts.end()}));
      meaning.dictionary_id = dictionary_id;
      meaning.max = static_cast<int64_t>(texts.size()) - 1;
    } else {
      meaning.min = *numbers.begin();
      meaning.max = *numbers.rbegin();
    }
    meaning.base = meaning.min - 1;
    meaning.codes = static_cast<uint64_t>(meaning.max - meaning.base) + 1;
    meaning.width = meaning.codes <= 200 ? 1 : meaning.codes <= 60'000 ? 2 : 4;
    coded.codes.resize(tuples_.size() * meaning.width);
    for (size_t i = 0; i < tuples_.size(); ++i) {
      const Cell& cell = tuples_[i][slot];
      const int64_t number = !text || cell.null ? static_cast<int64_t>(cell.number)
                                                : static_cast<int64_t>(*meaning.dictionary->Find(cell.text));
      const uint64_t code = cell.null ? 0 : static_cast<uint64_t>(number - meaning.base);
      std::memcpy(coded.codes.data() + i * meaning.width, &code, meaning.width);
    }
  }

  const plan::Schema& schema_;
  const std::vector<Tuple>& tuples_;
  std::vector<Coded> columns_;
};

/// Runs the probe side over some threads, each with its share.
absl::StatusOr<std::vector<Tuple>> Probe(StepOperator& probe, const ProbeOptions& options, const Join& join,
                                         StepDriver& driver, size_t tasks) {
  std::vector<std::vector<Tuple>> shares(tasks), results(tasks);
  for (const Tuple& tuple : join.probe) shares[driver.random().Below(tasks)].push_back(tuple);
  std::vector<TaskContext> contexts;
  for (size_t t = 0; t < tasks; ++t) contexts.push_back(driver.NewContext());
  std::vector<std::unique_ptr<PipelineTask>> pipelines;
  for (size_t t = 0; t < tasks; ++t) {
    std::vector<std::unique_ptr<Chunk>> chunks;
    chunks.push_back(std::make_unique<Chunk>(join.probe_schema.size(), join.probe_schema.size()));
    chunks.push_back(NewProbeChunk(options));
    const size_t columns = chunks[1]->columns().size();
    std::vector<std::unique_ptr<StepTask>> steps;
    steps.push_back(Checked(probe.NewTask(contexts[t])));
    pipelines.push_back(std::make_unique<PipelineTask>(
        std::make_unique<TupleSource>(join.probe_schema, shares[t], driver.random().Next()), std::move(steps),
        std::make_unique<TupleSink>(columns, driver.random().Next(), results[t]), std::move(chunks)));
  }
  std::vector<absl::Status> statuses(tasks);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < tasks; ++t) {
    threads.emplace_back([&, t] {
      statuses[t] = RunToEnd(*pipelines[t], contexts[t]);
      pipelines[t].reset();  // a task that failed is not waited for
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Tuple> all;
  for (size_t t = 0; t < tasks; ++t) {
    if (!statuses[t].ok()) return statuses[t];
    all.insert(all.end(), results[t].begin(), results[t].end());
  }
  return all;
}

/// Probes `build` as the join says, and compares.
template <typename Build>
void CheckProbe(const Build& build, const Join& join, StepDriver& driver) {
  ProbeOptions options{.kind = join.kind, .keep = join.keep, .fetch = join.fetch};
  options.null_aware = join.null_aware;
  options.input_row_sets = static_cast<uint32_t>(join.probe_schema.size());
  options.input = join.probe_schema;
  const auto keys = Slots(join.probe_schema, UpTo(join.keys.size()));
  options.keys = keys.get();
  plan::Schema pair_schema;
  for (uint32_t slot : join.keep) pair_schema.push_back(join.probe_schema[slot]);
  for (uint32_t column : join.fetch) pair_schema.push_back(join.build_schema[join.x() + column]);
  plan::Expr less;
  less.op = plan::Op::kLess;
  less.type = Type::Bool();
  const auto x = std::find(join.keep.begin(), join.keep.end(), join.x()) - join.keep.begin();
  less.children = {plan::SlotExpr(pair_schema, static_cast<uint32_t>(x)),
                   plan::SlotExpr(pair_schema, static_cast<uint32_t>(join.keep.size()))};
  const auto residual = Program::Compile({&less, 1}, pair_schema);
  ASSERT_TRUE(residual.ok()) << residual.status();
  if (join.residual) options.residuals = residual->get();
  auto probe = build.NewProbe(options);
  ASSERT_TRUE(probe.ok()) << probe.status();
  auto actual = Probe(**probe, options, join, driver, driver.random().Below(3) + 1);
  std::optional<std::vector<Tuple>> expected = join.Expected();
  if (!expected.has_value()) {
    ASSERT_FALSE(actual.ok());
    EXPECT_EQ(SqlErrorOf(actual.status())->sqlstate, "21000");
    return;
  }
  ASSERT_TRUE(actual.ok()) << actual.status();
  std::sort(actual->begin(), actual->end());
  std::sort(expected->begin(), expected->end());
  ASSERT_EQ(*actual, *expected);
}

RowBuild::Options BuildOptions(const Join& join, const Program& program, RowLayout layout) {
  RowBuild::Options options{.program = &program,
                            .keys = static_cast<uint32_t>(join.keys.size()),
                            .layout = std::move(layout),
                            .pages_max = 1000,
                            .match_bits = true};
  for (const Key& key : join.keys) options.ignores_blanks.push_back(key.form == KeyForm::kCharBesideVarchar);
  return options;
}

TEST(JoinTest, HashedRowsJoinAsNestedLoops) {
  for (uint64_t seed : TestSeeds(60)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const size_t build_rows = RandomRows(random);
    const Join join = RandomJoin(random, RandomForms(random), build_rows, RandomDistinct(random));
    const auto program = Slots(join.build_schema, UpTo(join.build_schema.size()));
    auto build = *RowBuild::Make(BuildOptions(join, *program, *RowLayout::Of(join.build_schema, kPageBytes)),
                                 driver.budget());
    ASSERT_TRUE(
        driver.RunInto(join.build_schema, join.build, *build, static_cast<int>(random.Below(3)) + 1).ok());
    CheckProbe(*build, join, driver);
    if (HasFatalFailure()) return;
  }
}

TEST(JoinTest, RowsThatKeepTheirCodesJoinAsNestedLoops) {
  for (uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    std::vector<KeyForm> forms = RandomForms(random);
    std::replace(forms.begin(), forms.end(), KeyForm::kWide, KeyForm::kText);
    const size_t build_rows = RandomRows(random);
    const Join join = RandomJoin(random, forms, build_rows, RandomDistinct(random));
    const CodedTable table(join.build_schema, join.build, 1'000'000);
    std::vector<const CodeMeaning*> meanings;
    for (size_t slot = 0; slot < join.build_schema.size(); ++slot) {
      const bool text = PhysicalOf(join.build_schema[slot].type) == Physical::kText;
      meanings.push_back(text || random.OneIn(2) ? table.meaning(slot) : nullptr);
    }
    const auto program = Slots(join.build_schema, UpTo(join.build_schema.size()));
    RowBuild::Options options =
        BuildOptions(join, *program, *RowLayout::Local(join.build_schema, meanings, kPageBytes));
    const bool number = forms.size() == 1 && (forms[0] == KeyForm::kNarrow || meanings[0] != nullptr);
    if (number && forms[0] != KeyForm::kBool && random.OneIn(2)) {
      options.direct = {
          .rows = build_rows, .key_min = table.meaning(0)->min, .key_max = table.meaning(0)->max};
      if (options.direct->key_max < options.direct->key_min) options.direct.reset();
    }
    auto build = *RowBuild::Make(std::move(options), driver.budget());
    ASSERT_TRUE(table.Into(*build, driver).ok());
    CheckProbe(*build, join, driver);
    if (HasFatalFailure()) return;
  }
}

TEST(JoinTest, DenseKeysWithDuplicatesJoinAsNestedLoops) {
  for (uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const size_t build_rows = RandomRows(random);
    const Join join = RandomJoin(random, {KeyForm::kNarrow}, build_rows, RandomDistinct(random));
    const auto program = Slots(join.build_schema, UpTo(join.build_schema.size()));
    RowBuild::Options options = BuildOptions(join, *program, *RowLayout::Of(join.build_schema, kPageBytes));
    options.direct = {.rows = build_rows, .key_min = -3, .key_max = 250, .parts = 1u << random.Below(4)};
    auto build = *RowBuild::Make(std::move(options), driver.budget());
    ASSERT_TRUE(
        driver.RunInto(join.build_schema, join.build, *build, static_cast<int>(random.Below(3)) + 1).ok());
    CheckProbe(*build, join, driver);
    if (HasFatalFailure()) return;
  }
}

TEST(JoinTest, UniqueKeysJoinAsNestedLoops) {
  for (uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    const KeyForm form = random.OneIn(3) ? KeyForm::kText : KeyForm::kNarrow;
    Join join = RandomJoin(random, {form}, RandomRows(random), 250);
    if (join.kind == JoinKind::kRight || join.kind == JoinKind::kFull) join.kind = JoinKind::kInner;
    // Parts that are not here have no rows.
    DirectTable::Options direct{.rows = join.build.size(), .unique = true};
    if (form == KeyForm::kNarrow && random.OneIn(2)) {
      direct.parts = 8;
      direct.here = {1, 2, 6};
    }
    std::set<Cell> keys;
    std::erase_if(join.build, [&](const Tuple& b) {
      if (b[0].null) return false;
      const auto part = static_cast<uint32_t>(b[0].number & 7);
      return !keys.insert(b[0]).second ||
             (!direct.here.empty() && std::ranges::count(direct.here, part) == 0);
    });
    const CodedTable table(join.build_schema, join.build, 1'000'000);
    direct.key_min = form == KeyForm::kNarrow ? -3 : table.meaning(0)->min;
    direct.key_max = form == KeyForm::kNarrow ? 250 : std::max<int64_t>(table.meaning(0)->max, 0);
    const auto key = Slots(join.build_schema, {0});
    DirectBuild::Options options{.table = direct, .key = key.get()};
    if (form == KeyForm::kText) options.texts = std::make_unique<const TextKeys>(*table.meaning(0), false);
    options.payload = {1, 2};
    options.meanings = {table.meaning(1), table.meaning(2)};
    auto build = *DirectBuild::Make(std::move(options), driver.budget());
    ASSERT_TRUE(table.Into(*build, driver).ok());
    CheckProbe(*build, join, driver);
    if (HasFatalFailure()) return;
  }
}

/// A build side of one key and a number.
struct OneKey {
  explicit OneKey(std::vector<int64_t> build_keys, uint64_t budget_bytes = uint64_t{1} << 30)
      : driver(1, budget_bytes) {
    join.AddKey({KeyForm::kNarrow, Number(-1000, 70'000), Number(-3, 250)});
    join.AddPayload();
    join.keep = {0};
    join.fetch = {0};
    for (int64_t key : build_keys)
      join.build.push_back({Cell::Number(key), Cell::Number(1), Cell::Text("t")});
    program = Slots(join.build_schema, UpTo(join.build_schema.size()));
  }
  RowBuild::Options Options() const {
    return BuildOptions(join, *program, *RowLayout::Of(join.build_schema, kPageBytes));
  }
  StepDriver driver;
  Join join;
  std::unique_ptr<const Program> program;
};

// One tuple matches more rows than ten chunks hold: the task may pause between them.
TEST(JoinTest, ATupleWithManyPartnersLeavesInSeveralChunks) {
  OneKey sides(std::vector<int64_t>(10'500, 7));
  sides.join.probe.assign(3, {Cell::Number(7), Cell::Number(1), Cell::Text("p")});
  for (JoinKind kind : {JoinKind::kInner, JoinKind::kLeft, JoinKind::kSemi}) {
    sides.join.kind = kind;
    auto build = *RowBuild::Make(sides.Options(), sides.driver.budget());
    ASSERT_TRUE(sides.driver.RunInto(sides.join.build_schema, sides.join.build, *build, 2).ok());
    CheckProbe(*build, sides.join, sides.driver);
  }
}

TEST(JoinTest, InAndNotInKnowOfNulls) {
  for (const bool direct : {false, true}) {
    for (const std::vector<int64_t>& build_keys : std::vector<std::vector<int64_t>>{{}, {1}}) {
      for (const bool build_null : {false, true}) {
        OneKey sides(build_keys);
        if (build_null) sides.join.build.push_back({Cell{}, Cell::Number(1), Cell::Text("t")});
        for (const Cell& key : {Cell::Number(1), Cell::Number(2), Cell{}})
          sides.join.probe.push_back({key, Cell::Number(1), Cell::Text("p")});
        RowBuild::Options options = sides.Options();
        if (direct) options.direct = {.rows = 2, .key_min = -3, .key_max = 250};
        auto build = *RowBuild::Make(std::move(options), sides.driver.budget());
        ASSERT_TRUE(sides.driver.RunInto(sides.join.build_schema, sides.join.build, *build).ok());
        sides.join.kind = JoinKind::kNullAwareAnti;
        CheckProbe(*build, sides.join, sides.driver);
        sides.join.kind = JoinKind::kMark;
        for (const bool null_aware : {false, true}) {
          sides.join.null_aware = null_aware;
          CheckProbe(*build, sides.join, sides.driver);
        }
      }
    }
  }
}

TEST(JoinTest, KeysOutsideOfWhatTheCatalogSaysAreDataLoss) {
  OneKey sides({5, 200});
  RowBuild::Options options = sides.Options();
  options.direct = {.rows = 2, .key_min = 0, .key_max = 100};
  auto build = *RowBuild::Make(std::move(options), sides.driver.budget());
  EXPECT_EQ(sides.driver.RunInto(sides.join.build_schema, sides.join.build, *build).code(),
            absl::StatusCode::kDataLoss);
  const auto key = Slots(sides.join.build_schema, {0});
  for (const auto& keys : std::vector<std::vector<int64_t>>{{5, 101}, {5, 5}, {3}}) {
    OneKey unique(keys);
    const CodedTable table(unique.join.build_schema, unique.join.build, 1'000'000);
    DirectBuild::Options direct{
        .table = {.rows = 2, .key_min = 0, .key_max = 100, .unique = true, .parts = 2, .here = {1}},
        .key = key.get()};
    if (keys == std::vector<int64_t>{3}) direct.table.here = {0};
    auto build = *DirectBuild::Make(std::move(direct), unique.driver.budget());
    EXPECT_EQ(table.Into(*build, unique.driver).code(), absl::StatusCode::kDataLoss);
  }
}

TEST(JoinTest, ABudgetThatIsUsedUpEndsTheBuild) {
  OneKey sides(std::vector<int64_t>(20'000, 7), 100'000);
  auto build = *RowBuild::Make(sides.Options(), sides.driver.budget());
  EXPECT_EQ(sides.driver.RunInto(sides.join.build_schema, sides.join.build, *build).code(),
            absl::StatusCode::kResourceExhausted);
  // The rows fit, and not the table over them.
  OneKey few(std::vector<int64_t>(1'000, 7), 20'000);
  auto second = *RowBuild::Make(few.Options(), few.driver.budget());
  EXPECT_EQ(few.driver.RunInto(few.join.build_schema, few.join.build, *second).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(JoinTest, PlansThatDoNotFitTheirBuildSideAreRefused) {
  OneKey sides({1});
  auto build = *RowBuild::Make(sides.Options(), sides.driver.budget());
  const auto two = Slots(sides.join.probe_schema, {0, 1});
  const auto text = Slots(sides.join.probe_schema, {2});
  const auto one = Slots(sides.join.probe_schema, {0});
  const auto refused = [&](ProbeOptions options) {
    return build->NewProbe(std::move(options)).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused({.keys = one.get()}));
  EXPECT_TRUE(refused({.keys = two.get()}));
  EXPECT_TRUE(refused({.keys = text.get()}));
  EXPECT_TRUE(refused({.keys = one.get(), .fetch = {2}}));
  EXPECT_TRUE(refused({.kind = JoinKind::kNullAwareAnti, .keys = one.get(), .residuals = one.get()}));
  EXPECT_TRUE(refused({.kind = JoinKind::kFull, .keys = one.get(), .keep = {0}}));
}

}  // namespace
}  // namespace nam::execution
