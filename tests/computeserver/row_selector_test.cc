#include "computeserver/row_selector.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>

namespace nam::computeserver {
namespace {

using plan::Expr;
using plan::Op;

constexpr int kKey = 0, kDay = 1, kAmount = 2;  // columns of 4, 2 and 1 bytes; rows are in order of the day

Expr Compare(Op op, int column, int64_t value) {
  Expr left;
  left.op = Op::kColumn;
  left.type = Type::Integer();
  left.column = {0, column};
  Expr right;
  right.type = Type::Integer();
  right.literal = Value::Integer(value);
  Expr compare;
  compare.op = op;
  compare.type = Type::Bool();
  compare.children = {std::move(left), std::move(right)};
  return compare;
}

/// One table of three columns in one block, and what a row-by-row reading of the conditions says.
class Fixture {
 public:
  explicit Fixture(std::vector<std::array<int64_t, 3>> rows, bool nullable_key, uint32_t partition = 0)
      : rows_(std::move(rows)), nullable_key_(nullable_key) {
    std::sort(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) { return a[kDay] < b[kDay]; });
    space_.table(0).resize(3);
    for (int c = 0; c < 3; ++c) {
      ColumnMeaning& meaning = space_.at({0, c}).meaning;
      const auto [low, high] = std::minmax_element(rows_.begin(), rows_.end(),
                                                   [&](const auto& a, const auto& b) { return a[c] < b[c]; });
      meaning.type = Type::Integer();
      meaning.nullable = c == kKey && nullable_key_;
      meaning.min = (*low)[c];
      meaning.max = (*high)[c];
      meaning.base = meaning.min - meaning.nullable;
      meaning.codes = static_cast<uint64_t>(meaning.max - meaning.base) + 1;
      meaning.width = kWidths[c];
    }
    block_.resize(layout_.bytes() + 8);
    storage::BlockWriter writer(layout_, block_.data());
    for (size_t r = 0; r < rows_.size(); ++r) {
      for (int c = 0; c < 3; ++c) {
        const uint64_t code =
            IsNull(r, c) ? 0 : static_cast<uint64_t>(rows_[r][c] - space_.at({0, c}).meaning.base);
        std::memcpy(writer.page(static_cast<uint32_t>(c)) + r * kWidths[c], &code, kWidths[c]);
      }
    }
    writer.Seal(1, partition, 0, static_cast<uint32_t>(rows_.size()), {});
    for (int c = 0; c < 3; ++c)
      space_.at({0, c}).source = {view().page(static_cast<uint32_t>(c)), kWidths[c]};
  }

  bool IsNull(size_t row, int column) const {
    return column == kKey && nullable_key_ && rows_[row][kAmount] % 7 == 0;
  }
  storage::BlockView view() const { return {layout_, block_.data()}; }
  const std::vector<std::array<int64_t, 3>>& rows() const { return rows_; }
  ColumnSpace& space() { return space_; }

