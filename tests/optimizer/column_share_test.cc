#include "optimizer/column_share.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "partitioner/column_statistics.h"
#include "types/wire.h"

namespace nam::optimizer {
namespace {

using partitioner::ColumnBatch;

/// A column of a table, and its statistics as the loader makes them.
class Loaded {
 public:
  /// One value a row; nullopt is NULL.
  Loaded(const Type& type, std::vector<std::optional<Value>> values) : values_(std::move(values)) {
    // Two columns: the other one must not be mixed up with it.
    partitioner::StagedTable staged({.name = "t",
                                     .columns = {{"other", Type::Integer(), false}, {"c", type, true}},
                                     .partitioning = {{"other", 8}},
                                     .sort_column = ""});
    for (size_t first = 0; first < values_.size(); first += 5'000) Append(first, staged);
    *column_.mutable_type() = ToProto(type);
    column_.set_nulls(staged.RangeOf(1).nulls);
    column_.set_min(staged.RangeOf(1).min);
    column_.set_max(staged.RangeOf(1).max);
    partitioner::DescribeValues(staged, 1, partitioner::PlanColumn(staged, 1), column_);
  }

  const proto::Column& column() const { return column_; }
  uint64_t rows() const { return values_.size(); }
  double True(const std::function<bool(const Value&)>& condition) const {
    uint64_t count = 0;
    for (const auto& value : values_) count += value.has_value() && condition(*value);
    return static_cast<double>(count) / static_cast<double>(rows());
  }
  double Equal(const Value& value) const { return ShareOf(column_, rows(), value); }
  double Below(const Value& value, bool also_it) const {
    const auto share = ShareBelow(column_, rows(), value, also_it);
    EXPECT_TRUE(share.has_value());
    return share.value_or(-1);
  }

 private:
  void Append(size_t first, partitioner::StagedTable& staged) {
    ColumnBatch batch(2);
    for (size_t i = first; i < std::min(first + 5'000, values_.size()); ++i) {
      batch.column(0).numbers.push_back(static_cast<int64_t>(i));
      batch.column(1).nulls.push_back(!values_[i].has_value());
      if (staged.schema().columns[1].type.kind == TypeKind::kString) {
        batch.column(1).strings.push_back(values_[i] ? std::string_view(values_[i]->text) : "");
      } else {
        batch.column(1).numbers.push_back(values_[i] ? static_cast<int64_t>(values_[i]->number) : 0);
      }
      batch.set_rows(batch.rows() + 1);
    }
    ASSERT_TRUE(staged.Append(batch).ok());
  }

  std::vector<std::optional<Value>> values_;
  proto::Column column_;
};

std::vector<std::optional<Value>> Integers(size_t rows, double nulls, const std::function<int64_t()>& next) {
  std::mt19937_64 random(rows);
  std::vector<std::optional<Value>> out(rows);
  for (auto& value : out) {
    if (std::uniform_real_distribution<>()(random) >= nulls) value = Value::Integer(next());
  }
  return out;
}

TEST(ColumnShare, DistinctValuesAreCountedOrSketched) {
  std::mt19937_64 random(7);
  for (const size_t distinct : {1, 3, 700, 40'000, 90'000}) {
    const int64_t apart = 123'456'789'123;
    const Loaded far(Type::Integer(), Integers(100'000, 0.1, [&] {
                       return static_cast<int64_t>(random() % distinct) * apart - 1'000'000'000'000;
                     }));
    std::set<__int128> seen;
    far.True([&](const Value& v) { return seen.insert(v.number).second; });
    EXPECT_NEAR(static_cast<double>(far.column().distinct()), static_cast<double>(seen.size()),
                0.03 * seen.size())
        << distinct;
    const Loaded near(Type::Integer(),
                      Integers(100'000, 0.1, [&] { return static_cast<int64_t>(random() % distinct); }));
    seen.clear();
    near.True([&](const Value& v) { return seen.insert(v.number).second; });
    EXPECT_EQ(near.column().distinct(), seen.size());
  }
}

/// Half of all rows have one of few values, among very many others.
TEST(ColumnShare, CommonValuesAreKnown) {
  std::mt19937_64 random(11);
  const Loaded loaded(Type::Integer(), Integers(200'000, 0.2, [&]() -> int64_t {
                        const uint64_t kind = random() % 10;
                        if (kind < 3) return 77;
                        if (kind < 5) return -1'000'000;
                        return static_cast<int64_t>(random() % 10'000'000);
                      }));
  ASSERT_EQ(loaded.column().common_size(), 2);
  EXPECT_NEAR(loaded.Equal(Value::Integer(77)), 0.24, 0.01);
  EXPECT_NEAR(loaded.Equal(Value::Decimal(-100'000'000, 2)), 0.16, 0.01);
  EXPECT_LT(loaded.Equal(Value::Integer(78)), 1e-5);
  EXPECT_EQ(loaded.Equal(Value::Integer(-2'000'000)), 0) << "below the least";
  EXPECT_EQ(loaded.Equal(Value::Integer(20'000'000)), 0) << "above the greatest";
  EXPECT_NEAR(ShareNotNull(loaded.column(), loaded.rows()), 0.8, 0.01);
}

TEST(ColumnShare, EvenColumnsNeedNoHistogram) {
  std::mt19937_64 random(13);
  const Loaded loaded(Type::Integer(),
                      Integers(200'000, 0, [&] { return static_cast<int64_t>(random() % 5'000'000); }));
  EXPECT_EQ(loaded.column().common_size(), 0);
  EXPECT_EQ(loaded.column().histogram_size(), 0);
  EXPECT_NEAR(loaded.Below(Value::Integer(1'000'000), false), 0.2, 0.01);
  const Loaded few(Type::Integer(),
                   Integers(200'000, 0, [&] { return static_cast<int64_t>(random() % 11); }));
  EXPECT_EQ(few.column().common_size(), 0);
  EXPECT_EQ(few.column().histogram_size(), 0);
  EXPECT_NEAR(few.Equal(Value::Integer(3)), 1.0 / 11, 0.005);
  EXPECT_NEAR(few.Below(Value::Integer(3), true), 4.0 / 11, 0.005);
}

/// Shares of values below and equal to random values, for columns of many shapes.
TEST(ColumnShare, RangesAreAsLargeAsTheyAre) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const double skew = 1 + static_cast<double>(random() % 8);
    const double nulls = static_cast<double>(random() % 3) * 0.3;
    const uint64_t rounded = random() % 2 == 0 ? 1 : 1'000;
    const Loaded loaded(Type::Integer(), Integers(60'000, nulls, [&] {
                          const double x = std::pow(std::uniform_real_distribution<>()(random), skew);
                          return static_cast<int64_t>(x * 1e6) / static_cast<int64_t>(rounded) *
                                 static_cast<int64_t>(rounded);
                        }));
    for (int i = 0; i < 50; ++i) {
      const Value at = Value::Integer(static_cast<int64_t>(random() % 1'100'000) - 50'000);
      EXPECT_NEAR(loaded.Below(at, false), loaded.True([&](const Value& v) { return v.number < at.number; }),
                  0.03);
      EXPECT_NEAR(loaded.Below(at, true), loaded.True([&](const Value& v) { return v.number <= at.number; }),
                  0.03);
      EXPECT_NEAR(loaded.Equal(at), loaded.True([&](const Value& v) { return v.number == at.number; }), 0.02);
    }
  }
}

TEST(ColumnShare, TextsByTheirOrderAndTheirBeginnings) {
  std::mt19937_64 random(17);
  std::vector<std::optional<Value>> values(60'000);
  for (auto& value : values) {
    if (random() % 10 == 0) continue;
    const uint64_t kind = random() % 10;
    if (kind < 3) {
      value = Value::String("always the same");
    } else if (kind < 6) {
      value = Value::String("customer " + std::to_string(random() % 5'000));
    } else {
      value = Value::String(std::string(1, static_cast<char>('a' + random() % 26)) +
                            std::to_string(random() % 900));
    }
  }
  const Loaded loaded(Type::String(), values);
  EXPECT_NEAR(loaded.Equal(Value::String("always the same")), 0.27, 0.02);
  for (const char* text : {"", "a", "always", "customer 3", "h5", "zz", "~"}) {
    const Value at = Value::String(text);
    EXPECT_NEAR(loaded.Below(at, false), loaded.True([&](const Value& v) { return v.text < at.text; }), 0.03)
        << text;
    const auto prefix = ShareWithPrefix(loaded.column(), loaded.rows(), text);
    ASSERT_TRUE(prefix.has_value());
    EXPECT_NEAR(*prefix, loaded.True([&](const Value& v) { return v.text.starts_with(text); }), 0.03) << text;
  }
}

/// Ranges that are narrower than a histogram's are estimated from the bytes of their bounds.
TEST(ColumnShare, NarrowRangesOfTexts) {
  std::mt19937_64 random(19);
  std::vector<std::optional<Value>> values(60'000);
  for (auto& value : values) {
    const uint64_t brand = random() % 1'000;  // MFGR#1101 … MFGR#5540
    value = Value::String(
        "MFGR#" + std::to_string((brand / 200 + 1) * 1'000 + (brand / 40 % 5 + 1) * 100 + brand % 40 + 1));
  }
  const Loaded loaded(Type::String(), values);
  for (const auto& [low, high] :
       {std::pair("MFGR#2221", "MFGR#2228"), {"MFGR#1101", "MFGR#1108"}, {"MFGR#5530", "MFGR#5535"}}) {
    const double share = loaded.Below(Value::String(high), true) - loaded.Below(Value::String(low), false);
    EXPECT_GT(share, 0.002) << low;
    EXPECT_LT(share, 0.032) << low;
  }
}

/// Every tenth row differs from those between, as loaders make them.
TEST(ColumnShare, StridesAreNotFollowed) {
  int64_t row = 0;
  const Loaded loaded(Type::Integer(),
                      Integers(300'000, 0, [&] { return row++ % 10 == 0 ? 5 : 1'000 + row % 100'000; }));
  EXPECT_NEAR(loaded.Equal(Value::Integer(5)), 0.1, 0.01);
}

TEST(ColumnShare, OfNothingNothingIsKnown) {
  const Loaded empty(Type::Integer(), {});
  EXPECT_EQ(ShareNotNull(empty.column(), 0), 1);
  EXPECT_FALSE(std::isnan(empty.Equal(Value::Integer(1))));
  const Loaded nulls(Type::String(), std::vector<std::optional<Value>>(5'000));
  EXPECT_EQ(nulls.column().distinct(), 0u);
  EXPECT_EQ(ShareNotNull(nulls.column(), nulls.rows()), 0);
  EXPECT_EQ(nulls.Equal(Value::String("x")), 0);
  EXPECT_FALSE(ShareBelow(nulls.column(), nulls.rows(), Value::String("x"), true).has_value());
  const proto::Column old;  // from a loader that kept no statistics
  EXPECT_FALSE(std::isnan(ShareOf(old, 10, Value::Integer(3))));
}

}  // namespace
}  // namespace nam::optimizer
