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
#include "tests/execution/step_driver.h"
#include "types/sql_error.h"

/// Joins, compared with nested loops over the same tuples.
namespace nam::execution {
namespace {

using plan::JoinKind;

constexpr uint64_t kMostPairs = 40'000;  // about
constexpr uint32_t kPageBytes = RowLayout::kSmallPageBytes;
constexpr JoinKind kAllKinds[] = {JoinKind::kInner, JoinKind::kLeft,          JoinKind::kRight,
                                  JoinKind::kFull,  JoinKind::kSemi,          JoinKind::kAnti,
                                  JoinKind::kMark,  JoinKind::kNullAwareAnti, JoinKind::kSingle};

enum class KeyForm : uint8_t { kNarrow, kWide, kText, kCharBesideVarchar, kBool };

plan::Expr Slot(const plan::Schema& schema, uint32_t slot) {
  plan::Expr expr;
  expr.op = plan::Op::kColumn;
  expr.type = schema[slot].type;
  expr.column = {0, static_cast<int>(slot)};
  return expr;
}

std::unique_ptr<const Program> Slots(const plan::Schema& schema, const std::vector<uint32_t>& slots) {
  std::vector<plan::Expr> outputs;
  for (uint32_t slot : slots) outputs.push_back(Slot(schema, slot));
  auto program = Program::Compile(outputs, schema);
  NAM_CHECK(program.ok());
  return *std::move(program);
}

std::vector<uint32_t> UpTo(size_t count) {
  std::vector<uint32_t> numbers(count);
  for (uint32_t i = 0; i < count; ++i) numbers[i] = i;
  return numbers;
}

plan::Slot Number(__int128 low, __int128 high) {
  return {.type = Type::Integer(), .nullable = true, .bounds = {low, high, true}};
}

/// The slots of one key on both sides, and keys that occur on both.
struct Key {
  KeyForm form;
  plan::Slot probe, build;

