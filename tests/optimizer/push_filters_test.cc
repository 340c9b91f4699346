#include "optimizer/push_filters.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "optimizer/unnest.h"
#include "sql/logical_binder.h"
#include "tests/sql/fake_tables.h"

namespace nam::optimizer {
namespace {

using Texts = std::vector<std::string>;

/// The operators at which the filters of a query are evaluated.
Texts BelowFilters(const std::string& text) {
  sql::FakeTables tables;
  auto query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  if (!query.ok()) return {};
  EXPECT_EQ(Unnest(*query), absl::OkStatus());
  PushFilters(*query);
  EXPECT_EQ(CheckTree(*query, true), absl::OkStatus()) << ToString(*query->root);
  Texts below;
  bool filter = false;
  for (const absl::string_view line : absl::StrSplit(ToString(*query->root), '\n')) {
    const absl::string_view words = absl::StripLeadingAsciiWhitespace(line);
    if (filter) below.emplace_back(words.substr(0, words.find(' ')));
    filter = absl::StartsWith(words, "Filter");
  }
  return below;
}

TEST(PushFiltersTest, NamesOfASelectListBecomeWhatTheyStandFor) {
  EXPECT_EQ(BelowFilters("select q from (select 100 / n as q, n from t) x where n <> 0"), Texts{"Scan"});
  EXPECT_EQ(BelowFilters("select q from (select n + 1 as q from t) x where q > 5 and q < 10"), Texts{"Scan"});
  EXPECT_EQ(BelowFilters("select q from (select q from (select n as q from t) y) x where q = 5"),
            Texts{"Scan"});
}

TEST(PushFiltersTest, WhatMayFailIsComputedOnce) {
  EXPECT_EQ(BelowFilters("select q from (select 100 / n as q from t) x where q > 5"), Texts{"Project"});
  EXPECT_EQ(BelowFilters("select q from (select 100 % n as q from t) x where q > 5"), Texts{"Project"});
  EXPECT_EQ(BelowFilters("select q from (select abs(n) as q from t) x where q > 5"), Texts{"Project"});
}

TEST(PushFiltersTest, ConditionsThatMayFailDoNotPassOthers) {
  EXPECT_EQ(BelowFilters("select n from (select n, abs(n) as c from t) x where c <> 0 and 100 / n > 5"),
            Texts{"Project"});
  EXPECT_EQ(BelowFilters("select n from (select n, abs(n) as c from t) x where c <> 0 and n > 5"),
            (Texts{"Project", "Scan"}));
}

TEST(PushFiltersTest, UnionsAndOrdersArePassed) {
  EXPECT_EQ(BelowFilters("select n from (select n from t union all select t_id from u) x where n > 5"),
            (Texts{"Scan", "Scan"}));
  EXPECT_EQ(BelowFilters("select n from (select n from t order by id) x where n > 5"), Texts{"Scan"});
  EXPECT_EQ(BelowFilters("select n from (select distinct n from t) x where n > 5"), Texts{"Scan"});
}

TEST(PushFiltersTest, FirstRowsAreChosenBefore) {
  EXPECT_EQ(BelowFilters("select n from (select n from t order by id limit 3) x where n > 5"),
            Texts{"Limit"});
  EXPECT_NE(BelowFilters("select n from (select distinct on (id) n from t order by id, n) x where n > 5"),
            Texts{"Scan"});
  EXPECT_NE(BelowFilters("select n from (select n from t except select t_id from u) x where n > 5"),
            (Texts{"Scan", "Scan"}));
}

TEST(PushFiltersTest, WindowsArePassedByWholePartitions) {
  const std::string of = "select * from (select n, id, count(*) over (partition by n) as c from t) x where ";
  EXPECT_EQ(BelowFilters(of + "n > 5"), Texts{"Scan"});
  EXPECT_EQ(BelowFilters(of + "id > 5"), Texts{"Window"});
  EXPECT_EQ(BelowFilters(of + "c > 5"), Texts{"Window"});
}

TEST(PushFiltersTest, OuterJoinsMatchRowsThatAreLeft) {
  EXPECT_EQ(BelowFilters("select t.id from t left join u on t.id = u.t_id and u.price > 5"), Texts{"Scan"});
  EXPECT_EQ(BelowFilters("select t.id from t left join u on t.id = u.t_id where u.price > 5"), Texts{"Join"});
  EXPECT_EQ(BelowFilters("select t.id from t full join u on t.id = u.t_id and u.price > 5"), Texts{});
}

/// Each level doubles the expression.
TEST(PushFiltersTest, ConditionsDoNotGrowWithoutEnd) {
  std::string from = "t";
  for (int level = 0; level < 60; ++level) from = "(select n + n as n from " + from + ") x";
  EXPECT_EQ(BelowFilters("select n from " + from + " where n > 5"), Texts{"Project"});
}

/// The conditions of the first join of the tree.
std::string JoinConditions(const std::string& text) {
  sql::FakeTables tables;
  auto query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  if (!query.ok()) return {};
  EXPECT_EQ(Unnest(*query), absl::OkStatus());
  PushFilters(*query);
  for (const absl::string_view line : absl::StrSplit(ToString(*query->root), '\n')) {
    const size_t join = line.find("Join");
    if (join != absl::string_view::npos) return std::string(line.substr(join));
  }
  return {};
}

TEST(PushFiltersTest, WhatAlternativesHaveInCommonIsTheKeyOfAJoin) {
  const std::string joined = JoinConditions(
      "select 1 from t, u where (t.id = u.t_id and t.n = 1 and u.id = 2) or (t.id = u.t_id and t.n = 3 and "
      "u.id = 4)");
  const std::string apart = JoinConditions(
      "select 1 from t, u where t.id = u.t_id and (t.n = 1 and u.id = 2 or t.n = 3 and u.id = 4)");
  EXPECT_EQ(joined, apart);
  // An alternative without a condition makes the rest true.
  EXPECT_EQ(JoinConditions("select 1 from t, u where t.id = u.t_id or (t.id = u.t_id and t.n = u.id)"),
            JoinConditions("select 1 from t, u where t.id = u.t_id"));
}

TEST(PushFiltersTest, WhatAlternativesSayOfOneTableFiltersIt) {
  EXPECT_EQ(BelowFilters(
                "select 1 from t, u where t.id = u.t_id and (t.n = 1 and u.id = 2 or t.n = 3 and u.id = 4)"),
            (Texts{"Scan", "Scan"}));
  // One alternative has no condition on u.
  EXPECT_EQ(BelowFilters("select 1 from t, u where t.id = u.t_id and (t.n = 1 and u.id = 2 or t.n = 3)"),
            Texts{"Scan"});
  // A condition that may fail is not checked before the one that keeps it from failing.
  EXPECT_EQ(BelowFilters("select 1 from t, u where t.id = u.t_id and "
                         "(u.id <> 0 and 100 / t.n = 1 or u.id = 2 and 100 / t.n = 1)"),
            Texts{"Scan"});
}

}  // namespace
}  // namespace nam::optimizer
