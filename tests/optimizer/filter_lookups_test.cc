#include "optimizer/filter_lookups.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/optimizer/unique_tables.h"

namespace nam::optimizer {
namespace {

size_t CountScans(const plan::logical::Node& node) {
  size_t scans = node.As<plan::logical::Scan>() != nullptr ? 1 : 0;
  for (const auto& input : node.inputs) scans += CountScans(*input);
  return scans;
}

/// The scans that the rule has added.
size_t Added(const std::string& text) {
  plan::logical::Query query = BoundToUniqueTables(text);
  const size_t before = CountScans(*query.root);
  FilterLookups(query);
  EXPECT_EQ(CheckTree(query, true), absl::OkStatus()) << ToString(*query.root);
  return CountScans(*query.root) - before;
}

/// Queries that the rule must change, with one more scan for each group that it filters.
const std::vector<std::string> kFiltered = {
    // A correlated aggregate, of the key itself and of one that is equal to it.
    "select u.id from t, u where t.id = u.t_id and t.n = 3 and u.price < "
    "(select avg(v.price) from u v where v.t_id = t.id)",
    "select u.id from t, u where t.id = u.t_id and t.n = 3 and u.price < "
    "(select sum(v.price) from u v where v.t_id = u.t_id)",
    // Groups that do not exist count 0.
    "select t.id, (select count(*) from u where u.t_id = t.id) from t where t.n = 3",
    "select t.id from t where t.n = 3 and (select count(v.price) from u v where v.t_id = t.id) = 0",
    // Two keys, of which one is filtered.
    "select u.id from u where u.t_id in (select id from t where n = 3) and u.price > "
    "(select 0.5 * sum(v.price) from u v where v.t_id = u.t_id and v.id = u.id)",
    // Groups that are joined unchanged.
    "select t.id, g.s from t, (select t_id, sum(price) as s from u group by t_id) g where g.t_id = t.id "
    "and t.n = 3",
    "select t.id, g.s from t left join (select t_id, sum(price) as s from u group by t_id having "
    "count(*) > 1) g on g.t_id = t.id where t.n = 3",
    "select t.id from t where t.n = 3 and t.id in (select t_id from u group by t_id having sum(price) > 1)",
    "select t.id from t where t.n = 3 and not exists (select 1 from (select t_id from u group by t_id "
    "having count(*) > 1) g where g.t_id = t.id)",
    // Tables whose rows a join would have to build all.
    "select t.id from t where t.n = 3 and exists (select 1 from u where u.t_id = t.id)",
    "select t.id from t where t.n = 3 and not exists (select 1 from u where u.t_id = t.id)",
    "select t.id from t where t.n = 3 and t.n not in (select u.id from u where u.t_id = t.id)",
    "select t.id, exists (select 1 from u where u.t_id = t.id) from t where t.n = 3",
    "select t.id, u.id from t left join u on u.t_id = t.id where t.n = 3",
    // The rows of the groups are those of a join.
    "select t.id from t where t.n = 3 and t.id < (select sum(v.price) from u v, t w where v.t_id = t.id and "
    "w.id = v.id)",
};

/// Queries that the rule must leave unchanged.
const std::vector<std::string> kLeft = {
    // No filter, or one that leaves most rows.
    "select t.id, (select count(*) from u where u.t_id = t.id) from t",
    "select t.id, (select count(*) from u where u.t_id = t.id) from t where t.n <> 3",
    // The key of the filtered table is not unique.
    "select u.id, (select count(*) from t where t.id = u.t_id) from u where u.price = 0.75",
    // Groups without a partner are rows of the result, too.
    "select g.s from (select * from t where n = 3) t right join (select t_id, sum(price) as s from u group "
    "by t_id) g on g.t_id = t.id",
    "select g.s from (select * from t where n = 3) t full join (select t_id, sum(price) as s from u group "
    "by t_id) g on g.t_id = t.id",
    // The table is about as small, or its size is not known.
    "select t.id from t where t.n = 3 and exists (select 1 from u where u.t_id = t.id and u.price = 1)",
    "select t.id from t where t.n = 3 and exists (select 1 from r where r.id = t.id)",
    // The groups are of few rows.
    "select t.id from t left join (select k, count(*) as c from (values (1), (2)) v (k) group by k) g on "
    "g.k = t.id where t.n = 3",
    "select t.id from t where t.n = 3 and t.id in (select id from r group by id having count(*) > 1)",
    // The tables of an inner join are planned together.
    "select t.id from t, u where t.n = 3 and u.t_id = t.id",
    // A NULL among them counts.
    "select id from t where n = 3 and id not in (select w.n from t w group by w.n)",
    // The filter may fail, and keeps rows of one side of an outer join only.
    "select t.id, (select count(*) from u where u.t_id = t.id) from t where 100 / t.n = 3",
    "select v.id from u v left join (select * from t where n = 3) t on t.id = v.t_id where v.price < "
    "(select sum(w.price) from u w where w.t_id = v.t_id)",
    // The key is no key of the groups, or not of all.
    "select t.id from t, (select t_id, max(id) as m from u group by t_id) g where g.m = t.id and t.n = 3",
    "select t.id from t, (select t_id, sum(price) as s from u group by rollup (t_id)) g where g.t_id = t.id "
    "and t.n = 3",
    // First rows are chosen among all.
    "select t.id from t, (select t_id, sum(price) as s from u group by t_id order by 2 limit 3) g where "
    "g.t_id = t.id and t.n = 3",
};

TEST(FilterLookupsTest, WhatIsLookedUpByKeysOfAFilteredTable) {
  for (const std::string& text : kFiltered) EXPECT_EQ(Added(text), 1u) << text;
}

TEST(FilterLookupsTest, OthersStayWhole) {
  for (const std::string& text : kLeft) EXPECT_EQ(Added(text), 0u) << text;
}

TEST(FilterLookupsTest, TheRowsStay) {
  std::vector<std::string> texts = kFiltered;
  texts.insert(texts.end(), kLeft.begin(), kLeft.end());
  EXPECT_GT(ExpectSameRows(texts, FilterLookups), 500u);
}

}  // namespace
}  // namespace nam::optimizer
