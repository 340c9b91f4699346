#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "optimizer/push_filters.h"
#include "optimizer/unnest.h"
#include "sql/logical_binder.h"
#include "tests/plan/logical_run.h"
#include "tests/sql/fake_tables.h"
#include "types/wire.h"

/// Trees over two tables, one of which has a unique key, and random rows for them.
namespace nam::optimizer {

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

inline plan::logical::Query BoundToUniqueTables(const std::string& text) {
  UniqueTables tables;
  absl::StatusOr<plan::logical::Query> query = sql::BindLogical(text, tables);
  EXPECT_TRUE(query.ok()) << text << "\n" << query.status();
  if (!query.ok()) return {.root = plan::logical::MakeOneRow()};
  EXPECT_EQ(Unnest(*query), absl::OkStatus()) << text;
  PushFilters(*query);
  return *std::move(query);
}

inline Value ValueOfUniqueTable(const proto::Column& column, std::mt19937_64& random) {
  const Type type = ColumnTypeOf(column.type());
  if (column.nullable() && random() % 4 == 0) return Value::Null(type);
  Value value{type, false, static_cast<int64_t>(random() % 6), {}};
  if (type.kind == TypeKind::kString) value.text = random() % 2 == 0 ? "a" : "b";
  if (type.kind == TypeKind::kBool) value.number = static_cast<int64_t>(random() % 2);
  if (type.kind == TypeKind::kDecimal) value.number *= 25;
  return value;
}

inline plan::logical::testing::TableRows RowsOfUniqueTables(std::mt19937_64& random) {
  UniqueTables tables;
  plan::logical::testing::TableRows contents{{"r", {}}};
  for (const std::string name : {"t", "u"}) {
    const auto table = *tables.Find(name);
    plan::logical::testing::Rows& rows = contents[name];
    for (size_t i = 0, count = random() % 12; i < count; ++i) {
      plan::logical::testing::Row row;
      for (const proto::Column& column : table->columns()) row.push_back(ValueOfUniqueTable(column, random));
      row[0].number = static_cast<int64_t>(i);
      rows.push_back(std::move(row));
    }
  }
  return contents;
}

/// Runs each query over random rows before and after a change of its tree; both must have the same. Returns
/// how often there were any.
inline size_t ExpectSameRows(const std::vector<std::string>& texts,
                             const std::function<void(plan::logical::Query&)>& change) {
  using plan::logical::testing::Row;
  using plan::logical::testing::Rows;
  const char* set = std::getenv("NAM_SEED");
  const uint64_t seed = set != nullptr ? std::strtoull(set, nullptr, 10) : std::random_device()();
  SCOPED_TRACE(absl::StrCat("NAM_SEED=", seed));
  std::mt19937_64 random(seed);
  const auto less = plan::logical::testing::Before;
  const auto same = [&](const Row& a, const Row& b) { return !less(a, b) && !less(b, a); };
  size_t with_rows = 0;
  for (const std::string& text : texts) {
    const plan::logical::Query before = BoundToUniqueTables(text);
    plan::logical::Query after = BoundToUniqueTables(text);
    change(after);
    EXPECT_EQ(CheckTree(after, true), absl::OkStatus()) << text << "\n" << ToString(*after.root);
    for (int i = 0; i < 100; ++i) {
      const plan::logical::testing::TableRows contents = RowsOfUniqueTables(random);
      absl::StatusOr<Rows> expected = plan::logical::testing::Run(before, contents);
      absl::StatusOr<Rows> rows = plan::logical::testing::Run(after, contents);
      EXPECT_EQ(rows.status(), expected.status()) << text;
      if (!rows.ok() || !expected.ok()) continue;
      std::sort(rows->begin(), rows->end(), less);
      std::sort(expected->begin(), expected->end(), less);
      EXPECT_TRUE(std::equal(rows->begin(), rows->end(), expected->begin(), expected->end(), same))
          << text << "\n"
          << ToString(*before.root) << ToString(*after.root);
      if (!rows->empty()) ++with_rows;
      if (::testing::Test::HasFailure()) return with_rows;
    }
  }
  return with_rows;
}

}  // namespace nam::optimizer
