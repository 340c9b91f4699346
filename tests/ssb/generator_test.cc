#include "ssb/generator.h"

#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "dataset/vocabulary.h"
#include "gtest/gtest.h"
#include "ssb/calendar.h"
#include "ssb/vocabulary.h"
#include "tests/dataset/rows.h"

namespace nam::ssb {
namespace {

using dataset::GeneratedText;
using dataset::Lines;
using partitioner::ColumnBatch;

ColumnBatch FillAll(const Generator& generator, Table table) {
  ColumnBatch batch(Tables()[table].schema.columns.size());
  generator.Fill(table, 0, generator.Units(table), batch);
  return batch;
}

size_t ColumnOf(Table table, std::string_view name) {
  const auto& columns = Tables()[table].schema.columns;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
  }
  ADD_FAILURE() << name;
  return 0;
}

const std::vector<int64_t>& Numbers(const ColumnBatch& batch, Table table, std::string_view name) {
  return batch.column(ColumnOf(table, name)).numbers;
}
const std::vector<std::string_view>& Strings(const ColumnBatch& batch, Table table, std::string_view name) {
  return batch.column(ColumnOf(table, name)).strings;
}

void ExpectRange(const std::vector<int64_t>& values, int64_t low, int64_t high) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_EQ(*least, low);
  EXPECT_EQ(*most, high);
}

template <typename Word>
std::set<std::string_view> SetOf(std::span<const Word> words) {
  return {words.begin(), words.end()};
}
std::set<std::string_view> SetOf(const std::vector<std::string_view>& words) {
  return {words.begin(), words.end()};
}