 private:
  static constexpr std::array<uint8_t, 3> kWidths{4, 2, 1};
  std::vector<std::array<int64_t, 3>> rows_;
  const bool nullable_key_;
  const storage::BlockLayout layout_{kWidths, 6000, 0};
  std::vector<std::byte> block_;
  ColumnSpace space_{1};
};

std::vector<uint32_t> Selected(RowSelector& selector, const storage::BlockView& block) {
  std::vector<uint32_t> all, window(kBatchRows);
  if (!selector.Start(block)) return all;
  while (selector.more()) {
    const uint32_t n = selector.Next(window.data());
    all.insert(all.end(), window.begin(), window.begin() + n);
  }
  return all;
}

TEST(RowSelector, SelectsWhatARowByRowReadingSelects) {
  EXPECT_TRUE(rc::check("selector = naive loop", [] {
    const auto count = *rc::gen::inRange<size_t>(1, 5000);
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    const bool nullable = *rc::gen::arbitrary<bool>();
    uint32_t state = seed | 1;
    const auto draw = [&](int64_t below) {
      state = state * 1664525u + 1013904223u;
      return static_cast<int64_t>(state >> 8) % below;
    };
    std::vector<std::array<int64_t, 3>> rows(count);
    for (auto& row : rows) row = {draw(3000) - 100, draw(400) + 1000, draw(200)};
    // Either any keys, or those of one part of three, which has number 2·parts + part by another key.
    const uint32_t parts = 1u << *rc::gen::inRange(0, 4);
    const bool split = !nullable && *rc::gen::arbitrary<bool>();
    const auto part = static_cast<uint32_t>(draw(parts));
    for (auto& row : rows) {
      const int64_t multiple = row[kKey] & ~static_cast<int64_t>(parts - 1);
      if (split) row[kKey] = std::clamp<int64_t>(multiple, -16, 2560) + part;
    }
    Fixture table(std::move(rows), nullable, (2 * parts + part) * 5 + 3);

    // Keys of a dimension in some of its parts; the driving table has keys outside of it too.
    JoinTable::Options options{.rows = 2000, .key_min = -30, .key_max = 2600, .key_known = true};
    options.key_unique = true;
    options.parts = parts;
    JoinTable dimension(options);
    RC_ASSERT(dimension.unique());
    const auto passes = [&](int64_t key) { return key >= -30 && key <= 2600 && key % 3 == 0; };
    for (int64_t key = -30; key <= 2600; ++key) {
      if (!passes(key)) continue;
      RC_ASSERT(dimension.InsertUnique(key));
      dimension.Inserted(key, key, 1);
    }
    RC_ASSERT(!dimension.InsertUnique(0));
    // A second one by the column that rows are in order of.
    const int64_t first_day = 1000 + draw(400), last_day = first_day + draw(100);
    JoinTable days({.rows = 400, .key_min = 1000, .key_max = 1399, .key_known = true, .key_unique = true});
    for (int64_t day = first_day; day <= std::min<int64_t>(last_day, 1399); ++day) {
      RC_ASSERT(days.InsertUnique(day));
      days.Inserted(day, day, 1);
    }

    const int64_t most = draw(220);
    std::vector<std::unique_ptr<Filter>> filters;
    filters.push_back(std::make_unique<Filter>(Compare(Op::kLess, kAmount, most), table.space()));
    filters.push_back(std::make_unique<Filter>(Compare(Op::kNotEqual, kAmount, most / 2), table.space()));
    RC_ASSERT(filters[0]->on_codes() && filters[1]->on_codes());
    RowSelector selector(table.space(), filters, {{&dimension, {0, kKey}, true}, {&days, {0, kDay}, false}},
                         kDay);

    std::vector<uint32_t> expected;
    for (uint32_t r = 0; r < table.rows().size(); ++r) {
      const auto& [key, day, amount] = table.rows()[r];
      const bool in_days = day >= first_day && day <= std::min<int64_t>(last_day, 1399);
      if (!table.IsNull(r, kKey) && passes(key) && in_days && amount < most && amount != most / 2)
        expected.push_back(r);
    }
    for (int block = 0; block < 3; ++block) RC_ASSERT(Selected(selector, table.view()) == expected);
    const RowSelector::CodeRange codes = selector.SortCodes();
    const int64_t base = table.space().at({0, kDay}).meaning.base;
    for (const uint32_t r : expected) {
      const auto code = static_cast<uint64_t>(table.rows()[r][kDay] - base);
      RC_ASSERT(code >= codes.low && code <= codes.high);
    }
  }));
}

TEST(RowSelector, ABlockWithoutAnyWantedKeyIsNotLookedAt) {
  std::vector<std::array<int64_t, 3>> rows;
  for (int64_t r = 0; r < 100; ++r) rows.push_back({r, 1000 + r, r});
  Fixture table(std::move(rows), false);
  JoinTable nobody({.rows = 100, .key_min = 0, .key_max = 99, .key_known = true, .key_unique = true});
  RowSelector selector(table.space(), {}, {{&nobody, {0, kKey}, false}}, kDay);
  EXPECT_FALSE(selector.Start(table.view()));
  EXPECT_FALSE(selector.more());
}

TEST(RowSelector, WithoutConditionsEveryRowPasses) {
  std::vector<std::array<int64_t, 3>> rows(2500, {1, 1000, 1});
  Fixture table(std::move(rows), false);
  RowSelector selector(table.space(), {}, {}, -1);
  EXPECT_EQ(Selected(selector, table.view()).size(), 2500u);
  EXPECT_EQ(selector.TakeWork().first_rows, 0u);
}

}  // namespace
}  // namespace nam::computeserver
