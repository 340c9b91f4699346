#include "execution/rows/row_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "execution/rows/row_appender.h"
#include "execution/rows/row_table.h"
#include "tests/execution/tuples.h"
#include "types/sql_error.h"
#include "types/text_bytes.h"

namespace nam::execution {
namespace {

constexpr uint64_t kAttempt = 77;

plan::Expr SlotOf(const plan::Schema& schema, size_t slot) {
  plan::Expr expr;
  expr.op = plan::Op::kColumn;
  expr.type = schema[slot].type;
  expr.column = {0, static_cast<int>(slot)};
  return expr;
}

std::unique_ptr<const Program> SlotsOf(const plan::Schema& schema) {
  std::vector<plan::Expr> outputs;
  for (size_t i = 0; i < schema.size(); ++i) outputs.push_back(SlotOf(schema, i));
  auto program = Program::Compile(outputs, schema);
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

/// A table that is filled through a writer, as sinks do it.
class Filled {
 public:
  Filled(RowLayout layout, const Program& program)
      : table_(*RowTable::Make(std::move(layout), budget_, UINT64_MAX)),
        frame_(program.NewFrame()),
        writer_(table_->layout(), program) {
    NextPage();
  }

  /// Returns false if the frame has the error.
  bool Append(const Chunk& chunk) {
    for (uint32_t done = 0; done < chunk.selection().count;) {
      const uint32_t before = done;
      numbers_.resize(numbers_.size() + chunk.selection().count - done);
      uint32_t* const numbers = numbers_.data() + numbers_.size() - (chunk.selection().count - done);
      if (!writer_.Append(frame_, chunk, chunk.selection(), done, numbers)) return false;
      numbers_.resize(numbers_.size() - (chunk.selection().count - done));
      if (done < chunk.selection().count) {
        const bool takes = done > before || table_->page_rows(page_) > 0;
        EXPECT_TRUE(takes || writer_.next_page_bytes() > table_->layout().page_bytes())
            << "a page without rows takes one that fits it";
        NextPage();
      }
    }
    return true;
  }
  void NextPage() {
    page_ = *table_->NewPage(writer_.next_page_bytes());
    writer_.Open(table_->page(page_), page_ << table_->layout().rows_shift());
  }

  /// Row by row, in the order of the numbers that the writer gave.
  std::vector<Tuple> Rows() const {
    std::vector<Tuple> rows(numbers_.size());
    for (size_t field = 0; field < table_->layout().fields(); ++field) {
      const Column column = table_->ColumnOf(field, numbers_.data());
      for (uint32_t i = 0; i < rows.size(); ++i) rows[i].push_back(CellOf(column, i));
    }
    return rows;
  }
  /// Page by page, by the layout alone.
  std::vector<Tuple> RowsOfPages() const {
    const RowLayout& layout = table_->layout();
    std::vector<Tuple> rows;
    for (uint32_t page = 0; page < table_->pages(); ++page) {
      for (uint32_t place = 0; place < table_->page_rows(page); ++place) {
        const std::byte* row = table_->row(page << layout.rows_shift() | place);
        Tuple& tuple = rows.emplace_back();
        for (size_t i = 0; i < layout.fields(); ++i) {
          if (layout.IsNull(row, i)) {
            tuple.emplace_back();
          } else if (layout.field(i).physical == Physical::kText) {
            tuple.push_back(Cell::Text(std::string(layout.Text(table_->page(page), row, i))));
          } else {
            tuple.push_back(Cell::Number(layout.Number(row, i)));
          }
        }
      }
    }
    return rows;
  }

  RowTable& table() { return *table_; }
  Frame& frame() { return frame_; }
  const std::vector<uint32_t>& numbers() const { return numbers_; }

 private:
  MemoryBudget budget_{uint64_t{1} << 30};
  std::unique_ptr<RowTable> table_;
  Frame frame_;
  RowWriter writer_;
  uint32_t page_ = 0;
  std::vector<uint32_t> numbers_;
};

TEST(RowWriterProperty, RowsAreTheTuplesInTheirOrder) {
  for (const uint64_t seed : TestSeeds(60)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    RandomStream random(seed);
    const plan::Schema schema = RandomSchema(6, random);
    const size_t sizes[] = {0, 1, 1023, 1024, 1025, random.Below(10'000)};
    const auto tuples = RandomTuples(schema, sizes[random.Below(6)], 1 + random.Below(5000), random);
    const auto program = SlotsOf(schema);
    auto layout = RowLayout::Of(schema, RowLayout::kSmallPageBytes << random.Below(3));
    ASSERT_TRUE(layout.ok());
    Filled filled(*layout, *program);
    ChunkMaker maker(schema, random);
    const auto chunk = maker.NewChunk();
    for (size_t done = 0; done < tuples.size();) {
      const size_t count =
          std::min<size_t>(tuples.size() - done, static_cast<size_t>(random.Magnitude(1, kChunkRows)));
      maker.Fill({tuples.data() + done, count}, *chunk);
      ASSERT_TRUE(filled.Append(*chunk)) << filled.frame().error();
      done += count;
    }
    ExpectTuples(filled.Rows(), tuples);
    ExpectTuples(filled.RowsOfPages(), tuples);
    ASSERT_FALSE(HasFailure());
    ASSERT_EQ(filled.table().rows(), tuples.size());
    for (uint32_t page = 0; page < filled.table().pages(); ++page) {
      layout->Seal(filled.table().page(page), kAttempt);
      const auto check = layout->CheckPage({filled.table().page(page), layout->page_bytes()}, kAttempt);
      ASSERT_TRUE(check.ok()) << check;
    }
  }
}

/// Equal tuples have equal bytes, whatever form the chunk's columns had, so keys may be compared as bytes.
TEST(RowWriter, NullsAndUnusedBitsAreZero) {
  const plan::Schema schema = {{Type::Integer(), true, {5, 60'000, true}}, {Type::String(), true, {}}};
  const auto program = SlotsOf(schema);
  Filled filled(*RowLayout::Of(schema, RowLayout::kSmallPageBytes), *program);
  std::memset(filled.table().page(0) + kPageHeaderBytes, 0xff, RowLayout::kSmallPageBytes - kPageHeaderBytes);
  RandomStream random(1);
  ChunkMaker maker(schema, random);
  const auto chunk = maker.NewChunk();
  for (int i = 0; i < 20; ++i) {
    maker.Fill(std::vector<Tuple>(2, Tuple(2)), *chunk);
    ASSERT_TRUE(filled.Append(*chunk));
  }
  for (const uint32_t number : filled.numbers()) {
    const std::byte* row = filled.table().row(number);
    for (uint32_t i = 0; i < 10; ++i) ASSERT_EQ(row[i], std::byte{0});
    ASSERT_EQ(row[10], std::byte{3});
  }
}

TEST(RowWriter, LocalFieldsKeepTheColumnsCodes) {
  const std::vector<std::string_view> entries = {"blue", "green", "red"};
  CodeMeaning colours{
      .type = Type::String(), .width = 2, .null_code = true, .base = -1, .codes = 4, .max = 2};
  colours.dictionary = *storage::Dictionary::Decode(storage::Dictionary::Encode(entries));
  const CodeMeaning years{
      .type = Type::Integer(), .width = 1, .base = 1992, .codes = 7, .min = 1992, .max = 1998};
  const plan::Schema schema = {{Type::String(), true, {}}, {Type::Integer(), true, {1992, 1998, true}}};
  const CodeMeaning* const meanings[] = {&colours, &years};
  const auto program = SlotsOf(schema);
  const RowLayout layout = *RowLayout::Local(schema, meanings, RowLayout::kSmallPageBytes);
  ASSERT_EQ(layout.stride(), 4U);

  const uint16_t colour_codes[] = {0, 3, 1, 2};
  const uint8_t year_codes[] = {6, 0, 3, 3};
  const uint32_t rows[] = {3, kNullRow, 1, 0};
  Chunk chunk(2, 0);
  chunk.SelectAll(4);
  chunk.columns()[0] = {.kind = Column::Kind::kCodes,
                        .width = 2,
                        .physical = Physical::kText,
                        .base = reinterpret_cast<const std::byte*>(colour_codes),
                        .rows = rows,
                        .meaning = &colours};
  chunk.columns()[1] = {.kind = Column::Kind::kCodes,
                        .width = 1,
                        .base = reinterpret_cast<const std::byte*>(year_codes),
                        .rows = rows,
                        .meaning = &years};
  const std::vector<Tuple> expected = {{Cell::Text("green"), Cell::Number(1995)},
                                       {{}, {}},
                                       {Cell::Text("red"), Cell::Number(1992)},
                                       {{}, Cell::Number(1998)}};
  Filled filled(layout, *program);
  ASSERT_TRUE(filled.Append(chunk));
  EXPECT_EQ(filled.Rows(), expected);
  EXPECT_EQ(filled.table().layout().field(0).Stored<uint16_t>(filled.table().row(0)), 2);

  // Rows are copied from one table to the next; the fields' codes are kept, too.
  std::vector<uint32_t> numbers = filled.numbers();
  numbers.push_back(kNullRow);
  Chunk second(2, 0);
  second.SelectAll(5);
  for (size_t i = 0; i < 2; ++i) second.columns()[i] = filled.table().ColumnOf(i, numbers.data());
  Filled next(layout, *program);
  ASSERT_TRUE(next.Append(second));
  std::vector<Tuple> longer = expected;
  longer.push_back({{}, {}});
  EXPECT_EQ(next.Rows(), longer);
}

// --- Texts
// -----------------------------------------------------------------------------------------------------

/// A chunk of one column of texts, which outlive it.
Chunk TextChunk(const std::vector<std::string_view>& texts) {
  Chunk chunk(1, 0);
  chunk.SelectAll(static_cast<uint32_t>(texts.size()));
  chunk.columns()[0] = {
      .width = 16, .physical = Physical::kText, .base = reinterpret_cast<const std::byte*>(texts.data())};
  return chunk;
}
const plan::Schema kTexts = {{Type::String(), false, {}}};
constexpr uint32_t kRoom = RowLayout::kSmallPageBytes - kPageHeaderBytes - 8;

TEST(RowWriterProperty, TextsOfAnyLengthShareOrFillPages) {
  const auto program = SlotsOf(kTexts);
  for (const uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    RandomStream random(seed);
    std::vector<std::string> texts;
    for (uint64_t left = random.Below(400); left > 0; --left) {
      texts.emplace_back(
          static_cast<size_t>(random.OneIn(9) ? kRoom - random.Below(20) : random.Magnitude(1, kRoom) - 1),
          static_cast<char>('a' + random.Below(26)));
    }
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const Chunk chunk = TextChunk(views);
    Filled filled(*RowLayout::Of(kTexts, RowLayout::kSmallPageBytes), *program);
    ASSERT_TRUE(filled.Append(chunk)) << filled.frame().error();
    const std::vector<Tuple> rows = filled.Rows();
    ASSERT_EQ(rows.size(), texts.size());
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i][0], Cell::Text(texts[i]));
  }
}

/// Around the sizes of one page, of two and of many, among short ones.
TEST(RowWriterProperty, TextsThatFitNoPageHaveLongPages) {
  const plan::Schema schema = {{Type::String(), true, {}}, {Type::String(), false, {}}};
  const auto program = SlotsOf(schema);
  constexpr uint32_t kPageBytes = RowLayout::kLeastPageBytes;
  for (const uint64_t seed : TestSeeds(40)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    RandomStream random(seed);
    std::vector<std::string> texts[2];
    for (uint64_t left = 1 + random.Below(200); left > 0; --left) {
      for (std::vector<std::string>& column : texts) {
        const uint64_t around = kPageBytes * (1 + random.Below(4)) - random.Below(80);
        const uint64_t bytes = random.OneIn(3)   ? around
                               : random.OneIn(2) ? random.Below(9)
                                                 : random.Below(40'000);
        column.emplace_back(bytes, static_cast<char>('a' + random.Below(26)));
      }
    }
    const std::vector<std::string_view> views[2] = {{texts[0].begin(), texts[0].end()},
                                                    {texts[1].begin(), texts[1].end()}};
    const auto rows_of_chunk = static_cast<uint32_t>(texts[0].size());
    Chunk chunk(2, 0);
    chunk.SelectAll(rows_of_chunk);
    for (size_t c = 0; c < 2; ++c) chunk.columns()[c] = TextChunk(views[c]).columns()[0];
    Filled filled(*RowLayout::Of(schema, kPageBytes), *program);
    ASSERT_TRUE(filled.Append(chunk)) << filled.frame().error();
    const std::vector<Tuple> rows = filled.Rows();
    ASSERT_EQ(rows.size(), rows_of_chunk);
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i][0], Cell::Text(texts[0][i]));
      ASSERT_EQ(rows[i][1], Cell::Text(texts[1][i]));
    }
    EXPECT_EQ(filled.table().rows(), rows_of_chunk) << "the middle of a long page has no rows";
    EXPECT_EQ(filled.RowsOfPages().size(), rows_of_chunk);
    std::vector<std::span<const std::byte>> pages;
    SealPages(filled.table(), kAttempt, pages);
    for (const std::span<const std::byte> page : pages)
      ASSERT_TRUE(filled.table().layout().CheckPage(page, kAttempt).ok());
  }
}

TEST(RowWriter, ATextOfMoreThanTheLimitIsRefused) {
  const auto program = SlotsOf(kTexts);
  const std::string fits(kTextBytesMax, 'x'), longer(kTextBytesMax + 1, 'y');
  for (const bool behind_others : {false, true}) {
    Filled filled(*RowLayout::Of(kTexts, RowLayout::kSmallPageBytes), *program);
    if (behind_others) {
      const std::vector<std::string_view> short_ones = {"a", "b", fits};
      ASSERT_TRUE(filled.Append(TextChunk(short_ones)));
    }
    const std::vector<std::string_view> views = {"c", longer, "d"};
    EXPECT_FALSE(filled.Append(TextChunk(views)));
    const auto error = SqlErrorOf(filled.frame().error());
    ASSERT_TRUE(error.has_value()) << filled.frame().error();
    EXPECT_EQ(error->sqlstate, "54000");
    EXPECT_EQ(filled.table().rows(), behind_others ? 4U : 1U) << "those before it are written";
  }
}

// --- What cannot be written
// ------------------------------------------------------------------------------------

TEST(RowWriter, ErrorsOfExpressionsAreTheFrames) {
  const plan::Schema schema = {{Type::Integer(), false, {0, 9, true}}};
  plan::Expr quotient;
  quotient.op = plan::Op::kDivide;
  quotient.type = Type::Integer();
  plan::Expr one;
  one.type = Type::Integer();
  one.literal = Value::Integer(1);
  quotient.children = {one, SlotOf(schema, 0)};
  const auto program = Program::Compile(std::span(&quotient, 1), schema);
  ASSERT_TRUE(program.ok());
  Filled filled(*RowLayout::Of({{Type::Integer(), true, {}}}, RowLayout::kSmallPageBytes), **program);
  const int64_t numbers[] = {1, 2, 0};
  Chunk chunk(1, 0);
  chunk.columns()[0] = {.base = reinterpret_cast<const std::byte*>(numbers)};
  chunk.SelectAll(2);
  EXPECT_TRUE(filled.Append(chunk));
  chunk.SelectAll(3);
  EXPECT_FALSE(filled.Append(chunk));
  EXPECT_EQ(SqlErrorOf(filled.frame().error())->sqlstate, sqlstate::kDivisionByZero);
  EXPECT_EQ(filled.table().rows(), 2U);
}

/// The plan's bounds are wrong: no value is cut off silently.
TEST(RowWriter, RefusesWhatThePlanSaysCannotBe) {
  const uint8_t code = 250;
  const int64_t narrow = 1250;
  const __int128 wide = __int128{1} << 100;
  const uint8_t null = 1;
  const CodeMeaning meaning{.type = Type::Integer(), .base = 1000, .codes = 256, .min = 1000, .max = 1255};
  const auto at = [](const auto& value) { return reinterpret_cast<const std::byte*>(&value); };
  const Type integer = Type::Integer(), decimal = Type::Decimal(2);
  const struct {
    plan::Slot slot;
    Column column;
  } cases[] = {
      {{integer, false, {1000, 1249, true}},
       {.kind = Column::Kind::kCodes, .width = 1, .base = at(code), .meaning = &meaning}},
      {{integer, false, {1000, 1249, true}}, {.base = at(narrow)}},
      {{integer, false, {1251, 1300, true}}, {.base = at(narrow)}},
      {{decimal, false, {0, wide - 1, true}}, {.width = 16, .physical = Physical::kInt128, .base = at(wide)}},
      {{integer, false, {0, 2000, true}}, {.base = at(narrow), .nulls = &null}},
  };
  for (const auto& c : cases) {
    const plan::Schema schema = {c.slot};
    const auto program = SlotsOf(schema);
    Filled filled(*RowLayout::Of(schema, RowLayout::kSmallPageBytes), *program);
    Chunk chunk(1, 0);
    chunk.SelectAll(1);
    chunk.columns()[0] = c.column;
    EXPECT_FALSE(filled.Append(chunk));
    EXPECT_TRUE(absl::IsInternal(filled.frame().error())) << filled.frame().error();
    EXPECT_EQ(filled.table().rows(), 0U);
  }
}

/// The same holds for two columns that are copied together: the last of eleven rows has the value.
TEST(RowWriter, RefusesCodesOfPairsThatCannotBe) {
  constexpr uint32_t kRows = 11;
  const CodeMeaning meaning{.type = Type::Integer(), .width = 4, .base = 10, .max = INT32_MAX};
  const plan::Schema schema = {{Type::Integer(), false, {10, 1'000'010, true}},
                               {Type::Integer(), false, {0, 1'000'000, true}}};
  const struct {
    uint32_t codes[2];
    bool fits;
  } cases[] = {
      {{1'000'000, 999'990}, true}, {{1'000'001, 0}, false}, {{0, 999'991}, false}, {{UINT32_MAX, 0}, false}};
  const auto program = SlotsOf(schema);
  for (const auto& c : cases) {
    Filled filled(*RowLayout::Of(schema, RowLayout::kSmallPageBytes), *program);
    ASSERT_EQ(filled.table().layout().stride(), 8U);
    uint32_t codes[2][kRows] = {};
    Chunk chunk(2, 0);
    chunk.SelectAll(kRows);
    for (size_t i = 0; i < 2; ++i) {
      codes[i][kRows - 1] = c.codes[i];
      chunk.columns()[i] = {.kind = Column::Kind::kCodes,
                            .width = 4,
                            .base = reinterpret_cast<const std::byte*>(codes[i]),
                            .meaning = &meaning};
    }
    EXPECT_EQ(filled.Append(chunk), c.fits) << c.codes[0] << " " << c.codes[1];
    EXPECT_EQ(filled.table().rows(), c.fits ? kRows : 0U);
    if (c.fits) {
      EXPECT_EQ(filled.Rows().back(), (Tuple{Cell::Number(1'000'010), Cell::Number(1'000'000)}));
    } else {
      EXPECT_TRUE(absl::IsInternal(filled.frame().error())) << filled.frame().error();
    }
  }
}

}  // namespace
}  // namespace nam::execution
