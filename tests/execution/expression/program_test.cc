#include "execution/expression/program.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/function.h"
#include "storage/dictionary.h"
#include "tests/execution/expression/random_columns.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::Expr;
using plan::Op;

Expr OperationExpr(Op op, Type type, std::vector<Expr> children) {
  Expr e;
  e.op = op;
  e.type = type;
  e.children = std::move(children);
  return e;
}
Expr Slot(int slot, Type type) {
  Expr e;
  e.op = Op::kColumn;
  e.type = type;
  e.column = {0, slot};
  return e;
}
Expr Literal(Value value) {
  Expr e;
  e.type = value.type;
  e.literal = std::move(value);
  return e;
}
Expr Number(int64_t n) {
  return Literal(Value::Integer(n));
}
Expr Text(std::string text) {
  return Literal(Value::String(std::move(text)));
}
Expr Truth(Op op, std::vector<Expr> children) {
  return OperationExpr(op, Type::Bool(), std::move(children));
}

plan::Slot Integers(int64_t low, int64_t high) {
  return {.type = Type::Integer(), .nullable = true, .bounds = {low, high, true}};
}
plan::Slot Texts() {
  return {.type = Type::String(), .nullable = true};
}

std::unique_ptr<const Program> Compiled(std::vector<Expr> outputs, const plan::Schema& input) {
  auto program = Program::Compile(outputs, input);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : nullptr;
}

Column OfNumbers(const std::vector<int64_t>& values) {
  Column column;
  column.base = reinterpret_cast<const std::byte*>(values.data());
  return column;
}

/// A dictionary and the codes of one byte of a column over it.
class TextColumn {
 public:
  TextColumn(uint64_t id, const std::vector<std::string_view>& entries, std::vector<uint8_t> codes,
             bool null_code = false)
      : codes_(std::move(codes)) {
    meaning_.type = Type::String();
    meaning_.null_code = null_code;
    meaning_.base = -int64_t{null_code};
    meaning_.codes = entries.size() + null_code;
    meaning_.max = static_cast<int64_t>(entries.size()) - 1;
    meaning_.dictionary = *storage::Dictionary::Decode(storage::Dictionary::Encode(entries));
    meaning_.dictionary_id = id;
  }
  Column column() const {
    return {.kind = Column::Kind::kCodes,
            .width = 1,
            .physical = Physical::kText,
            .base = reinterpret_cast<const std::byte*>(codes_.data()),
            .meaning = &meaning_};
  }

 private:
  CodeMeaning meaning_;
  std::vector<uint8_t> codes_;
};

std::vector<int> TruthsOf(const Vector* vector, uint32_t rows) {
  if (vector == nullptr) return {};
  return {vector->truth, vector->truth + rows};
}

TEST(Program, AnErrorArisesOnlyFromSelectedPositions) {
  const std::vector<int64_t> x = {1, 0, 5};
  Chunk chunk(1, 0);
  chunk.SelectAll(3);
  chunk.columns()[0] = OfNumbers(x);
  const auto program =
      Compiled({OperationExpr(Op::kDivide, Type::Integer(), {Number(10), Slot(0, Type::Integer())})},
               {Integers(0, 9)});
  const std::vector<uint32_t> positions = {0, 2};
  Frame frame = program->NewFrame();
  const Vector* vector = program->Evaluate(0, frame, chunk, {positions.data(), 2});
  ASSERT_NE(vector, nullptr) << frame.error();
  EXPECT_EQ(vector->narrow[0], 10);
  EXPECT_EQ(vector->narrow[2], 2);
  EXPECT_EQ(program->Evaluate(0, frame, chunk, chunk.selection()), nullptr);
  EXPECT_EQ(SqlErrorOf(frame.error())->sqlstate, sqlstate::kDivisionByZero);
}

