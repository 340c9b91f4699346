#include "tpch/generator.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "dataset/order_keys.h"
#include "dataset/vocabulary.h"
#include "gtest/gtest.h"
#include "tests/dataset/rows.h"
#include "tests/tpch/rows.h"

namespace nam::tpch {
namespace {

using dataset::GeneratedText;
using partitioner::ColumnBatch;

void ExpectRange(const std::vector<int64_t>& values, int64_t low, int64_t high) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_EQ(*least, low);
  EXPECT_EQ(*most, high);
}

std::set<std::string_view> SetOf(std::span<const std::string_view> words) {
  return {words.begin(), words.end()};
}

TEST(GeneratorTest, RowCounts) {
  const std::map<double, std::vector<uint64_t>> expected = {
      {1, {5, 25, 10'000, 150'000, 200'000, 800'000, 1'500'000, 6'001'215}},
      {10, {5, 25, 100'000, 1'500'000, 2'000'000, 8'000'000, 15'000'000, 59'986'052}},
      {0.01, {5, 25, 100, 1'500, 2'000, 8'000, 15'000, 60'175}},
      {1e-6, {5, 25, 1, 1, 1, 4, 2, 7}}};
  for (const auto& [scale_factor, counts] : expected) {
    const Generator generator({.scale_factor = scale_factor});
    for (const Table table : kAllTables) {
      if (scale_factor < 0.01 && table == kLineitem) continue;
      EXPECT_EQ(generator.Rows(table), counts[table]) << scale_factor << " " << table;
    }
  }
}

TEST(GeneratorTest, ARowDependsOnItsNumberAlone) {
  const Generator generator({.scale_factor = 0.002}), other({.scale_factor = 0.002, .seed = 2});
  for (const Table table : kAllTables) {
    const std::string whole = GeneratedText(generator, table);
    std::string pieces;
    ColumnBatch batch(Tables()[table].schema.columns.size());
    for (uint64_t first = 0; first < generator.Units(table); first += 7) {
      generator.Fill(table, first, std::min<uint64_t>(7, generator.Units(table) - first), batch);
      dataset::AppendTbl(Tables()[table], batch, pieces);
    }
    EXPECT_TRUE(pieces == whole) << table;
    EXPECT_EQ(GeneratedText(other, table) == whole, table == kRegion || table == kNation) << table;
  }
}

TEST(GeneratorTest, TextFitsItsColumnAndHasNoBlanksBehind) {
  const Generator generator({.scale_factor = 0.01});
  for (const Table table : kAllTables) {
    const Rows rows(generator, table);
    for (const partitioner::ColumnSchema& column : Tables()[table].schema.columns) {
      if (column.type.kind != TypeKind::kString) continue;
      for (const std::string_view text : rows.texts(column.name)) {
        ASSERT_LE(text.size(), column.type.length) << column.name;
        ASSERT_FALSE(text.empty()) << column.name;
        ASSERT_FALSE(column.type.blank_padded && text.ends_with(' ')) << column.name;
      }
    }
  }
}

TEST(GeneratorTest, LengthsOfComments) {
  const Generator generator({.scale_factor = 0.02});
  const auto expect = [&](Table table, const char* name, size_t low, size_t high) {
    const Rows rows(generator, table);
    const auto [least, most] =
        std::minmax_element(rows.texts(name).begin(), rows.texts(name).end(),
                            [](std::string_view a, std::string_view b) { return a.size() < b.size(); });
    EXPECT_EQ(least->size(), low) << name;
    EXPECT_EQ(most->size(), high) << name;
  };
  expect(kPart, "p_comment", 5, 22);
  expect(kPartsupp, "ps_comment", 49, 198);
  expect(kCustomer, "c_comment", 29, 116);
  expect(kOrders, "o_comment", 19, 78);
  expect(kLineitem, "l_comment", 10, 43);
}

TEST(GeneratorTest, NationsHaveTheirRegions) {
  const Generator generator({.scale_factor = 0.001});
  const Rows nations(generator, kNation), regions(generator, kRegion);
  ExpectRange(nations.numbers("n_nationkey"), 0, 24);
  EXPECT_EQ(nations.texts("n_name")[7], "GERMANY");
  EXPECT_EQ(regions.texts("r_name")[static_cast<size_t>(nations.numbers("n_regionkey")[7])], "EUROPE");
  EXPECT_EQ(nations.texts("n_name")[24], "UNITED STATES");
  EXPECT_EQ(nations.numbers("n_regionkey")[24], 1);
}

TEST(GeneratorTest, SuppliersAndCustomers) {
  const Generator generator({.scale_factor = 0.1});
  const Rows customers(generator, kCustomer), suppliers(generator, kSupplier);
  EXPECT_EQ(customers.texts("c_name")[16], "Customer#000000017");
  EXPECT_EQ(suppliers.texts("s_name")[999], "Supplier#000001000");
  ExpectRange(customers.numbers("c_nationkey"), 0, 24);
  EXPECT_EQ(SetOf(customers.texts("c_mktsegment")), SetOf(dataset::MarketSegments()));
  int64_t sum = 0;
  for (size_t row = 0; row < customers.size(); ++row) {
    const std::string_view phone = customers.texts("c_phone")[row];
    ASSERT_EQ(phone.size(), 15u);
    ASSERT_EQ(std::stoi(std::string(phone.substr(0, 2))), customers.numbers("c_nationkey")[row] + 10);
    ASSERT_GE(customers.numbers("c_acctbal")[row], -99'999);
    ASSERT_LE(customers.numbers("c_acctbal")[row], 999'999);
    ASSERT_GE(customers.texts("c_address")[row].size(), 10u);
    sum += customers.numbers("c_acctbal")[row];
  }
  EXPECT_NEAR(static_cast<double>(sum) / static_cast<double>(customers.size()), 450'000, 10'000);
}

// Five of 10,000 each.
TEST(GeneratorTest, SomeSuppliersAreComplainedAboutAndSomeRecommended) {
  const Generator generator({.scale_factor = 2});
  const Rows suppliers(generator, kSupplier);
  int complaints = 0, recommendations = 0;
  for (const std::string_view comment : suppliers.texts("s_comment")) {
    const size_t customer = comment.find("Customer");
    if (customer == std::string_view::npos) continue;
    complaints += comment.find("Complaints", customer) != std::string_view::npos;
    recommendations += comment.find("Recommends", customer) != std::string_view::npos;
  }
  EXPECT_EQ(complaints, 10);
  EXPECT_EQ(recommendations, 10);
}

TEST(GeneratorTest, Parts) {
  const Generator generator({.scale_factor = 0.1});
  const Rows parts(generator, kPart);
  const std::set<std::string_view> colors = SetOf(dataset::Colors());
  std::set<std::string_view> brands;
  for (size_t row = 0; row < parts.size(); ++row) {
    const std::string_view brand = parts.texts("p_brand")[row], maker = parts.texts("p_mfgr")[row];
    ASSERT_EQ(brand[6], maker.back());
    brands.insert(brand);
    ASSERT_EQ(parts.numbers("p_retailprice")[row], dataset::PartPrice(row + 1));
    std::set<std::string> words;
    for (const std::string& word : dataset::Lines([&] {
           std::string name(parts.texts("p_name")[row]);
           std::replace(name.begin(), name.end(), ' ', '\n');
           return name;
         }())) {
      ASSERT_TRUE(colors.contains(word)) << word;
      words.insert(word);
    }
    ASSERT_EQ(words.size(), 5u);
  }
  EXPECT_EQ(brands.size(), 25u);
  ExpectRange(parts.numbers("p_size"), 1, 50);
  EXPECT_EQ(SetOf(parts.texts("p_type")), SetOf(dataset::PartTypes()));
  EXPECT_EQ(SetOf(parts.texts("p_container")), SetOf(dataset::Containers()));
}

TEST(GeneratorTest, APartHasFourSuppliersAndASupplierEightyParts) {
  const Generator generator({.scale_factor = 0.01});
  const Rows rows(generator, kPartsupp);
  std::set<std::pair<int64_t, int64_t>> pairs;
  std::map<int64_t, int> of_supplier;
  for (size_t row = 0; row < rows.size(); ++row) {
    ASSERT_EQ(rows.numbers("ps_partkey")[row], static_cast<int64_t>(row / 4 + 1));
    ASSERT_TRUE(pairs.emplace(rows.numbers("ps_partkey")[row], rows.numbers("ps_suppkey")[row]).second);
    ++of_supplier[rows.numbers("ps_suppkey")[row]];
  }
  EXPECT_EQ(of_supplier.size(), 100u);
  EXPECT_EQ(of_supplier.begin()->first, 1);
  for (const auto& [supplier, parts] : of_supplier) EXPECT_EQ(parts, 80) << supplier;
  const auto [least, most] =
      std::minmax_element(rows.numbers("ps_availqty").begin(), rows.numbers("ps_availqty").end());
  EXPECT_GE(*least, 1);
  EXPECT_LE(*most, 9'999);
}

}  // namespace
}  // namespace nam::tpch
