#include "optimizer/packed_keys.h"

#include <gtest/gtest.h>

#include <string>

#include "sql/logical_binder.h"
#include "tests/sql/fake_tables.h"

namespace nam::optimizer {
namespace {

/// How often the statement's tree computes a quotient.
size_t Quotients(const std::string& text) {
  sql::FakeTables tables;
  auto query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  if (!query.ok()) return 0;
  EXPECT_EQ(UseKeysOfPackedValues(*query), absl::OkStatus());
  EXPECT_EQ(CheckTree(*query, false), absl::OkStatus());
  const std::string tree = ToString(*query->root);
  size_t found = 0;
  for (size_t at = tree.find(" / "); at != std::string::npos; at = tree.find(" / ", at + 1)) ++found;
  return found;
}

TEST(PackedKeysTest, WhatSeveralPartsReadIsComputedOnce) {
  EXPECT_EQ(Quotients("select sum(price / n) from t"), 1u);
  EXPECT_EQ(Quotients("select sum(price / n), avg(price / n), count(*) from t"), 1u);
  EXPECT_EQ(Quotients("select sum(price / n), avg(rate / n) from t"), 2u);
  EXPECT_EQ(Quotients("select id, var_samp(price / n) from t group by id"), 1u);
  EXPECT_EQ(Quotients("select sum(price / n) filter (where id > 3), sum(price / n) from t"), 2u);
  EXPECT_EQ(Quotients("select price / n, count(*) from t group by price / n"), 1u);
  EXPECT_EQ(Quotients("select id, sum(price / n) over (order by id) from t"), 1u);
  EXPECT_EQ(Quotients("select max(price / n) from t"), 1u);
}

}  // namespace
}  // namespace nam::optimizer
