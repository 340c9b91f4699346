#include "execution/rows/row_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "types/date.h"
#include "types/value.h"

namespace nam::execution {
namespace {

constexpr uint32_t kPageBytes = RowLayout::kSmallPageBytes;
constexpr uint64_t kSealedAttempt = 0x1234567890;

plan::Slot Integers(__int128 low, __int128 high, bool nullable = false) {
  return {Type::Integer(), nullable, {low, high, true}};
}
plan::Slot Texts(bool nullable = false) {
  return {Type::String(), nullable, {}};
}

RowLayout Of(const plan::Schema& schema, uint32_t page_bytes = kPageBytes) {
  auto layout = RowLayout::Of(schema, page_bytes);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return *std::move(layout);
}

TEST(RowLayout, ATupleOfTwoFourByteNumbersTakesEightBytes) {
  const RowLayout layout = Of({Integers(0, 1 << 30), Integers(-5, 1 << 30)}, RowLayout::kMostPageBytes);
  EXPECT_EQ(layout.stride(), 8U);
  EXPECT_EQ(layout.rows_max(), 8188U);
  EXPECT_EQ(layout.rows_shift(), 13U);
  EXPECT_EQ(layout.null_bytes(), 0U);
}

TEST(RowLayout, NumbersTakeTheBytesThatTheirBoundsNeed) {
  const __int128 digits = PowerOfTen(kMaxDecimalDigits) - 1;
  const struct {
    plan::Slot slot;
    uint8_t width;
    int64_t base;
  } cases[] = {
      {Integers(7, 7), 1, 7},
      {Integers(-100, 155), 1, -100},
      {Integers(-100, 156), 2, -100},
      {Integers(0, 65'535), 2, 0},
      {Integers(0, 65'536), 4, 0},
      {Integers(10, 10 + __int128{UINT32_MAX}), 4, 10},
      {Integers(10, 11 + __int128{UINT32_MAX}), 8, 10},
      {Integers(INT64_MIN, INT64_MAX), 8, INT64_MIN},
      {Integers(0, __int128{INT64_MAX} + 1), 16, 0},
      {{Type::Integer(), false, {}}, 16, 0},
      {{Type::Decimal(2), false, {-5, 100, true}}, 1, -5},
      {{Type::Decimal(2), false, {-digits, digits, true}}, 16, 0},
      {{Type::Bool(), false, {}}, 1, 0},
      {{Type::Date(), false, {}}, 4, kLeastDay},
      {{Type::Date(), false, {8035, 8290, true}}, 1, 8035},
      {{Type::Timestamp(), false, {}}, 8, kLeastDay * kMicrosecondsPerDay},
      {Integers(1, 0), 1, 0},  // no numbers at all
      {{Type::Null(), true, {}}, 1, 0},
      {Texts(), 8, 0},
      {{Type::Double(), false, {}}, 8, INT64_MIN},
      {{Type::Real(), false, {}}, 8, INT64_MIN},
      {{Type::Interval(), false, {}}, 16, 0},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(TypeName(c.slot.type) + " from " + Int128ToString(c.slot.bounds.low) + " to " +
                 Int128ToString(c.slot.bounds.high));
    const RowLayout layout = Of({c.slot});
    EXPECT_EQ(layout.field(0).width, c.width);
    EXPECT_EQ(layout.field(0).base, c.base);
  }
}

TEST(RowLayout, FieldsLieByFallingWidthAndThenTheirValidity) {
  const RowLayout layout =
      Of({Integers(0, 9, true), Texts(true), Integers(0, 9), {Type::Integer(), true, {}}, Integers(0, 1000)});
  EXPECT_EQ(layout.field(3).offset, 0);
  EXPECT_EQ(layout.field(1).offset, 16);
  EXPECT_EQ(layout.field(4).offset, 24);
  EXPECT_EQ(layout.field(0).offset, 26);
  EXPECT_EQ(layout.field(2).offset, 27);
  EXPECT_EQ(layout.nulls_offset(), 28U);
  EXPECT_EQ(layout.stride(), 29U);
  EXPECT_EQ(layout.field(0).null_mask, 1);
  EXPECT_EQ(layout.field(1).null_mask, 2);
  EXPECT_EQ(layout.field(3).null_mask, 4);
  EXPECT_FALSE(layout.field(2).nullable());
}

TEST(RowLayout, ValidityTakesAByteForEightFields) {
  for (const uint32_t columns : {7U, 8U, 9U, 16U, 17U}) {
    const RowLayout layout = Of(plan::Schema(columns, Integers(0, 9, true)));
    EXPECT_EQ(layout.stride(), columns + (columns + 7) / 8);
    EXPECT_EQ(layout.field(columns - 1).null_byte, columns + (columns - 1) / 8);
    EXPECT_EQ(layout.field(columns - 1).null_mask, 1 << (columns - 1) % 8);
  }
}

TEST(RowLayout, RowsWithoutColumnsAreCounted) {
  const RowLayout layout = Of({});
  EXPECT_EQ(layout.stride(), 1U);
  EXPECT_EQ(layout.rows_max(), kPageBytes - kPageHeaderBytes);
}

TEST(RowLayout, RefusesRowsOfMoreThanAQuarterOfAPage) {
  const plan::Slot wide = {Type::Integer(), false, {}};
  EXPECT_TRUE(RowLayout::Of(plan::Schema(kPageBytes / 4 / 16 - 4, wide), kPageBytes).ok());
  const auto refused = RowLayout::Of(plan::Schema(kPageBytes / 4 / 16, wide), kPageBytes);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  // There are so many columns that offsets would not fit 16 bits either.
  EXPECT_FALSE(RowLayout::Of(plan::Schema(100'000, wide), RowLayout::kMostPageBytes).ok());
}

TEST(RowLayout, NoRowHasTheNumberOfTheNullRow) {
  for (const uint32_t page_bytes : {16U << 10, 32U << 10, 64U << 10}) {
    for (uint32_t columns = 0; columns < 600; ++columns) {
      const RowLayout layout = Of(plan::Schema(columns, Integers(0, 9)), page_bytes);
      const uint64_t last = (layout.pages_max() - 1) << layout.rows_shift() | (layout.rows_max() - 1);
      EXPECT_LT(last, kNullRow);
      EXPECT_LE(layout.rows_max(), 1U << layout.rows_shift());
      EXPECT_LE(kPageHeaderBytes + layout.rows_max() * layout.stride(), page_bytes);
    }
  }
}

TEST(RowLayout, OfOtherPlansHaveOtherDigests) {
  const plan::Schema schema = {Integers(0, 100), Texts()};
  const uint32_t digest = Of(schema).digest();
  EXPECT_EQ(Of(schema).digest(), digest);
  EXPECT_NE(Of(schema, 2 * kPageBytes).digest(), digest);
  const auto differs = [&](const std::function<void(plan::Schema&)>& edit) {
    plan::Schema other = schema;
    edit(other);
    return Of(other).digest() != digest;
  };
  EXPECT_TRUE(differs([](plan::Schema& s) { s[0].bounds.low = 1; }));
  EXPECT_TRUE(differs([](plan::Schema& s) { s[0].bounds.high = 101; }))
      << "a value that the other may not have";
  EXPECT_TRUE(differs([](plan::Schema& s) { s[0].nullable = true; }));
  EXPECT_TRUE(differs([](plan::Schema& s) { s[0].type = Type::Decimal(2); }));
  EXPECT_TRUE(differs([](plan::Schema& s) { s[1].type.blank_padded = true; }));
  EXPECT_TRUE(differs([](plan::Schema& s) { std::swap(s[0], s[1]); }));
  EXPECT_TRUE(differs([](plan::Schema& s) { s.pop_back(); }));
}

TEST(RowLayout, LocalFieldsKeepCodesInTheirWidth) {
  const std::vector<std::string_view> entries = {"a", "b"};
  CodeMeaning texts{.type = Type::String(), .width = 2, .codes = 2, .max = 1};
  texts.dictionary = *storage::Dictionary::Decode(storage::Dictionary::Encode(entries));
  const CodeMeaning* const meanings[] = {nullptr, &texts};
  const auto layout = RowLayout::Local({Integers(0, 9), Texts(true)}, meanings, kPageBytes);
  ASSERT_TRUE(layout.ok());
  EXPECT_TRUE(layout->local());
  EXPECT_EQ(layout->stride(), 4U);
  EXPECT_EQ(layout->field(1).meaning, &texts);
  const std::byte row[] = {std::byte{1}, std::byte{0}, std::byte{5}, std::byte{0}};
  EXPECT_EQ(layout->Text(nullptr, row, 1), "b");
  EXPECT_TRUE(layout->Number(row, 0) == 5);
}

// --- Pages from elsewhere
// --------------------------------------------------------------------------------------

/// A page of two rows of (integer 0 … 100, text, wide integer), all of which may be NULL.
class PageCheck : public testing::Test {
 protected:
  void SetUp() override {
    layout_.Clear(page_.get());
    std::memcpy(page_.get() + kPageBytes - 5, "hello", 5);
    header().text_begin = kPageBytes - 5;
    header().rows = 2;
    for (size_t i = 0; i < 2; ++i) std::memset(row(i), 0, layout_.stride());
    Put(0, 0, uint8_t{100});
    Put(0, 1, uint32_t{kPageBytes - 5});
    Put(0, 1, uint32_t{5}, 4);
    Put(0, 2, PowerOfTen(30));
    row(1)[layout_.nulls_offset()] = std::byte{7};
    layout_.Seal(page_.get(), kSealedAttempt);
  }

  PageHeader& header() { return *reinterpret_cast<PageHeader*>(page_.get()); }
  std::byte* row(size_t i) { return page_.get() + kPageHeaderBytes + i * layout_.stride(); }
  template <typename T>
  void Put(size_t in, size_t field, T value, size_t at = 0) {
    std::memcpy(row(in) + layout_.field(field).offset + at, &value, sizeof(value));
  }
  absl::Status Check() { return layout_.CheckPage({page_.get(), kPageBytes}, kSealedAttempt); }
  /// Whether the page is refused although its sum is right.
  bool Refuses() {
    layout_.Seal(page_.get(), kSealedAttempt);
    return absl::IsDataLoss(Check());
  }

  const plan::Schema schema_ = {Integers(0, 100, true), Texts(true), {Type::Integer(), true, {}}};
  const RowLayout layout_ = Of(schema_);
  const std::unique_ptr<std::byte[]> page_ = std::make_unique<std::byte[]>(kPageBytes);
};

TEST_F(PageCheck, TakesWhatWasWrittenAndSealed) {
  EXPECT_TRUE(Check().ok()) << Check();
  EXPECT_EQ(layout_.Text(page_.get(), row(0), 1), "hello");
  EXPECT_TRUE(layout_.Number(row(0), 2) == PowerOfTen(30));
  EXPECT_TRUE(layout_.IsNull(row(1), 0) && layout_.IsNull(row(1), 1) && layout_.IsNull(row(1), 2));
}

TEST_F(PageCheck, LooksAtNothingBetweenRowsAndTexts) {
  page_[2000] = std::byte{1};
  EXPECT_TRUE(Check().ok());
}

TEST_F(PageCheck, RefusesPagesOfOthers) {
  EXPECT_TRUE(absl::IsDataLoss(layout_.CheckPage({page_.get(), kPageBytes}, kSealedAttempt + 1)));
  plan::Schema other = schema_;
  other[0].bounds.high = 200;
  EXPECT_TRUE(absl::IsDataLoss(Of(other).CheckPage({page_.get(), kPageBytes}, kSealedAttempt)));
  for (const size_t size : {size_t{0}, size_t{31}, size_t{kPageBytes - 1}, size_t{kPageBytes + 1}}) {
    const std::vector<std::byte> page(size);
    EXPECT_TRUE(absl::IsDataLoss(layout_.CheckPage(page, kSealedAttempt)));
  }
}

TEST_F(PageCheck, RefusesEveryChangedByte) {
  const auto changes = [&](size_t at) {
    page_[at] ^= std::byte{1};
    const bool refused = absl::IsDataLoss(Check());
    page_[at] ^= std::byte{1};
    return refused;
  };
  for (size_t at = 0; at < kPageHeaderBytes + 2 * layout_.stride(); ++at) EXPECT_TRUE(changes(at)) << at;
  for (size_t at = kPageBytes - 5; at < kPageBytes; ++at) EXPECT_TRUE(changes(at)) << at;
}

TEST_F(PageCheck, RefusesCountsBesideThePage) {
  const PageHeader good = header();
  // The sum must not cover bytes that do not exist: the header is checked before it.
  for (const uint32_t rows : {layout_.rows_max() + 1, layout_.rows_max(), UINT32_MAX}) {
    header().rows = rows;
    EXPECT_TRUE(absl::IsDataLoss(Check())) << rows;
    header() = good;
  }
  for (const uint32_t begin : {0U, kPageBytes + 1, UINT32_MAX}) {
    header().text_begin = begin;
    EXPECT_TRUE(absl::IsDataLoss(Check())) << begin;
    header() = good;
  }
  const uint32_t end = kPageHeaderBytes + 2 * layout_.stride();
  header().text_begin = end - 1;
  EXPECT_TRUE(Refuses()) << "texts over the last row";
  header().text_begin = end;
  EXPECT_FALSE(Refuses());
  header() = good;
  header().bytes = 2 * kPageBytes;
  EXPECT_TRUE(absl::IsDataLoss(Check()));
}

TEST_F(PageCheck, RefusesTextsBesideTheText) {
  const uint32_t end = kPageBytes;
  const std::pair<uint32_t, uint32_t> places[] = {{end - 6, 5}, {end - 5, 6},          {end, 1},
                                                  {0, 5},       {end - 1, UINT32_MAX}, {UINT32_MAX, 5},
                                                  {40, 0},      {UINT32_MAX - 4, 5}};
  for (const auto& [offset, bytes] : places) {
    Put(0, 1, offset);
    Put(0, 1, bytes, 4);
    EXPECT_TRUE(Refuses()) << offset << " " << bytes;
  }
  for (const auto& [offset, bytes] : {std::pair{0U, 0U}, {end - 1, 1U}, {end, 0U}, {end - 5, 0U}}) {
    Put(0, 1, offset);
    Put(0, 1, bytes, 4);
    EXPECT_FALSE(Refuses()) << offset << " " << bytes;
  }
}

TEST_F(PageCheck, RefusesNumbersOutsideOfTheirBounds) {
  Put(0, 0, uint8_t{101});
  EXPECT_TRUE(Refuses());
  Put(0, 0, uint8_t{100});
  Put(0, 2, PowerOfTen(38));
  EXPECT_TRUE(Refuses());
  Put(0, 2, -PowerOfTen(38));
  EXPECT_TRUE(Refuses());
  Put(0, 2, 1 - PowerOfTen(38));
  EXPECT_FALSE(Refuses());
}

TEST(PageCheckOfNumerics, RefusesWordsThatAreNone) {
  const RowLayout layout = Of({{Type::Numeric(), true, {}}, {Type::Numeric(), false, {}}});
  const auto page = std::make_unique<std::byte[]>(kPageBytes);
  layout.Clear(page.get());
  PageHeader header;
  std::memcpy(&header, page.get(), sizeof(header));
  header.rows = 2;
  std::memcpy(page.get(), &header, sizeof(header));
  const auto refuses = [&](size_t row, size_t field, __int128 word) {
    std::byte* const at = page.get() + kPageHeaderBytes + row * layout.stride() + layout.field(field).offset;
    std::memcpy(at, &word, sizeof(word));
    layout.Seal(page.get(), kSealedAttempt);
    const bool refused = absl::IsDataLoss(layout.CheckPage({page.get(), kPageBytes}, kSealedAttempt));
    std::memset(at, 0, sizeof(word));
    return refused;
  };
  for (const size_t row : {0, 1}) {
    for (const size_t field : {0, 1}) {
      EXPECT_FALSE(refuses(row, field, PackNumeric({PowerOfTen(36) - 1, 38})));
      EXPECT_FALSE(refuses(row, field, PackNumeric({1 - PowerOfTen(36), 0})));
      EXPECT_TRUE(refuses(row, field, PackNumeric({PowerOfTen(36), 0})));
      EXPECT_TRUE(refuses(row, field, PackNumeric({1, 39})));
    }
  }
}

/// These are checked together.
TEST(PageCheckOfPairs, RefusesNumbersOutsideOfTheirBounds) {
  constexpr uint32_t kRows = 21, kMost = 1 << 30;
  const RowLayout layout = Of({Integers(0, kMost), Integers(-5, kMost)});
  ASSERT_EQ(layout.stride(), 8U);
  const auto page = std::make_unique<std::byte[]>(kPageBytes);
  layout.Clear(page.get());
  PageHeader header;
  std::memcpy(&header, page.get(), sizeof(header));
  header.rows = kRows;
  std::memcpy(page.get(), &header, sizeof(header));
  const auto refuses = [&](uint32_t row, size_t field, uint32_t stored) {
    std::byte* const at = page.get() + kPageHeaderBytes + row * 8 + layout.field(field).offset;
    std::memcpy(at, &stored, sizeof(stored));
    layout.Seal(page.get(), kSealedAttempt);
    const bool refused = absl::IsDataLoss(layout.CheckPage({page.get(), kPageBytes}, kSealedAttempt));
    std::memset(at, 0, sizeof(stored));
    return refused;
  };
  for (const uint32_t row : {0U, 7U, kRows - 1}) {
    EXPECT_FALSE(refuses(row, 0, kMost)) << row;
    EXPECT_TRUE(refuses(row, 0, kMost + 1)) << row;
    EXPECT_FALSE(refuses(row, 1, kMost + 5)) << row;
    EXPECT_TRUE(refuses(row, 1, kMost + 6)) << row;
    EXPECT_TRUE(refuses(row, 1, UINT32_MAX)) << row;
  }
}

TEST_F(PageCheck, RefusesNullsThatHaveValues) {
  Put(1, 0, uint8_t{1});
  EXPECT_TRUE(Refuses());
  Put(1, 0, uint8_t{0});
  Put(1, 2, static_cast<__int128>(1));
  EXPECT_TRUE(Refuses());
  Put(1, 2, static_cast<__int128>(0));
  EXPECT_FALSE(Refuses());
  row(1)[layout_.nulls_offset()] = std::byte{15};
  EXPECT_TRUE(Refuses()) << "a bit of no field";
}

TEST_F(PageCheck, TakesZeroesOnlyWhereTheyAreWithinBoundsUnlessNull) {
  // 0 is no number of this column; it is stored for its NULLs.
  const RowLayout layout = Of({Integers(INT64_MAX, __int128{INT64_MAX} + 9, true)});
  layout.Clear(page_.get());
  header().rows = 1;
  std::memset(page_.get() + kPageHeaderBytes, 0, layout.stride());
  layout.Seal(page_.get(), kSealedAttempt);
  EXPECT_TRUE(absl::IsDataLoss(layout.CheckPage({page_.get(), kPageBytes}, kSealedAttempt)));
  page_[kPageHeaderBytes + layout.nulls_offset()] = std::byte{1};
  layout.Seal(page_.get(), kSealedAttempt);
  EXPECT_TRUE(layout.CheckPage({page_.get(), kPageBytes}, kSealedAttempt).ok());
}

}  // namespace
}  // namespace nam::execution
