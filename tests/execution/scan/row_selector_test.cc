#include "execution/scan/row_selector.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "execution/chunk.h"
#include "execution/memory_budget.h"
#include "storage/dictionary.h"

namespace nam::execution {
namespace {

using plan::Expr;
using plan::Op;

constexpr uint32_t kKey = 0, kDay = 1, kAmount = 2;  // columns of 4, 2 and 1 bytes; rows are in order of days

Expr ColumnCondition(Op op, const Type& type, Value value) {
  Expr left;
  left.op = Op::kColumn;
  left.type = type;
  left.column = {0, 0};
  Expr right;
  right.type = type;
  right.literal = std::move(value);
  Expr compare;
  compare.op = op;
  compare.type = Type::Bool();
  compare.children = {std::move(left), std::move(right)};
  return compare;
}
Expr ColumnCondition(Op op, int64_t value) {
  return ColumnCondition(op, Type::Integer(), Value::Integer(value));
}

/// A table of unique keys with nothing behind them, which gives its memory back.
class Keys {
 public:
  explicit Keys(const DirectTable::Options& options) {
    NAM_CHECK(DirectTable::Fits(options));
    table_ = *DirectTable::Make(options, budget_);
  }
  bool Insert(int64_t key) {
    if (!table_->InsertUnique(key)) return false;
    table_->Inserted(key, key, 1);
    return true;
  }
  const DirectTable& operator*() const { return *table_; }
  const DirectTable* get() const { return table_.get(); }

 private:
  MemoryBudget budget_{uint64_t{1} << 30};
  std::unique_ptr<DirectTable> table_;
};

/// One table of three columns in one block, and the rows that a row-by-row evaluation of the conditions
/// yields.
class Fixture {
 public:
  explicit Fixture(std::vector<std::array<int64_t, 3>> rows, bool nullable_key, uint32_t partition = 0)
      : rows_(std::move(rows)), nullable_key_(nullable_key) {
    std::sort(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) { return a[kDay] < b[kDay]; });
    for (uint32_t c = 0; c < 3; ++c) {
      CodeMeaning& meaning = meanings_[c];
      const auto [low, high] = std::minmax_element(rows_.begin(), rows_.end(),
                                                   [&](const auto& a, const auto& b) { return a[c] < b[c]; });
      meaning.type = Type::Integer();
      meaning.null_code = c == kKey && nullable_key_;
      meaning.min = (*low)[c];
      meaning.max = (*high)[c];
      meaning.base = meaning.min - meaning.null_code;
      meaning.codes = static_cast<uint64_t>(meaning.max - meaning.base) + 1;
      meaning.width = kWidths[c];
      columns_.push_back({c, &meaning});
    }
    block_.resize(layout_.bytes() + 8);
    storage::BlockWriter writer(layout_, block_.data());
    for (size_t r = 0; r < rows_.size(); ++r) {
      for (uint32_t c = 0; c < 3; ++c) {
        const uint64_t code = IsNull(r, c) ? 0 : static_cast<uint64_t>(rows_[r][c] - meanings_[c].base);
        std::memcpy(writer.page(c) + r * kWidths[c], &code, kWidths[c]);
      }
    }
    writer.Seal(1, partition, 0, static_cast<uint32_t>(rows_.size()), {});
  }

  bool IsNull(size_t row, uint32_t column) const {
    return column == kKey && nullable_key_ && rows_[row][kAmount] % 7 == 0;
  }
  storage::BlockView view() const { return {layout_, block_.data()}; }
  const std::vector<std::array<int64_t, 3>>& rows() const { return rows_; }
  const std::vector<ScanColumn>& columns() const { return columns_; }
  const CodeMeaning& meaning(uint32_t column) const { return meanings_[column]; }
  SlotCondition Condition(uint32_t column, const Expr& condition) const {
    const auto codes = CodesOf(condition, meanings_[column]);
    NAM_CHECK(codes.has_value());
    return {column, *codes};
  }