  static Key Of(KeyForm form, RandomStream& random) {
    switch (form) {
      case KeyForm::kNarrow:
        return {form, Number(-1000, 70'000), Number(-3, 250)};
      case KeyForm::kWide: {
        const plan::Slot unknown = {.type = Type::Decimal(2)};
        plan::Slot bounded = unknown;
        bounded.bounds = {-3, 100'000, true};
        const bool which = random.OneIn(2);
        return {form, which ? unknown : bounded, random.OneIn(2) ? unknown : bounded};
      }
      case KeyForm::kText:
        return {form, {.type = Type::String()}, {.type = Type::String()}};
      case KeyForm::kCharBesideVarchar:
        return {form, {.type = plan::CharType(9)}, {.type = Type::String(9)}};
      case KeyForm::kBool:
        return {form, {.type = Type::Bool()}, {.type = Type::Bool()}};
    }
    return {};
  }

  Cell Random(bool of_probe, uint64_t distinct, RandomStream& random) const {
    if (random.OneIn(8)) return {};
    const auto number = static_cast<int64_t>(random.Below(distinct)) - 3;
    switch (form) {
      case KeyForm::kNarrow:
        return Cell::Number(
            std::min<int64_t>(of_probe && random.OneIn(10) ? 60'000 : number, of_probe ? 60'000 : 250));
      case KeyForm::kWide: {
        const plan::Slot& slot = of_probe ? probe : build;
        const bool huge = !slot.bounds.known && random.OneIn(8);
        return Cell::Number(huge ? (__int128{1} << 70) + number : __int128{number});
      }
      case KeyForm::kText:
      case KeyForm::kCharBesideVarchar: {
        std::string text = number == 0 ? "" : "t" + std::to_string(number);
        const bool is_char = form == KeyForm::kCharBesideVarchar && of_probe;  // has none at its end
        if (!is_char && random.OneIn(3)) text += ' ';
        return Cell::Text(std::move(text));
      }
      case KeyForm::kBool:
        return Cell::Number(number & 1);
    }
    return {};
  }

  bool Equal(const Cell& a, const Cell& b) const {
    if (a.null || b.null) return false;
    if (form != KeyForm::kCharBesideVarchar) return a == b;
    return plan::WithoutBlanks(a.text) == plan::WithoutBlanks(b.text);
  }
};

/// Two sides: keys, then a number x or y, then a text.
struct Join {
  JoinKind kind = JoinKind::kInner;
  bool null_aware = false;
  bool residual = false;  // x < y
  std::vector<Key> keys;
  plan::Schema probe_schema, build_schema;
  std::vector<Tuple> probe, build;
  std::vector<uint32_t> keep, fetch;

  void AddKey(const Key& key) {
    keys.push_back(key);
    probe_schema.push_back(key.probe);
    build_schema.push_back(key.build);
  }
  void AddPayload() {
    for (plan::Schema* schema : {&probe_schema, &build_schema}) {
      schema->push_back(Number(0, 30));
      schema->push_back({.type = Type::String()});
    }
  }
  uint32_t x() const { return static_cast<uint32_t>(keys.size()); }
  Tuple RandomTuple(bool of_probe, uint64_t distinct, RandomStream& random) const {
    Tuple tuple;
    for (const Key& key : keys) tuple.push_back(key.Random(of_probe, distinct, random));
    tuple.push_back(RandomCell(probe_schema[x()], 31, random));
    tuple.push_back(RandomCell(probe_schema[x() + 1], 50, random));
    return tuple;
  }
  /// Which columns flow: x and y always, since residuals look at them.
  void ChooseColumns(RandomStream& random) {
    for (uint32_t slot = 0; slot < probe_schema.size(); ++slot) {
      if (slot == x() || random.OneIn(2)) keep.push_back(slot);
    }
    fetch = random.OneIn(2) ? std::vector<uint32_t>{0} : std::vector<uint32_t>{0, 1};
  }

  bool Matches(const Tuple& p, const Tuple& b) const {
    for (size_t k = 0; k < keys.size(); ++k) {
      if (!keys[k].Equal(p[k], b[k])) return false;
    }
    return !residual || (!p[x()].null && !b[x()].null && p[x()].number < b[x()].number);
  }
  Tuple Output(const Tuple* p, const Tuple* b) const {
    Tuple out;
    for (uint32_t slot : keep) out.push_back(p == nullptr ? Cell{} : (*p)[slot]);
    for (uint32_t column : fetch) out.push_back(b == nullptr ? Cell{} : (*b)[x() + column]);
    return out;
  }
  Tuple Own(const Tuple& p) const {
    Tuple out;
    for (uint32_t slot : keep) out.push_back(p[slot]);
    return out;
  }
  /// nullopt: an error.
  std::optional<std::vector<Tuple>> Expected() const;
};

std::optional<std::vector<Tuple>> Join::Expected() const {
  std::vector<Tuple> out;
  std::vector<bool> build_matched(build.size());
  const bool build_has_null =
      std::any_of(build.begin(), build.end(), [](const Tuple& b) { return b[0].null; });
  const bool pairs = kind == JoinKind::kInner || kind == JoinKind::kLeft || kind == JoinKind::kRight ||
                     kind == JoinKind::kFull || kind == JoinKind::kSingle;
  for (const Tuple& p : probe) {
    size_t matches = 0;
    for (size_t i = 0; i < build.size(); ++i) {
      if (!Matches(p, build[i])) continue;
      ++matches;
      build_matched[i] = true;
      if (pairs) out.push_back(Output(&p, &build[i]));
    }
    const bool unknown = matches == 0 && !build.empty() && (p[0].null || build_has_null);
    switch (kind) {
      case JoinKind::kSingle:
        if (matches > 1) return std::nullopt;
        [[fallthrough]];
      case JoinKind::kLeft:
      case JoinKind::kFull:
        if (matches == 0) out.push_back(Output(&p, nullptr));
        break;
      case JoinKind::kSemi:
        if (matches > 0) out.push_back(Own(p));
        break;
      case JoinKind::kAnti:
        if (matches == 0) out.push_back(Own(p));
        break;
      case JoinKind::kNullAwareAnti:
        if (matches == 0 && !unknown) out.push_back(Own(p));
        break;
      case JoinKind::kMark:
        out.push_back(Own(p));
        out.back().push_back(null_aware && unknown ? Cell{} : Cell::Number(matches > 0));
        break;
      default:
        break;
    }
  }
  if (kind == JoinKind::kRight || kind == JoinKind::kFull) {
    for (size_t i = 0; i < build.size(); ++i) {
      if (!build_matched[i]) out.push_back(Output(nullptr, &build[i]));
    }
  }
  return out;
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
void Check(const Build& build, const Join& join, StepDriver& driver) {
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
  less.children = {Slot(pair_schema, static_cast<uint32_t>(x)),
                   Slot(pair_schema, static_cast<uint32_t>(join.keep.size()))};
  const auto residual = Program::Compile({&less, 1}, pair_schema);
  ASSERT_TRUE(residual.ok()) << residual.status();
  if (join.residual) options.residuals = residual->get();
  auto probe = MakeProbe(build, options);
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

Join RandomJoin(RandomStream& random, std::vector<KeyForm> forms, size_t build_rows, uint64_t distinct) {
  Join join;
  join.kind = kAllKinds[random.Below(std::size(kAllKinds))];
  for (KeyForm form : forms) join.AddKey(Key::Of(form, random));
  join.AddPayload();
  join.ChooseColumns(random);
  const bool one = forms.size() == 1;
  if (join.kind == JoinKind::kNullAwareAnti && !one) join.kind = JoinKind::kAnti;
  join.null_aware = join.kind == JoinKind::kMark && one && random.OneIn(2);
  join.residual = join.kind != JoinKind::kNullAwareAnti && !join.null_aware && random.OneIn(2);
  constexpr size_t kProbeRows[] = {0, 1, 1023, 1024, 1025, 3000};
  uint64_t combinations = 1;
  for (KeyForm form : forms) combinations *= form == KeyForm::kBool ? 2 : distinct;
  const uint64_t most = std::max<uint64_t>(1, kMostPairs * combinations / std::max<uint64_t>(build_rows, 1));
  const uint64_t probe_rows = std::min<uint64_t>(most, kProbeRows[random.Below(std::size(kProbeRows))]);
  for (size_t i = 0; i < probe_rows; ++i) join.probe.push_back(join.RandomTuple(true, distinct, random));
  for (size_t i = 0; i < build_rows; ++i) join.build.push_back(join.RandomTuple(false, distinct, random));
  // Otherwise nothing is certain where a build side has a NULL, and single joins always fail.
  if (join.kind == JoinKind::kNullAwareAnti || join.kind == JoinKind::kMark) {
    if (random.OneIn(2)) std::erase_if(join.build, [](const Tuple& b) { return b[0].null; });
  }
  return join;
}

size_t RandomRows(RandomStream& random) {
  constexpr size_t kRows[] = {0, 1, 5, 200, 1023, 1024, 1025, 2500};
  return kRows[random.Below(std::size(kRows))];
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

/// Some keys are there once, most several times, one perhaps more than a chunk's rows.
uint64_t RandomDistinct(RandomStream& random) {
  constexpr uint64_t kDistinct[] = {1, 4, 40, 250, 250};
  return kDistinct[random.Below(std::size(kDistinct))];
}

std::vector<KeyForm> RandomForms(RandomStream& random) {
  std::vector<KeyForm> forms(random.Below(3) + 1);
  for (KeyForm& form : forms) form = static_cast<KeyForm>(random.Below(5));
  return forms;
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
    Check(*build, join, driver);
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
    Check(*build, join, driver);
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
    Check(*build, join, driver);
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
    Check(*build, join, driver);
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
    Check(*build, sides.join, sides.driver);
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
        Check(*build, sides.join, sides.driver);
        sides.join.kind = JoinKind::kMark;
        for (const bool null_aware : {false, true}) {
          sides.join.null_aware = null_aware;
          Check(*build, sides.join, sides.driver);
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
    return MakeProbe(*build, std::move(options)).status().code() == absl::StatusCode::kInvalidArgument;
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