TEST(Program, OnlyTheBranchThatDecidesMayFail) {
  const std::vector<int64_t> x = {1, 0, 5};
  Chunk chunk(1, 0);
  chunk.SelectAll(3);
  chunk.columns()[0] = OfNumbers(x);
  const Expr slot = Slot(0, Type::Integer());
  const Expr quotient = OperationExpr(Op::kDivide, Type::Integer(), {Number(10), slot});
  const Expr is_zero = Truth(Op::kEqual, {slot, Number(0)});
  const Expr large = Truth(Op::kGreater, {quotient, Number(2)});
  const auto program =
      Compiled({Truth(Op::kAnd, {Truth(Op::kNot, {is_zero}), large}), Truth(Op::kOr, {is_zero, large}),
                OperationExpr(Op::kCase, Type::Integer(), {is_zero, Number(-1), quotient})},
               {Integers(0, 9)});
  Frame frame = program->NewFrame();
  EXPECT_EQ(TruthsOf(program->Evaluate(0, frame, chunk, chunk.selection()), 3), (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(TruthsOf(program->Evaluate(1, frame, chunk, chunk.selection()), 3), (std::vector<int>{1, 1, 0}));
  const Vector* vector = program->Evaluate(2, frame, chunk, chunk.selection());
  ASSERT_NE(vector, nullptr) << frame.error();
  EXPECT_EQ(vector->number(0), 10);
  EXPECT_EQ(vector->number(1), -1);
  EXPECT_EQ(vector->number(2), 2);
}

TEST(Program, AnEntrysErrorIsThatOfItsRows) {
  const TextColumn texts(7, {"12", "3", "x"}, {0, 1, 2, 0});
  Chunk chunk(1, 0);
  chunk.SelectAll(4);
  chunk.columns()[0] = texts.column();
  const Expr slot = Slot(0, Type::String());
  const Expr cast = OperationExpr(Op::kCast, Type::Integer(), {slot});
  const auto program = Compiled(
      {cast,
       OperationExpr(Op::kCase, Type::Integer(), {Truth(Op::kEqual, {slot, Text("x")}), Number(-1), cast})},
      {Texts()});
  EXPECT_GT(program->by_row_nodes(), 0u);
  Frame frame = program->NewFrame();
  const std::vector<uint32_t> positions = {0, 1, 3};
  for (int i = 0; i < 2; ++i) {  // the second time from the memo
    const Vector* vector = program->Evaluate(0, frame, chunk, {positions.data(), 3});
    ASSERT_NE(vector, nullptr) << frame.error();
    EXPECT_EQ(vector->number(0), 12);
    EXPECT_EQ(vector->number(1), 3);
    EXPECT_EQ(vector->number(3), 12);
  }
  const Vector* guarded = program->Evaluate(1, frame, chunk, chunk.selection());
  ASSERT_NE(guarded, nullptr) << frame.error();
  EXPECT_EQ(guarded->number(2), -1);
  EXPECT_EQ(program->Evaluate(0, frame, chunk, chunk.selection()), nullptr);
  EXPECT_EQ(SqlErrorOf(frame.error())->sqlstate, sqlstate::kBadText);
}

TEST(Program, EachDictionaryHasItsMemo) {
  const TextColumn first(1, {"apple", "bee"}, {0, 1, 0}), second(2, {"bear", "cat"}, {0, 1, 0});
  const TextColumn with_nulls(2, {"bear", "cat"}, {0, 1, 2}, /*null_code=*/true);
  Expr like = Truth(Op::kLike, {Slot(0, Type::String())});
  like.literal = Value::String("b%");
  const auto program = Compiled({like}, {Texts()});
  Frame frame = program->NewFrame();
  Chunk chunk(1, 0);
  chunk.SelectAll(3);
  for (int i = 0; i < 2; ++i) {
    chunk.columns()[0] = first.column();
    EXPECT_EQ(TruthsOf(program->Evaluate(0, frame, chunk, chunk.selection()), 3),
              (std::vector<int>{0, 1, 0}));
    chunk.columns()[0] = second.column();
    EXPECT_EQ(TruthsOf(program->Evaluate(0, frame, chunk, chunk.selection()), 3),
              (std::vector<int>{1, 0, 1}));
    // The same dictionary, whose codes mean something else.
    chunk.columns()[0] = with_nulls.column();
    EXPECT_EQ(TruthsOf(program->Evaluate(0, frame, chunk, chunk.selection()), 3),
              (std::vector<int>{kUnknown, 1, 0}));
  }
}

TEST(Program, ThreadsShareAMemo) {
  constexpr int kThreads = 4, kEntries = 200;
  std::vector<std::string> texts;
  for (int i = 0; i < kEntries; ++i) texts.push_back(absl::StrCat(1000 + i, " and more than fits in place"));
  std::vector<uint8_t> codes;
  for (uint32_t i = 0; i < kChunkRows; ++i) codes.push_back(static_cast<uint8_t>(i * 7 % kEntries));
  const TextColumn column(3, {texts.begin(), texts.end()}, codes);
  Expr like = Truth(Op::kLike, {Slot(0, Type::String())});
  like.literal = Value::String("1_1%");
  // The reference makes the text by way of a boolean, so that threads keep texts.
  const Expr text = OperationExpr(Op::kCast, Type::String(), {like});
  const auto program = Compiled({like, text}, {Texts()});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Frame frame = program->NewFrame();
      Chunk chunk(1, 0);
      chunk.SelectAll(kChunkRows);
      chunk.columns()[0] = column.column();
      for (int round = 0; round < 50; ++round) {
        const Vector* truths = program->Evaluate(0, frame, chunk, chunk.selection());
        const Vector* names = program->Evaluate(1, frame, chunk, chunk.selection());
        for (uint32_t p = 0; p < kChunkRows; ++p) {
          const bool expected = texts[codes[p]][2] == '1';
          ASSERT_EQ(truths->truth[p], expected);
          ASSERT_EQ(names->text[p], expected ? "true" : "false");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Memos hold no more than that however little memory there is; they give back what they have taken.
TEST(Program, MemosHoldNoMoreThanTheirShare) {
  constexpr int kEntries = 200;
  // A memo has a state and a view for each code, and one more for rows that do not exist. Texts come in
  // blocks of 16 KiB.
  constexpr uint64_t kPlaces = (kEntries + 1) * (1 + sizeof(std::string_view)), kTexts = 16 << 10;
  std::vector<std::string> texts;
  for (int i = 0; i < kEntries; ++i) texts.push_back(std::to_string(1000 + i));
  std::vector<uint8_t> codes;
  for (uint32_t i = 0; i < kChunkRows; ++i) codes.push_back(static_cast<uint8_t>(i * 7 % kEntries));
  const TextColumn column(3, {texts.begin(), texts.end()}, codes);
  Expr like = Truth(Op::kLike, {Slot(0, Type::String())});
  like.literal = Value::String("1_1%");
  const Expr output = OperationExpr(Op::kCast, Type::String(), {like});
  Chunk chunk(1, 0);
  chunk.SelectAll(kChunkRows);
  chunk.columns()[0] = column.column();
  // A quarter of the budget is for memos.
  for (const auto& [share_bytes, held] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, 0},
                                                  {kPlaces - 1, 0},
                                                  {kPlaces, kPlaces},
                                                  {kPlaces + kTexts - 1, kPlaces},
                                                  {kPlaces + kTexts, kPlaces + kTexts},
                                                  {1 << 20, kPlaces + kTexts}}) {
    SCOPED_TRACE(share_bytes);
    MemoryBudget budget(4 * share_bytes);
    MemoShare share(budget);
    {
      auto program = Program::Compile({&output, 1}, {Texts()}, &share);
      ASSERT_TRUE(program.ok()) << program.status();
      Frame frame = (*program)->NewFrame();
      for (int round = 0; round < 3; ++round) {
        const Vector* const names = (*program)->Evaluate(0, frame, chunk, chunk.selection());
        ASSERT_NE(names, nullptr) << frame.error();
        for (uint32_t p = 0; p < kChunkRows; ++p)
          ASSERT_EQ(names->text[p], texts[codes[p]][2] == '1' ? "true" : "false");
        EXPECT_EQ(budget.used(), held);
      }
    }
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_EQ(share.used(), 0u);
  }
  // Memory that operators hold is not available to memos.
  MemoryBudget budget(1 << 20);
  MemoShare share(budget);
  ASSERT_TRUE(budget.Reserve(budget.bytes() - 1));
  EXPECT_FALSE(share.Reserve(2));
  EXPECT_TRUE(share.Reserve(1));
  share.Release(1);
  budget.Release(budget.bytes() - 1);
}

/// The texts of one chunk are in memory at once, and are freed with the frame.
TEST(Program, TextsThatAreComputedAreOfTheBudget) {
  constexpr uint64_t kTextBytes = 1'000, kAllBytes = kTextBytes * kChunkRows;
  const std::vector<int64_t> lengths(kChunkRows, kTextBytes), halves(kChunkRows, kTextBytes / 2);
  const Type number = Type::Integer();
  Expr repeat = OperationExpr(Op::kFunction, Type::String(), {Text("x"), Number(0)});
  repeat.index = static_cast<int>(plan::Function::kRepeat);
  // The expression is over two slots, so that no memo has its texts.
  repeat.children[1] = OperationExpr(Op::kAdd, number, {Slot(0, number), Slot(1, number)});
  const std::vector<int64_t> none(kChunkRows, 0);
  Chunk chunk(2, 0);
  chunk.SelectAll(kChunkRows);
  chunk.columns()[0] = OfNumbers(lengths);
  chunk.columns()[1] = OfNumbers(none);
  for (const uint64_t bytes : {kAllBytes / 2, 2 * kAllBytes}) {
    SCOPED_TRACE(bytes);
    MemoryBudget budget(bytes);
    MemoShare share(budget);
    auto program = Program::Compile({&repeat, 1}, {Integers(0, 2'000), Integers(0, 2'000)}, &share);
    ASSERT_TRUE(program.ok()) << program.status();
    {
      Frame frame = (*program)->NewFrame();
      chunk.columns()[0] = OfNumbers(lengths);
      const Vector* const texts = (*program)->Evaluate(0, frame, chunk, chunk.selection());
      ASSERT_EQ(texts != nullptr, bytes > kAllBytes) << frame.error();
      if (texts == nullptr) {
        EXPECT_EQ(SqlErrorOf(frame.error())->sqlstate, "53200") << frame.error();
      } else {
        EXPECT_GE(budget.used(), kAllBytes - (64 << 10));
        // Shorter ones take their place.
        chunk.columns()[0] = OfNumbers(halves);
        const uint64_t used = budget.used();
        for (int round = 0; round < 3; ++round)
          ASSERT_NE((*program)->Evaluate(0, frame, chunk, chunk.selection()), nullptr) << frame.error();
        EXPECT_EQ(budget.used(), used);
      }
      EXPECT_GT(budget.used(), 0u);
    }
    EXPECT_EQ(budget.used(), 0u);
  }
}

/// Numbers of characters, in a loop over vectors.
TEST(Program, PartsOfTextsCountCharacters) {
  const TextColumn texts(1,
                         {"", "a",
                          "b\xc3\xa9\xe2\x82\xac"
                          "d"},
                         {0, 1, 2, 3}, /*null_code=*/true);
  const auto call = [](plan::Function function, Type type, std::vector<Expr> operands) {
    Expr e = OperationExpr(Op::kFunction, type, std::move(operands));
    e.index = static_cast<int>(function);
    return e;
  };
  const Expr text = Slot(0, Type::String());
  using plan::Function;
  const auto program = Compiled({call(Function::kLength, Type::Integer(), {text}),
                                 call(Function::kSubstring, Type::String(), {text, Number(2), Number(2)}),
                                 call(Function::kSubstring, Type::String(), {text, Number(-1), Number(3)}),
                                 call(Function::kSubstring, Type::String(), {text, Number(3)}),
                                 call(Function::kLeft, Type::String(), {text, Number(2)})},
                                {Texts()});
  EXPECT_EQ(program->by_row_nodes(), 0u);
  Frame frame = program->NewFrame();
  Chunk chunk(1, 0);
  chunk.SelectAll(4);
  chunk.columns()[0] = texts.column();
  const Vector* const lengths = program->Evaluate(0, frame, chunk, chunk.selection());
  ASSERT_NE(lengths, nullptr);
  EXPECT_TRUE(lengths->null(0));
  EXPECT_EQ(std::vector<int64_t>(lengths->narrow + 1, lengths->narrow + 4), (std::vector<int64_t>{0, 1, 4}));
  const std::vector<std::vector<std::string>> parts = {{"", "", "\xc3\xa9\xe2\x82\xac"},
                                                       {"", "a", "b"},
                                                       {"", "",
                                                        "\xe2\x82\xac"
                                                        "d"},
                                                       {"", "a", "b\xc3\xa9"}};
  for (uint32_t p = 0; p < parts.size(); ++p) {
    const Vector* const part = program->Evaluate(p + 1, frame, chunk, chunk.selection());
    ASSERT_NE(part, nullptr);
    EXPECT_TRUE(part->null(0));
    EXPECT_EQ(std::vector<std::string>(part->text + 1, part->text + 4), parts[p]) << p;
  }
}

TEST(Program, ColumnsCompareAsTextsWhateverTheirDictionaries) {
  const TextColumn one(1, {"a", "b", "c"}, {0, 1, 2, 1}), same(1, {"a", "b", "c"}, {0, 2, 1, 0});
  const TextColumn shifted(1, {"a", "b", "c"}, {1, 3, 2, 0}, /*null_code=*/true);
  const TextColumn other(2, {"A", "a", "b", "c"}, {1, 3, 2, 1});
  const Expr x = Slot(0, Type::String()), y = Slot(1, Type::String());
  const auto program = Compiled({Truth(Op::kEqual, {x, y}), Truth(Op::kLess, {x, y})}, {Texts(), Texts()});
  Frame frame = program->NewFrame();
  Chunk chunk(2, 0);
  chunk.SelectAll(4);
  chunk.columns()[0] = one.column();
  for (const TextColumn* second : {&same, &shifted, &other}) {
    const int last_equal = second == &shifted ? kUnknown : 0;
    chunk.columns()[1] = second->column();
    EXPECT_EQ(TruthsOf(program->Evaluate(0, frame, chunk, chunk.selection()), 4),
              (std::vector<int>{1, 0, 0, last_equal}));
    EXPECT_EQ(TruthsOf(program->Evaluate(1, frame, chunk, chunk.selection()), 4),
              (std::vector<int>{0, 1, 0, last_equal}));
  }
}

TEST(Program, ConditionsAreEvaluatedWhereThoseBeforeHold) {
  std::vector<int64_t> x;
  for (int64_t i = 0; i < kChunkRows; ++i) x.push_back(i % 4);
  Chunk chunk(1, 0);
  chunk.SelectAll(kChunkRows);
  chunk.columns()[0] = OfNumbers(x);
  const Expr slot = Slot(0, Type::Integer());
  const auto program = Compiled(
      {Truth(Op::kNotEqual, {slot, Number(0)}),
       Truth(Op::kLess, {OperationExpr(Op::kDivide, Type::Integer(), {Number(6), slot}), Number(6)})},
      {Integers(0, 3)});
  Frame frame = program->NewFrame();
  uint32_t kept[kChunkRows];
  const auto all = SelectWhere(*program, frame, chunk, chunk.selection(), kept);
  ASSERT_TRUE(all.has_value()) << frame.error();
  ASSERT_EQ(*all, kChunkRows / 2);
  for (uint32_t i = 0; i < *all; ++i) EXPECT_EQ(kept[i], i / 2 * 4 + 2 + i % 2);
  // In place, of some.
  for (uint32_t i = 0; i < 100; ++i) kept[i] = i + 1;
  const auto some = SelectWhere(*program, frame, chunk, {kept, 100}, kept);
  ASSERT_EQ(some, 50u);
  for (uint32_t i = 0; i < *some; ++i) EXPECT_EQ(kept[i], i / 2 * 4 + 2 + i % 2);
}

TEST(Program, SaysWhatItsOutputsAre) {
  const Expr x = Slot(0, Type::Integer()), y = Slot(1, Type::Integer());
  const auto program =
      Compiled({y, OperationExpr(Op::kMultiply, Type::Integer(), {x, y}),
                OperationExpr(Op::kMultiply, Type::Integer(), {y, y}), Truth(Op::kLess, {x, y})},
               {Integers(-3, 5), Integers(0, INT64_MAX / 5)});
  EXPECT_EQ(program->outputs(), 4u);
  EXPECT_EQ(program->slot_of(0), 1u);
  EXPECT_EQ(program->slot_of(1), std::nullopt);
  EXPECT_EQ(program->physical(1), Physical::kInt64);
  EXPECT_TRUE(program->bounds(1).low == __int128{-3} * (INT64_MAX / 5));
  EXPECT_EQ(program->physical(2), Physical::kInt128) << "its results may need more than 64 bits";
  EXPECT_EQ(program->physical(3), Physical::kTruth);
  EXPECT_EQ(program->by_row_nodes(), 0u);
}

TEST(Program, RefusesWhatTheInputHasNot) {
  const plan::Schema input = {Integers(0, 1)};
  const auto refused = [&](Expr e) { return !Program::Compile({&e, 1}, input).ok(); };
  EXPECT_TRUE(refused(Slot(1, Type::Integer())));
  EXPECT_TRUE(refused(Slot(-1, Type::Integer())));
  EXPECT_TRUE(refused(Slot(0, Type::String())));
  EXPECT_TRUE(refused(Truth(Op::kIsNull, {Slot(7, Type::Integer())})));
  EXPECT_FALSE(refused(Slot(0, Type::Integer())));
}

TEST(Program, DeepExpressionsShareTheirArrays) {
  const std::vector<int64_t> x(kChunkRows, 3);
  Chunk chunk(1, 0);
  chunk.SelectAll(kChunkRows);
  chunk.columns()[0] = OfNumbers(x);
  Expr sum = Slot(0, Type::Integer());
  for (int i = 0; i < 1000; ++i)
    sum = OperationExpr(Op::kAdd, Type::Integer(),
                        {std::move(sum), OperationExpr(Op::kMultiply, Type::Integer(),
                                                       {Slot(0, Type::Integer()), Number(i % 2)})});
  const auto program = Compiled({sum, sum}, {Integers(0, 9)});
  Frame frame = program->NewFrame();
  const Vector* first = program->Evaluate(0, frame, chunk, chunk.selection());
  const Vector* second = program->Evaluate(1, frame, chunk, chunk.selection());
  for (const uint32_t p : {0u, kChunkRows - 1}) {
    EXPECT_EQ(first->narrow[p], 3 + 3 * 500);
    EXPECT_EQ(second->narrow[p], 3 + 3 * 500) << "outputs do not share theirs";
  }
  EXPECT_NE(first->narrow, second->narrow);
}

}  // namespace
}  // namespace nam::execution
