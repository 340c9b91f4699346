#include <gtest/gtest.h>

#include "tests/session/sales_query.h"

/// Numbers are exact, and those out of range are errors.
namespace nam::testing {
namespace {

using QueryNumbersTest = QueryTest;

TEST_F(QueryNumbersTest, DecimalsAreExact) {
  EXPECT_EQ(Rows("select sum(price), avg(price), min(price), max(price) from sales"),
            (TextRows{{"124885.00", "124.8850000000000000", "0.01", "249.76"}}));
  EXPECT_EQ(Rows("select sum(price * 3 - 0.5) from sales where id < 2"), (TextRows{{"-0.19"}}));
  EXPECT_EQ(Rows("select id, price from sales where price = 2.51"), (TextRows{{"10", "2.51"}}));
  EXPECT_EQ(Rows("select count(*) from sales where price < 0.015"), (TextRows{{"1"}}));
}

TEST_F(QueryNumbersTest, SumsWidenInsteadOfWrapping) {
  // 1000 · (2^63 - 1) - (0 + … + 999)
  EXPECT_EQ(Rows("select sum(big) from sales"), (TextRows{{"9223372036854775307500"}}));
  EXPECT_EQ(Rows("select max(big * big) from sales"), (TextRows{{"85070591730234615847396907784232501249"}}));
}

TEST_F(QueryNumbersTest, OverflowBeyondThirtyEightDigitsIsAnError) {
  const auto result = cluster_->session().Execute("select sum(big * big * big) from sales");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange) << result.status();
  EXPECT_FALSE(cluster_->session().Execute("select sum(big * big) from sales").ok());
}

TEST_F(QueryNumbersTest, DatesAndIntegersStayInTheirRange) {
  // Computed on the compute servers, over vectors.
  EXPECT_EQ(Rows("select max(day + 2924462) from sales"), (TextRows{{"9999-12-31"}}));
  EXPECT_EQ(Error("select max(day + 2924463) from sales").sqlstate, "22008");
  EXPECT_EQ(Rows("select min(day - 727197) from sales"), (TextRows{{"0001-01-01"}}));
  EXPECT_EQ(Error("select min(day - 727198) from sales").sqlstate, "22008");
  EXPECT_EQ(Error("select day - big from sales").sqlstate, "22008");
  EXPECT_EQ(Error("select day + id * 10000, count(*) from sales group by day + id * 10000").sqlstate,
            "22008");
  EXPECT_EQ(Error("select count(*) from sales where day + id * 10000 > date '2000-01-01'").sqlstate, "22008");
  EXPECT_EQ(Rows("select count(*) from sales where id < 10 and day + id * 10000 > date '2000-01-01'"),
            (TextRows{{"9"}}));
  EXPECT_EQ(Rows("select count(day + item * 200000) from sales where item < 3"), (TextRows{{"300"}}));
  EXPECT_EQ(Error("select max(cast(big * 2 as bigint)) from sales").sqlstate, "22003");
  EXPECT_EQ(Error("select max(cast(big * big as bigint)) from sales").sqlstate, "22003");
  EXPECT_EQ(Error("select max(cast(big as int)) from sales").sqlstate, "22003");
  EXPECT_EQ(Error("select max(big::int) from sales").sqlstate, "22003");
  EXPECT_EQ(Error("select max(cast(id * 33 as smallint)) from sales").sqlstate, "22003");
  EXPECT_EQ(Rows("select max(cast(id * 32 as smallint)) from sales"), (TextRows{{"31968"}}));
  EXPECT_EQ(
      Rows("select max(cast(big as bigint)), sum(cast(item as smallint)), count(cast(item as smallint)) "
           "from sales"),
      (TextRows{{"9223372036854775807", "3600", "900"}}));
  EXPECT_EQ(Rows("select max(cast(big * 2 - big as bigint)) from sales where id > 0"),
            (TextRows{{"9223372036854775806"}}));
  EXPECT_EQ(Rows("select max(cast(big - 9223372036854774808 as smallint)) from sales"), (TextRows{{"999"}}));
  EXPECT_EQ(Error("select max(cast(price * 1000 as smallint)) from sales").sqlstate, "22003");
}

TEST_F(QueryNumbersTest, DivisionByZeroIsAnErrorWhereItIsReached) {
  EXPECT_FALSE(cluster_->session().Execute("select sum(10 / id) from sales").ok());
  EXPECT_EQ(Rows("select sum(case when id = 0 then 0 else 10 / id end) from sales"), (TextRows{{"27"}}));
}

TEST_F(QueryNumbersTest, AveragesHaveTheDecimalsThatTheirValuesNeed) {
  // 1 / 128 = 0.0078125
  EXPECT_EQ(Rows("select avg(case when id = 0 then 1 else 0 end), avg(case when id = 0 then -1 else 0 end) "
                 "from sales where id < 128"),
            (TextRows{{"0.00781250000000000000", "-0.00781250000000000000"}}));
  EXPECT_EQ(Rows("select avg(case when id = 0 then -1 else 0 end) from sales where id < 129"),
            (TextRows{{"-0.00775193798449612403"}}));
  EXPECT_EQ(Rows("select avg(case when id = 0 then -3 else 0 end) from sales where id < 128"),
            (TextRows{{"-0.02343750000000000000"}}));
}

TEST_F(QueryNumbersTest, ComparisonsAndSumsOfFarScalesAreNoOverflow) {
  const std::string tiny = "0.00000000000000000000000000000000000001";  // 38 decimals
  EXPECT_EQ(Rows("select count(*) from sales where big > " + tiny), (TextRows{{"1000"}}));
  EXPECT_EQ(Rows("select count(*) from sales where big * 1 < " + tiny), (TextRows{{"0"}}));
  EXPECT_EQ(Rows("select max(case when id = 0 then 1 else 0 end + 0.5) from sales"), (TextRows{{"1.5"}}));
  EXPECT_EQ(Rows("select count(*) from sales where big + " + tiny + " > 0"), (TextRows{{"1000"}}))
      << "the scale yields";
  // No digit of a product of 128 bits is lost.
  EXPECT_EQ(Rows("select max(0 * (big * big) + id) from sales"), (TextRows{{"999"}}));
}

TEST_F(QueryNumbersTest, NumbersHaveThirtyEightDigits) {
  const std::string most = "99999999999999999999999999999999999999";
  // Computed over vectors, row by row, and at the coordinator.
  EXPECT_EQ(Rows("select max(id + " + most + ") from sales where id < 1"), (TextRows{{most}}));
  EXPECT_EQ(Error("select max(id + " + most + ") from sales where id < 2").sqlstate, "22003");
  EXPECT_EQ(Rows("select min(-id - " + most + ") from sales where id < 1"), (TextRows{{"-" + most}}));
  EXPECT_EQ(Error("select min(-id - " + most + ") from sales where id < 2").sqlstate, "22003");
  EXPECT_EQ(Error("select max((id + 10000000000000000000) * 10000000000000000000) from sales where id < 1")
                .sqlstate,
            "22003");
  EXPECT_EQ(Rows("select max((id + 9999999999999999999) * 10000000000000000000) from sales where id < 1"),
            (TextRows{{"99999999999999999990000000000000000000"}}));
  EXPECT_EQ(Rows("select sum(case when id = 0 then " + most + " else 1 end) from sales where id < 1"),
            (TextRows{{most}}));
  EXPECT_EQ(
      Error("select sum(case when id = 0 then " + most + " else 1 end) from sales where id < 2").sqlstate,
      "22003");
  EXPECT_EQ(Rows("select sum(case when id = 0 then -" + most + " else -1 end) from sales where id < 1"),
            (TextRows{{"-" + most}}));
  EXPECT_EQ(
      Error("select sum(case when id = 0 then -" + most + " else -1 end) from sales where id < 2").sqlstate,
      "22003");
  EXPECT_EQ(Rows("select max(id) + " + most + " from sales where id < 1"), (TextRows{{most}}));
  EXPECT_EQ(Error("select max(id) + " + most + " from sales where id < 2").sqlstate, "22003");
}

TEST_F(QueryNumbersTest, ExtremesOfLimitAndAverage) {
  EXPECT_EQ(Rows("select id from sales order by id limit 9223372036854775807").size(), 1000u);
  EXPECT_EQ(Rows("select id from sales order by id limit 9223372036854775807 offset 1").size(), 999u);
  EXPECT_EQ(Rows("select avg(id * 10000000000000000000000000000.0) from sales"),
            (TextRows{{"4995000000000000000000000000000.0"}}));
  EXPECT_EQ(Rows("select avg(item) from sales where id in (1, 2)"), (TextRows{{"1.5000000000000000"}}));
  EXPECT_EQ(Rows("select avg(0 - id) from sales where id < 3 and id > 0 or id = 5"),
            (TextRows{{"-2.6666666666666667"}}));
}

}  // namespace
}  // namespace nam::testing