 private:
  static constexpr std::array<uint8_t, 3> kWidths{4, 2, 1};
  std::vector<std::array<int64_t, 3>> rows_;
  const bool nullable_key_;
  const storage::BlockLayout layout_{kWidths, 6000, 0};
  std::vector<std::byte> block_;
  std::array<CodeMeaning, 3> meanings_;
  std::vector<ScanColumn> columns_;
};

std::vector<uint32_t> Selected(RowSelector& selector, const storage::BlockView& block) {
  std::vector<uint32_t> all, window(kChunkRows);
  if (!selector.Start(block)) return all;
  while (selector.more()) {
    const uint32_t n = selector.Next(window.data());
    all.insert(all.end(), window.begin(), window.begin() + n);
  }
  return all;
}

class Draw {
 public:
  explicit Draw(uint32_t seed) : state_(seed | 1) {}
  int64_t operator()(int64_t below) {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<int64_t>(state_ >> 8) % below;
  }

 private:
  uint32_t state_;
};

TEST(RowSelector, SelectsWhatARowByRowReadingSelects) {
  EXPECT_TRUE(rc::check("selector = naive loop", [] {
    const auto count = *rc::gen::inRange<size_t>(1, 5000);
    Draw draw(*rc::gen::arbitrary<uint32_t>());
    const bool nullable = *rc::gen::arbitrary<bool>();
    std::vector<std::array<int64_t, 3>> rows(count);
    for (auto& row : rows) row = {draw(3000) - 100, draw(400) + 1000, draw(200)};
    // Makes keys: either any, or those of one part; by another key the part has the number 2·parts + part.
    const uint32_t parts = 1u << *rc::gen::inRange(0, 4);
    const bool split = !nullable && *rc::gen::arbitrary<bool>();
    const auto part = static_cast<uint32_t>(draw(parts));
    for (auto& row : rows) {
      const int64_t multiple = row[kKey] & ~static_cast<int64_t>(parts - 1);
      if (split) row[kKey] = std::clamp<int64_t>(multiple, -16, 2560) + part;
    }
    const Fixture table(std::move(rows), nullable, (2 * parts + part) * 5 + 3);

    // Keys of a dimension in some of its parts; the driving table has other keys too. A table that is looked
    // up by part need not have all its parts here.
    DirectTable::Options options{.rows = 2000, .key_min = -30, .key_max = 2600, .unique = true};
    options.parts = parts;
    bool here = true;
    if (split && *rc::gen::arbitrary<bool>()) {
      for (uint32_t p = 0; p < parts; ++p) {
        if (draw(2) == 0) options.here.push_back(p);
      }
      if (options.here.empty()) options.here.push_back(static_cast<uint32_t>(draw(parts)));
      here = std::count(options.here.begin(), options.here.end(), part) > 0;
    }
    Keys dimension(options);
    const auto passes = [&](int64_t key) { return key >= -30 && key <= 2600 && key % 3 == 0; };
    for (int64_t key = -30; key <= 2600; ++key) {
      if (passes(key) && (*dimension).IsHere(key)) RC_ASSERT(dimension.Insert(key));
    }
    // A second one by the column that rows are in order of.
    const int64_t first_day = 1000 + draw(400), last_day = first_day + draw(100);
    Keys days({.rows = 400, .key_min = 1000, .key_max = 1399, .unique = true});
    for (int64_t day = first_day; day <= std::min<int64_t>(last_day, 1399); ++day)
      RC_ASSERT(days.Insert(day));

    const int64_t most = draw(220);
    const std::vector<SlotCondition> conditions{
        table.Condition(kAmount, ColumnCondition(Op::kLess, most)),
        table.Condition(kAmount, ColumnCondition(Op::kNotEqual, most / 2))};
    const std::vector<KeyLookup> lookups{{dimension.get(), kKey, split ? parts : 0, 5}, {days.get(), kDay}};
    RowSelector selector(table.columns(), conditions, lookups, kDay);

    std::vector<uint32_t> expected;
    for (uint32_t r = 0; r < table.rows().size(); ++r) {
      const auto& [key, day, amount] = table.rows()[r];
      const bool in_days = day >= first_day && day <= std::min<int64_t>(last_day, 1399);
      if (!table.IsNull(r, kKey) && here && passes(key) && in_days && amount < most && amount != most / 2)
        expected.push_back(r);
    }
    for (int block = 0; block < 3; ++block) RC_ASSERT(Selected(selector, table.view()) == expected);
    const RowSelector::CodeRange codes = selector.SortCodes();
    const int64_t base = table.meaning(kDay).base;
    for (const uint32_t r : expected) {
      const auto code = static_cast<uint64_t>(table.rows()[r][kDay] - base);
      RC_ASSERT(code >= codes.low && code <= codes.high);
    }
  }));
}

TEST(RowSelector, ABlockWithoutAnyWantedKeyIsNotLookedAt) {
  std::vector<std::array<int64_t, 3>> rows;
  for (int64_t r = 0; r < 100; ++r) rows.push_back({r, 1000 + r, r});
  const Fixture table(std::move(rows), false);
  const Keys nobody({.rows = 100, .key_min = 0, .key_max = 99, .unique = true});
  const std::vector<KeyLookup> lookups{{nobody.get(), kKey}};
  RowSelector selector(table.columns(), {}, lookups, kDay);
  EXPECT_FALSE(selector.Start(table.view()));
  EXPECT_FALSE(selector.more());
}

/// The first and the last code of a zone are in the block, in order of them or not.
TEST(RowSelector, ABlockWithOneWantedCodeIsLookedAt) {
  std::vector<std::array<int64_t, 3>> rows;
  for (int64_t r = 0; r < 100; ++r) rows.push_back({r, 1000 + r, r});
  const Fixture table(std::move(rows), false);
  for (const uint32_t row : {0u, 99u}) {
    const std::vector<uint32_t> one{row};
    Keys key({.rows = 100, .key_min = 0, .key_max = 99, .unique = true});
    Keys day({.rows = 100, .key_min = 1000, .key_max = 1099, .unique = true});
    ASSERT_TRUE(key.Insert(row) && day.Insert(1000 + row));
    const std::vector<KeyLookup> by_key{{key.get(), kKey}}, by_day{{day.get(), kDay}};
    RowSelector keys(table.columns(), {}, by_key, kDay), days(table.columns(), {}, by_day, kDay);
    EXPECT_EQ(Selected(keys, table.view()), one);
    EXPECT_EQ(Selected(days, table.view()), one);
    const std::vector<SlotCondition> equal{table.Condition(kKey, ColumnCondition(Op::kEqual, row))};
    RowSelector condition(table.columns(), equal, {}, kKey);
    EXPECT_EQ(Selected(condition, table.view()), one);
  }
}

/// The number that the code of NULL would stand for is a key of the build side.
TEST(RowSelector, NullsAreNotLookedUp) {
  std::vector<std::array<int64_t, 3>> rows;
  for (int64_t r = 0; r < 100; ++r) rows.push_back({6 + r, 1000 + r, r});
  const Fixture table(std::move(rows), true);
  ASSERT_EQ(table.meaning(kKey).base, 5);
  Keys keys({.rows = 200, .key_min = 0, .key_max = 199, .unique = true});
  for (int64_t key = 0; key < 200; ++key) ASSERT_TRUE(keys.Insert(key));
  const std::vector<KeyLookup> lookups{{keys.get(), kKey}};
  RowSelector selector(table.columns(), {}, lookups, kDay);
  const std::vector<uint32_t> selected = Selected(selector, table.view());
  EXPECT_EQ(selected.size(), 85u) << "of 100, of which every seventh is NULL";
  for (const uint32_t row : selected) EXPECT_FALSE(table.IsNull(row, kKey));
}

/// The server was given other partitions of the build side than this block needs.
TEST(RowSelector, ABlockWhosePartIsNotHereHasNoRows) {
  std::vector<std::array<int64_t, 3>> rows;
  for (int64_t r = 0; r < 100; ++r) rows.push_back({4 * r + 1, 1000 + r, r});
  Keys part_three({.rows = 100, .key_min = 0, .key_max = 399, .unique = true, .parts = 4, .here = {3}});
  for (int64_t key = 3; key < 400; key += 4) ASSERT_TRUE(part_three.Insert(key));
  const std::vector<KeyLookup> lookups{{part_three.get(), kKey, 4, 1}};
  const Fixture absent(rows, false, 1);
  RowSelector selector(absent.columns(), {}, lookups, -1);
  EXPECT_EQ(Selected(selector, absent.view()).size(), 0u);
  for (auto& row : rows) row[kKey] += 2;
  const Fixture present(rows, false, 7);
  RowSelector other(present.columns(), {}, lookups, -1);
  EXPECT_EQ(Selected(other, present.view()).size(), 100u);
}

TEST(RowSelector, WithoutConditionsEveryRowPasses) {
  const std::vector<std::array<int64_t, 3>> rows(2500, {1, 1000, 1});
  const Fixture table(rows, false);
  RowSelector selector(table.columns(), {}, {}, -1);
  EXPECT_EQ(Selected(selector, table.view()).size(), 2500u);
  EXPECT_EQ(selector.TakeWork().first_rows, 0u);
}

/// Conditions that a zone decides are not tested again, and every row that is tested is charged.
TEST(RowSelector, CountsTheRowsThatTestsLookAt) {
  std::vector<std::array<int64_t, 3>> rows;
  for (int64_t r = 0; r < 2000; ++r) rows.push_back({r, 1000 + r / 10, r % 200});
  const Fixture table(std::move(rows), false);
  const std::vector<SlotCondition> decided{table.Condition(kKey, ColumnCondition(Op::kGreaterEqual, 0))};
  RowSelector zone(table.columns(), decided, {}, kDay);
  EXPECT_EQ(Selected(zone, table.view()).size(), 2000u);
  EXPECT_EQ(zone.TakeWork().first_rows, 0u);

  const std::vector<SlotCondition> two{table.Condition(kAmount, ColumnCondition(Op::kLess, 20)),
                                       table.Condition(kKey, ColumnCondition(Op::kLess, 1000))};
  RowSelector cascade(table.columns(), two, {}, -1);
  EXPECT_EQ(Selected(cascade, table.view()).size(), 100u);
  const RowSelector::Work work = cascade.TakeWork();
  EXPECT_EQ(work.first_rows, 2000u);
  EXPECT_EQ(work.later_rows, 200u);

  const std::vector<SlotCondition> days{table.Condition(kDay, ColumnCondition(Op::kLess, 1010))};
  RowSelector sorted(table.columns(), days, {}, kDay);
  EXPECT_EQ(Selected(sorted, table.view()).size(), 100u);
  EXPECT_EQ(sorted.TakeWork().first_rows, 0u) << "binary search has decided";
}

// ---- Two groups of chains: the same texts and numbers have other codes.

/// Texts as codes of a dictionary of its own, and numbers of a base of its own.
class Group {
 public:
  Group(std::vector<std::string> entries, uint8_t text_width, int64_t base, bool null_code)
      : entries_(std::move(entries)) {
    const std::vector<std::string_view> views(entries_.begin(), entries_.end());
    text_ = {.type = Type::String(), .width = text_width, .null_code = null_code};
    text_.base = -int64_t{null_code};
    text_.dictionary = *storage::Dictionary::Decode(storage::Dictionary::Encode(views));
    text_.codes = entries_.size() + null_code;
    text_.max = static_cast<int64_t>(entries_.size()) - 1;
    text_.dictionary_id = static_cast<uint64_t>(base);
    number_ = {
        .type = Type::Integer(), .width = 2, .base = base, .codes = 1000, .min = base, .max = base + 999};
    columns_ = {{0, &text_}, {1, &number_}};
  }
  /// Rows: index of a text (-1: NULL) and a number.
  std::vector<std::byte> Block(const std::vector<std::pair<int, int64_t>>& rows) const {
    const storage::BlockLayout layout = Layout();
    std::vector<std::byte> bytes(layout.bytes() + 8);
    storage::BlockWriter writer(layout, bytes.data());
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto text = static_cast<uint64_t>(rows[r].first - text_.base);
      const auto number = static_cast<uint64_t>(rows[r].second - number_.base);
      std::memcpy(writer.page(0) + r * text_.width, &text, text_.width);
      std::memcpy(writer.page(1) + r * 2, &number, 2);
    }
    writer.Seal(1, 0, 0, static_cast<uint32_t>(rows.size()), {});
    return bytes;
  }
  storage::BlockLayout Layout() const { return {std::array<uint8_t, 2>{text_.width, 2}, 3000, 0}; }
  std::vector<SlotCondition> Conditions(const Expr& text, const Expr& number) const {
    return {{0, *CodesOf(text, text_)}, {1, *CodesOf(number, number_)}};
  }
  const std::vector<ScanColumn>& columns() const { return columns_; }
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;
  CodeMeaning text_, number_;
  std::vector<ScanColumn> columns_;
};