TEST(GeneratorTest, RowCounts) {
  const auto rows = [](double scale_factor, Table table) {
    return Generator({.scale_factor = scale_factor}).Rows(table);
  };
  EXPECT_EQ(rows(1, Table::kLineorder), 6'001'215u);
  EXPECT_EQ(rows(10, Table::kLineorder), 59'986'052u);
  EXPECT_EQ(rows(0.01, Table::kLineorder), 60'175u);
  EXPECT_EQ(rows(0.1, Table::kLineorder), 600'572u);
  EXPECT_EQ(rows(3, Table::kLineorder), 17'996'609u);
  const std::pair<double, std::array<uint64_t, 3>> dimensions[] = {
      {0.01, {300, 20, 2'000}},      {0.1, {3'000, 200, 20'000}},      {1, {30'000, 2'000, 200'000}},
      {3, {90'000, 6'000, 400'000}}, {10, {300'000, 20'000, 800'000}}, {1e-6, {1, 1, 1}},
  };
  for (const auto& [scale_factor, counts] : dimensions) {
    EXPECT_EQ(rows(scale_factor, Table::kCustomer), counts[0]);
    EXPECT_EQ(rows(scale_factor, Table::kSupplier), counts[1]);
    EXPECT_EQ(rows(scale_factor, Table::kPart), counts[2]);
    EXPECT_EQ(rows(scale_factor, Table::kDate), 2'556u);
  }
}

TEST(GeneratorTest, OptionsAreChecked) {
  EXPECT_TRUE(Validate(GeneratorOptions{.scale_factor = 0.5}).ok());
  for (double bad :
       {0.0, -1.0, 1e9, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(Validate(GeneratorOptions{.scale_factor = bad}).code(), absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

TEST(GeneratorTest, PlacesAndTheirHierarchy) {
  const Generator generator({.scale_factor = 0.1});
  std::map<std::string_view, std::string_view> region_of;
  for (const dataset::Nation& nation : dataset::Nations()) region_of[nation.name] = nation.region;
  EXPECT_EQ(region_of.size(), 25u);
  EXPECT_EQ(dataset::Regions().size(), 5u);
  for (const auto& [table, prefix] : {std::pair(Table::kCustomer, "c_"), std::pair(Table::kSupplier, "s_")}) {
    const ColumnBatch batch = FillAll(generator, table);
    const auto& cities = Strings(batch, table, std::string(prefix) + "city");
    const auto& nations = Strings(batch, table, std::string(prefix) + "nation");
    const auto& regions = Strings(batch, table, std::string(prefix) + "region");
    const auto& phones = Strings(batch, table, std::string(prefix) + "phone");
    for (size_t row = 0; row < batch.rows(); ++row) {
      ASSERT_TRUE(region_of.contains(nations[row])) << nations[row];
      ASSERT_EQ(regions[row], region_of[nations[row]]);
      ASSERT_EQ(cities[row].size(), 10u);
      std::string start(nations[row].substr(0, 9));
      start.resize(9, ' ');
      ASSERT_EQ(cities[row].substr(0, 9), start);
      ASSERT_TRUE(cities[row][9] >= '0' && cities[row][9] <= '9');
      ASSERT_EQ(phones[row].size(), 15u);
    }
    if (table == Table::kCustomer) {
      EXPECT_EQ(SetOf(cities), SetOf(Cities()));
      EXPECT_EQ(Cities().size(), 250u);
      EXPECT_EQ(SetOf(Strings(batch, table, "c_mktsegment")), SetOf(dataset::MarketSegments()));
      EXPECT_EQ(Strings(batch, table, "c_name")[16], "Customer#000000017");
    } else {
      EXPECT_EQ(Strings(batch, table, "s_name")[0], "Supplier#000000001");
    }
  }
  EXPECT_TRUE(SetOf(Cities()).contains("UNITED KI1"));
  EXPECT_TRUE(SetOf(Cities()).contains("PERU     0"));
}

TEST(GeneratorTest, PartsAndTheirHierarchy) {
  const Generator generator({.scale_factor = 0.1});
  constexpr Table kPart = Table::kPart;
  const ColumnBatch batch = FillAll(generator, kPart);
  const auto& manufacturers = Strings(batch, kPart, "p_mfgr");
  const auto& categories = Strings(batch, kPart, "p_category");
  const auto& brands = Strings(batch, kPart, "p_brand1");
  const auto& names = Strings(batch, kPart, "p_name");
  const auto& colors = Strings(batch, kPart, "p_color");
  const std::set<std::string_view> all_colors = SetOf(dataset::Colors());
  for (size_t row = 0; row < batch.rows(); ++row) {
    ASSERT_TRUE(categories[row].starts_with(manufacturers[row]) && categories[row].size() == 7);
    ASSERT_TRUE(brands[row].starts_with(categories[row]));
    const int number = std::stoi(std::string(brands[row].substr(7)));
    ASSERT_TRUE(number >= 1 && number <= 40);
    const size_t space = names[row].find(' ');
    const std::string_view first = names[row].substr(0, space), second = names[row].substr(space + 1);
    ASSERT_TRUE(all_colors.contains(first) && all_colors.contains(second)) << names[row];
    ASSERT_TRUE(first != second && first != colors[row] && second != colors[row]) << names[row];
  }
  EXPECT_EQ(SetOf(manufacturers), SetOf(Manufacturers()));
  EXPECT_EQ(SetOf(categories), SetOf(Categories()));
  EXPECT_EQ(SetOf(brands), SetOf(Brands()));
  EXPECT_EQ(Brands().size(), 1000u);
  EXPECT_EQ(SetOf(colors), all_colors);
  EXPECT_EQ(SetOf(Strings(batch, kPart, "p_type")), SetOf(dataset::PartTypes()));
  EXPECT_EQ(dataset::PartTypes().size(), 150u);
  EXPECT_EQ(SetOf(Strings(batch, kPart, "p_container")), SetOf(dataset::Containers()));
  EXPECT_EQ(dataset::Containers().size(), 40u);
  ExpectRange(Numbers(batch, kPart, "p_size"), 1, 50);
}

TEST(GeneratorTest, LineorderDomains) {
  const Generator generator({.scale_factor = 0.01});
  constexpr Table kLines = Table::kLineorder;
  const ColumnBatch batch = FillAll(generator, kLines);
  ASSERT_EQ(batch.rows(), 60'175u);
  ExpectRange(Numbers(batch, kLines, "lo_linenumber"), 1, 7);
  ExpectRange(Numbers(batch, kLines, "lo_quantity"), 1, 50);
  ExpectRange(Numbers(batch, kLines, "lo_discount"), 0, 10);
  ExpectRange(Numbers(batch, kLines, "lo_tax"), 0, 8);
  ExpectRange(Numbers(batch, kLines, "lo_orderdate"), 19920101, 19980802);
  EXPECT_EQ(SetOf(Strings(batch, kLines, "lo_orderpriority")), SetOf(dataset::OrderPriorities()));
  EXPECT_EQ(SetOf(Strings(batch, kLines, "lo_shippriority")), (std::set<std::string_view>{"0"}));
  EXPECT_EQ(SetOf(Strings(batch, kLines, "lo_shipmode")), SetOf(dataset::ShipModes()));
}

TEST(GeneratorTest, LineorderFormulas) {
  constexpr Table kLines = Table::kLineorder;
  const ColumnBatch batch = FillAll(Generator({.scale_factor = 0.01}), kLines);
  std::map<int64_t, int> day_of;
  for (int day = 0; day < kCalendarDays; ++day) day_of[Calendar()[day].date_key] = day;
  std::map<int64_t, int64_t> totals;
  const auto at = [&](const char* name, size_t row) { return Numbers(batch, kLines, name)[row]; };
  for (size_t row = 0; row < batch.rows(); ++row) {
    const int64_t key = at("lo_partkey", row);
    const int64_t price = 90'000 + (key / 10) % 20'001 + 100 * (key % 1'000);
    ASSERT_EQ(at("lo_extendedprice", row), price * at("lo_quantity", row));
    ASSERT_EQ(at("lo_revenue", row), at("lo_extendedprice", row) * (100 - at("lo_discount", row)) / 100);
    ASSERT_EQ(at("lo_supplycost", row), 6 * price / 10);
    totals[at("lo_orderkey", row)] += at("lo_revenue", row) * (100 + at("lo_tax", row)) / 100;
    const int delay = day_of.at(at("lo_commitdate", row)) - day_of.at(at("lo_orderdate", row));
    ASSERT_TRUE(delay >= 30 && delay <= 90) << delay;
  }
  EXPECT_EQ(totals.size(), 15'000u);
  for (size_t row = 0; row < batch.rows(); ++row) {
    ASSERT_EQ(at("lo_ordtotalprice", row), totals[at("lo_orderkey", row)]);
  }
}

TEST(GeneratorTest, KeysAreUniqueAndReferTheDimensions) {
  const Generator generator({.scale_factor = 0.01});
  const auto keys = [&](Table table, const char* name) {
    const ColumnBatch batch = FillAll(generator, table);
    const auto& numbers = Numbers(batch, table, name);
    std::set<int64_t> set(numbers.begin(), numbers.end());
    EXPECT_EQ(set.size(), generator.Rows(table));
    return set;
  };
  const std::set<int64_t> customers = keys(Table::kCustomer, "c_custkey");
  const std::set<int64_t> suppliers = keys(Table::kSupplier, "s_suppkey");
  const std::set<int64_t> parts = keys(Table::kPart, "p_partkey");
  const std::set<int64_t> dates = keys(Table::kDate, "d_datekey");
  constexpr Table kLines = Table::kLineorder;
  const ColumnBatch lines = FillAll(generator, kLines);
  std::set<std::pair<int64_t, int64_t>> line_keys;
  std::set<int64_t> customers_used, suppliers_used;
  for (size_t row = 0; row < lines.rows(); ++row) {
    const auto at = [&](const char* name) { return Numbers(lines, kLines, name)[row]; };
    ASSERT_TRUE(line_keys.emplace(at("lo_orderkey"), at("lo_linenumber")).second);
    ASSERT_LT(at("lo_orderkey") % 32, 8);
    ASSERT_TRUE(customers.contains(at("lo_custkey")));
    ASSERT_NE(at("lo_custkey") % 3, 0);
    ASSERT_TRUE(suppliers.contains(at("lo_suppkey")));
    ASSERT_TRUE(parts.contains(at("lo_partkey")));
    ASSERT_TRUE(dates.contains(at("lo_orderdate")));
    ASSERT_TRUE(dates.contains(at("lo_commitdate")));
    customers_used.insert(at("lo_custkey"));
    suppliers_used.insert(at("lo_suppkey"));
  }
  EXPECT_EQ(customers_used.size(), 200u);  // two of three
  EXPECT_EQ(suppliers_used, suppliers);
}

TEST(GeneratorTest, TextFitsItsColumn) {
  const Generator generator({.scale_factor = 0.02});
  for (Table table : kAllTables) {
    const ColumnBatch batch = FillAll(generator, table);
    const auto& columns = Tables()[table].schema.columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool text = columns[i].type.kind == TypeKind::kString;
      ASSERT_EQ(batch.column(i).strings.size(), text ? batch.rows() : 0) << columns[i].name;
      ASSERT_EQ(batch.column(i).numbers.size(), text ? 0 : batch.rows()) << columns[i].name;
      for (std::string_view value : batch.column(i).strings) ASSERT_LE(value.size(), columns[i].type.length);
    }
  }
}

TEST(GeneratorTest, RowsDoNotDependOnTheBatchTheyAreIn) {
  const Generator generator({.scale_factor = 0.002, .seed = 42});
  for (Table table : kAllTables) {
    const std::string whole = GeneratedText(generator, table);
    for (uint64_t step : {1u, 7u, 1000u}) {
      ColumnBatch batch(Tables()[table].schema.columns.size());
      std::string pieces;
      for (uint64_t first = 0; first < generator.Units(table); first += step) {
        generator.Fill(table, first, std::min(step, generator.Units(table) - first), batch);
        dataset::AppendTbl(Tables()[table], batch, pieces);
      }
      ASSERT_TRUE(pieces == whole) << TableName(table) << " in steps of " << step;
    }
  }
}

TEST(GeneratorTest, SeedsDiffer) {
  const Generator one({.scale_factor = 0.001, .seed = 1}), again({.scale_factor = 0.001, .seed = 1});
  const Generator two({.scale_factor = 0.001, .seed = 2});
  for (Table table : kAllTables) {
    EXPECT_EQ(GeneratedText(one, table), GeneratedText(again, table));
    EXPECT_EQ(GeneratedText(one, table) == GeneratedText(two, table), table == Table::kDate);
    EXPECT_EQ(one.Rows(table), two.Rows(table));
  }
}

// Values are uniform: of 60,175 draws from 50, a count more than six standard deviations off is a fault.
TEST(GeneratorTest, QuantityAndDiscountAreUniformAndIndependent) {
  const ColumnBatch batch = FillAll(Generator({.scale_factor = 0.01}), Table::kLineorder);
  const auto& quantity = Numbers(batch, Table::kLineorder, "lo_quantity");
  const auto& discount = Numbers(batch, Table::kLineorder, "lo_discount");
  std::map<int64_t, int> quantities;
  std::map<std::pair<int64_t, int64_t>, int> pairs;
  for (size_t row = 0; row < batch.rows(); ++row) {
    ++quantities[quantity[row]];
    ++pairs[{quantity[row] % 5, discount[row]}];
  }
  for (const auto& [value, count] : quantities) EXPECT_NEAR(count, 1203.5, 6 * 34.4) << value;
  for (const auto& [value, count] : pairs) EXPECT_NEAR(count, 60'175 / 55.0, 6 * 33) << value.first;
}

}  // namespace
}  // namespace nam::ssb
