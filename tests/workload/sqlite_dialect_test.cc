#include "workload/sqlite_dialect.h"

#include "gtest/gtest.h"

namespace nam {
namespace {

TEST(SqliteDialectTest, DatesWithIntervals) {
  EXPECT_EQ(SqliteText("d <= date '1998-12-01' - interval '90' day"), "d <= '1998-09-02'");
  EXPECT_EQ(SqliteText("d >= date '1993-10-01'\n and d < date '1993-10-01' + interval '3' month"),
            "d >= '1993-10-01'\n and d < '1994-01-01'");
  EXPECT_EQ(SqliteText("date '1994-01-01' + interval '1' year"), "'1995-01-01'");
  EXPECT_EQ(SqliteText("date '1996-01-31' + interval '1' month"), "'1996-02-29'");
}

TEST(SqliteDialectTest, TheOtherForms) {
  EXPECT_EQ(SqliteText("between 0.06 - 0.01 and 0.06 + 0.01"), "between 0.05 and 0.07");
  EXPECT_EQ(SqliteText("extract(year from o_orderdate)"), "cast(substr(o_orderdate, 1, 4) as integer)");
  EXPECT_EQ(SqliteText("substring(c_phone from 1 for 2)"), "substr(c_phone, 1, 2)");
  EXPECT_EQ(SqliteText("from (select a, count(b)\nfrom t group by a) as x (c, d)"),
            "from (select a as c, count(b) as d\nfrom t group by a) as x");
  EXPECT_EQ(SqliteText("select 1.06 - 0.5 from t"), "select 1.06 - 0.5 from t");
}

}  // namespace
}  // namespace nam