TEST(RowSelector, TextRangesAndNumbersHaveTheirCodesInEachGroup) {
  const Group groups[] = {
      {{"apple", "banana", "cherry", "date", "fig"}, 1, 100, true},
      {{"avocado", "blueberry", "cherry", "elder", "fig", "grape", "kiwi"}, 4, -40, false}};
  const Type text = Type::String();
  Expr like;
  like.op = Op::kLike;
  like.type = Type::Bool();
  like.children = ColumnCondition(Op::kEqual, text, Value::String("")).children;
  like.children.pop_back();
  like.literal = Value::String("b%");
  using Test = std::function<bool(const std::string&)>;
  const std::vector<std::pair<Expr, Test>> ranges = {
      {ColumnCondition(Op::kGreaterEqual, text, Value::String("c")), [](const auto& s) { return s >= "c"; }},
      {ColumnCondition(Op::kLess, text, Value::String("cherry")), [](const auto& s) { return s < "cherry"; }},
      {ColumnCondition(Op::kEqual, text, Value::String("fig")), [](const auto& s) { return s == "fig"; }},
      {ColumnCondition(Op::kNotEqual, text, Value::String("cherry")),
       [](const auto& s) { return s != "cherry"; }},
      {ColumnCondition(Op::kEqual, text, Value::String("zebra")), [](const auto& s) { return s == "zebra"; }},
      {like, [](const auto& s) { return s[0] == 'b'; }}};
  for (size_t g = 0; g < 2; ++g) {
    const Group& group = groups[g];
    Draw draw(static_cast<uint32_t>(g) + 7);
    std::vector<std::pair<int, int64_t>> rows;
    for (int r = 0; r < 2500; ++r) {
      const int entry =
          static_cast<int>(draw(static_cast<int64_t>(group.entries().size()) + (g == 0))) - (g == 0);
      rows.emplace_back(entry, (g == 0 ? 100 : -40) + draw(1000));
    }
    const std::vector<std::byte> bytes = group.Block(rows);
    const storage::BlockLayout layout = group.Layout();
    for (size_t i = 0; i < ranges.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << "group " << g << ", condition " << i);
      const auto conditions = group.Conditions(ranges[i].first, ColumnCondition(Op::kLess, 300));
      RowSelector selector(group.columns(), conditions, {}, -1);
      std::vector<uint32_t> expected;
      for (uint32_t r = 0; r < rows.size(); ++r) {
        const auto& [entry, number] = rows[r];
        if (entry >= 0 && ranges[i].second(group.entries()[static_cast<size_t>(entry)]) && number < 300)
          expected.push_back(r);
      }
      EXPECT_EQ(Selected(selector, {layout, bytes.data()}), expected);
    }
  }
}

}  // namespace
}  // namespace nam::execution
