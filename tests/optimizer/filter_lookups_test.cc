#include "optimizer/filter_lookups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "optimizer/push_filters.h"
#include "optimizer/unnest.h"
#include "sql/logical_binder.h"
#include "tests/plan/logical_run.h"
#include "tests/sql/fake_tables.h"
#include "types/wire.h"

namespace nam::optimizer {
namespace {

using plan::logical::testing::Row;
using plan::logical::testing::Rows;
using plan::logical::testing::TableRows;

/// The fake tables t and u; each row of t has an id of its own.
class UniqueTables final : public sql::TableSource {
 public:
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override {
    NAM_ASSIGN_OR_RETURN(const auto plain, fake_.Find(name));
    auto table = std::make_shared<proto::Table>(*plain);
    table->set_rows(1000);
    for (proto::Column& column : *table->mutable_columns()) {
      column.set_distinct(10);
      column.set_unique(name == "t" && column.name() == "id");
    }
    return table;
  }
  std::vector<std::string> Names() override { return fake_.Names(); }

 private:
  sql::FakeTables fake_;
};

plan::logical::Query BoundToUniqueTables(const std::string& text) {
  UniqueTables tables;
  absl::StatusOr<plan::logical::Query> query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  if (!query.ok()) return {.root = plan::logical::MakeOneRow()};
  EXPECT_EQ(Unnest(*query), absl::OkStatus()) << text;
  PushFilters(*query);
  return *std::move(query);
}

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

Value ValueOfUniqueTable(const proto::Column& column, std::mt19937_64& random) {
  const Type type = ColumnTypeOf(column.type());
  if (column.nullable() && random() % 4 == 0) return Value::Null(type);
  Value value{type, false, static_cast<int64_t>(random() % 6), {}};
  if (type.kind == TypeKind::kString) value.text = random() % 2 == 0 ? "a" : "b";
  if (type.kind == TypeKind::kBool) value.number = static_cast<int64_t>(random() % 2);
  if (type.kind == TypeKind::kDecimal) value.number *= 25;
  return value;
}

TableRows RowsOfUniqueTables(std::mt19937_64& random) {
  UniqueTables tables;
  TableRows contents{{"r", {}}};
  for (const std::string name : {"t", "u"}) {
    const auto table = *tables.Find(name);
    Rows& rows = contents[name];
    for (size_t i = 0, count = random() % 12; i < count; ++i) {
      Row row;
      for (const proto::Column& column : table->columns()) row.push_back(ValueOfUniqueTable(column, random));
      row[0].number = static_cast<int64_t>(i);
      rows.push_back(std::move(row));
    }
  }
  return contents;
}

TEST(FilterLookupsTest, TheRowsStay) {
  const char* set = std::getenv("NAM_SEED");
  const uint64_t seed = set != nullptr ? std::strtoull(set, nullptr, 10) : std::random_device()();
  SCOPED_TRACE(absl::StrCat("NAM_SEED=", seed));
  std::mt19937_64 random(seed);
  size_t with_rows = 0;
  for (const std::vector<std::string>* texts : {&kFiltered, &kLeft}) {
    for (const std::string& text : *texts) {
      const plan::logical::Query before = BoundToUniqueTables(text);
      plan::logical::Query after = BoundToUniqueTables(text);
      FilterLookups(after);
      for (int i = 0; i < 100; ++i) {
        const TableRows contents = RowsOfUniqueTables(random);
        absl::StatusOr<Rows> expected = plan::logical::testing::Run(before, contents);
        absl::StatusOr<Rows> rows = plan::logical::testing::Run(after, contents);
        ASSERT_EQ(rows.status(), expected.status()) << text;
        if (!rows.ok()) continue;
        const auto less = plan::logical::testing::Before;
        std::sort(rows->begin(), rows->end(), less);
        std::sort(expected->begin(), expected->end(), less);
        const auto same = [&](const Row& a, const Row& b) { return !less(a, b) && !less(b, a); };
        ASSERT_TRUE(std::equal(rows->begin(), rows->end(), expected->begin(), expected->end(), same))
            << text << "\n"
            << ToString(*before.root) << ToString(*after.root);
        if (!rows->empty()) ++with_rows;
      }
    }
  }
  EXPECT_GT(with_rows, 500u);
}

}  // namespace
}  // namespace nam::optimizer
