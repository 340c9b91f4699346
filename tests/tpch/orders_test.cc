// Orders and their lines, which are generated separately and must match.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "gtest/gtest.h"
#include "tests/tpch/rows.h"
#include "tpch/generator.h"
#include "tpch/order_rows.h"

namespace nam::tpch {
namespace {

class OrdersTest : public ::testing::Test {
 protected:
  const Generator generator_{{.scale_factor = 0.01}};
  const Rows orders_{generator_, kOrders}, lines_{generator_, kLineitem};
};

TEST_F(OrdersTest, KeysAreSparseAndLinesHaveOrders) {
  std::map<int64_t, int64_t> lines_of;
  for (const int64_t key : orders_.numbers("o_orderkey")) {
    ASSERT_LT(key % 32, 8);
    ASSERT_TRUE(lines_of.emplace(key, 0).second);
  }
  for (size_t row = 0; row < lines_.size(); ++row) {
    const auto order = lines_of.find(lines_.numbers("l_orderkey")[row]);
    ASSERT_NE(order, lines_of.end());
    ASSERT_EQ(lines_.numbers("l_linenumber")[row], ++order->second);
  }
  std::set<int64_t> counts;
  for (const auto& [key, count] : lines_of) counts.insert(count);
  EXPECT_EQ(counts, (std::set<int64_t>{1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(OrdersTest, CustomersWhoseKeyDividesByThreeNeverOrder) {
  std::set<int64_t> customers;
  for (const int64_t key : orders_.numbers("o_custkey")) {
    ASSERT_NE(key % 3, 0);
    customers.insert(key);
  }
  EXPECT_EQ(*customers.begin(), 1);
  EXPECT_EQ(*customers.rbegin(), 1'500 - 1);
  EXPECT_EQ(customers.size(), 1'000u);
}

TEST_F(OrdersTest, PartsAndSuppliersOfLinesArePairsOfPartsupp) {
  const Rows pairs(generator_, kPartsupp);
  std::set<std::pair<int64_t, int64_t>> known, used;
  for (size_t row = 0; row < pairs.size(); ++row)
    known.emplace(pairs.numbers("ps_partkey")[row], pairs.numbers("ps_suppkey")[row]);
  for (size_t row = 0; row < lines_.size(); ++row) {
    const std::pair pair(lines_.numbers("l_partkey")[row], lines_.numbers("l_suppkey")[row]);
    ASSERT_TRUE(known.contains(pair));
    used.insert(pair);
  }
  EXPECT_GT(used.size(), known.size() * 9 / 10);
}

TEST_F(OrdersTest, PricesComeFromPartsAndTotalsFromLines) {
  const Rows parts(generator_, kPart);
  std::map<int64_t, int64_t> totals;
  for (size_t row = 0; row < lines_.size(); ++row) {
    const auto number = [&](const char* name) { return lines_.numbers(name)[row]; };
    const int64_t price = parts.numbers("p_retailprice")[static_cast<size_t>(number("l_partkey") - 1)];
    ASSERT_EQ(number("l_extendedprice") * 100, number("l_quantity") * price);
    ASSERT_TRUE(number("l_quantity") >= 100 && number("l_quantity") <= 5'000 &&
                number("l_quantity") % 100 == 0);
    ASSERT_TRUE(number("l_discount") >= 0 && number("l_discount") <= 10);
    ASSERT_TRUE(number("l_tax") >= 0 && number("l_tax") <= 8);
    totals[number("l_orderkey")] +=
        number("l_extendedprice") * (100 - number("l_discount")) / 100 * (100 + number("l_tax")) / 100;
  }
  for (size_t row = 0; row < orders_.size(); ++row)
    ASSERT_EQ(orders_.numbers("o_totalprice")[row], totals[orders_.numbers("o_orderkey")[row]]);
}

TEST_F(OrdersTest, StatusComesFromLines) {
  std::map<int64_t, std::set<std::string_view>> status;
  for (size_t row = 0; row < lines_.size(); ++row) {
    const bool open = lines_.numbers("l_shipdate")[row] > kCurrentDate;
    ASSERT_EQ(lines_.texts("l_linestatus")[row], open ? "O" : "F");
    const std::string_view flag = lines_.texts("l_returnflag")[row];
    ASSERT_EQ(flag == "N", lines_.numbers("l_receiptdate")[row] > kCurrentDate);
    ASSERT_TRUE(flag == "N" || flag == "R" || flag == "A");
    status[lines_.numbers("l_orderkey")[row]].insert(lines_.texts("l_linestatus")[row]);
  }
  std::set<std::string_view> seen;
  for (size_t row = 0; row < orders_.size(); ++row) {
    const auto& of_lines = status[orders_.numbers("o_orderkey")[row]];
    const std::string_view of_order = orders_.texts("o_orderstatus")[row];
    ASSERT_EQ(of_order, of_lines.size() == 2 ? "P" : *of_lines.begin());
    seen.insert(of_order);
  }
  EXPECT_EQ(seen.size(), 3u);
}

TEST_F(OrdersTest, Dates) {
  std::map<int64_t, int64_t> date_of;
  const auto& dates = orders_.numbers("o_orderdate");
  for (size_t row = 0; row < orders_.size(); ++row) date_of[orders_.numbers("o_orderkey")[row]] = dates[row];
  const auto [first, last] = std::minmax_element(dates.begin(), dates.end());
  EXPECT_EQ(*first, kStartDate);
  EXPECT_EQ(*last, kStartDate + kOrderDays - 1);
  for (size_t row = 0; row < lines_.size(); ++row) {
    const int64_t ordered = date_of[lines_.numbers("l_orderkey")[row]];
    const int64_t shipped = lines_.numbers("l_shipdate")[row] - ordered;
    const int64_t committed = lines_.numbers("l_commitdate")[row] - ordered;
    const int64_t received = lines_.numbers("l_receiptdate")[row] - lines_.numbers("l_shipdate")[row];
    ASSERT_TRUE(shipped >= 1 && shipped <= 121);
    ASSERT_TRUE(committed >= 30 && committed <= 90);
    ASSERT_TRUE(received >= 1 && received <= 30);
  }
}

TEST_F(OrdersTest, Words) {
  const auto count = [](const std::vector<std::string_view>& words) {
    return std::set<std::string_view>(words.begin(), words.end()).size();
  };
  EXPECT_EQ(count(orders_.texts("o_orderpriority")), 5u);
  EXPECT_EQ(count(orders_.texts("o_clerk")), 10u);
  EXPECT_EQ(count(lines_.texts("l_shipmode")), 7u);
  EXPECT_EQ(count(lines_.texts("l_shipinstruct")), 4u);
}

}  // namespace
}  // namespace nam::tpch
