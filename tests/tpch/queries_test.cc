#include "tpch/queries.h"

#include "gtest/gtest.h"
#include "tpch/query_parameters.h"

namespace nam::tpch {
namespace {

TEST(QueriesTest, ValidationValuesWithoutASeed) {
  const std::vector<Query> queries = Queries(1, std::nullopt);
  ASSERT_EQ(queries.size(), 22u);
  EXPECT_EQ(queries[0].id, "Q1");
  EXPECT_NE(queries[0].sql.find("interval '90' day"), std::string::npos);
  EXPECT_NE(queries[18].sql.find("p_brand = 'Brand#34'"), std::string::npos);
  EXPECT_NE(queries[21].sql.find("in ('13', '31', '23', '29', '30', '18', '17')"), std::string::npos);
  for (const Query& query : queries) {
    EXPECT_EQ(query.sql.find(':'), std::string::npos) << query.sql;
    EXPECT_FALSE(query.sql.ends_with(';'));
  }
}

TEST(QueriesTest, TheFractionGoesWithTheScaleFactor) {
  EXPECT_EQ(MakeParameters(1, std::nullopt)["Q11.FRACTION"], "0.0001000000");
  EXPECT_EQ(MakeParameters(10, std::nullopt)["Q11.FRACTION"], "0.0000100000");
  EXPECT_EQ(MakeParameters(0.01, 7)["Q11.FRACTION"], "0.0100000000");
}

TEST(QueriesTest, RandomParametersAreInTheirRanges) {
  const ParameterTexts validation = MakeParameters(1, std::nullopt);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ParameterTexts random = MakeParameters(1, seed);
    ASSERT_EQ(random.size(), validation.size());
    for (const auto& [name, text] : random) {
      ASSERT_TRUE(validation.contains(name)) << name;
      ASSERT_FALSE(text.empty()) << name;
    }
    const int delta = std::stoi(random["Q1.DELTA"]);
    ASSERT_TRUE(delta >= 60 && delta <= 120);
    ASSERT_NE(random["Q7.NATION1"], random["Q7.NATION2"]);
    ASSERT_NE(random["Q12.SHIPMODE1"], random["Q12.SHIPMODE2"]);
    ASSERT_TRUE(random["Q10.DATE"] >= "1993-02-01" && random["Q10.DATE"] <= "1995-01-01")
        << random["Q10.DATE"];
    ASSERT_TRUE(random["Q4.DATE"] >= "1993-01-01" && random["Q4.DATE"] <= "1997-10-01") << random["Q4.DATE"];
  }
  EXPECT_EQ(MakeParameters(1, 5), MakeParameters(1, 5));
  EXPECT_NE(MakeParameters(1, 5), MakeParameters(1, 6));
}

}  // namespace
}  // namespace nam::tpch
