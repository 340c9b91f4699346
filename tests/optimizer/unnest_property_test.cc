#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "optimizer/unnest.h"
#include "sql/logical_binder.h"
#include "tests/sql/logical_results.h"
#include "types/wire.h"

namespace nam::optimizer {
namespace {

using plan::logical::testing::Row;
using plan::logical::testing::Rows;
using plan::logical::testing::TableRows;
using sql::LogicalResults;

Value ValueOfResultTable(const proto::Column& column, std::mt19937_64& random) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const Type type = ColumnTypeOf(column.type());
  if (column.nullable() && below(4) == 0) return Value::Null(type);
  Value value{type, false, 0, {}};
  if (type.kind == TypeKind::kString) {
    constexpr const char* kTexts[] = {"", "ab", "b", "c d", "x"};
    value.text = kTexts[below(5)];
  } else if (type.kind == TypeKind::kBool) {
    value.number = below(2);
  } else if (type.kind == TypeKind::kDecimal) {
    value.number = 75 * (below(9) - 3);
  } else {
    value.number = below(9) - 2;
  }
  return value;
}

/// Any number of rows for the tables of the file; the columns called id count up.
TableRows RowsOfResultTables(const LogicalResults& results, std::mt19937_64& random) {
  TableRows contents;
  for (const auto& [name, table] : results.tables) {
    Rows& rows = contents[name];
    const size_t count = random() % 8;
    for (size_t i = 0; i < count; ++i) {
      Row row;
      for (const proto::Column& column : table->columns()) {
        row.push_back(ValueOfResultTable(column, random));
        if (column.name() == "id") row.back().number = static_cast<int64_t>(i);
      }
      rows.push_back(std::move(row));
    }
  }
  return contents;
}

/// A query of tests/oracle/queries.py means the same without dependent joins, whatever the tables hold.
TEST(UnnestPropertyTest, UnnestedTreesMeanWhatTheyMeant) {
  const LogicalResults results = LogicalResults::Read("tests/sql/logical_random_results.txt");
  const char* set = std::getenv("NAM_SEED");
  const uint64_t seed = set != nullptr ? std::strtoull(set, nullptr, 10) : std::random_device()();
  SCOPED_TRACE(absl::StrCat("NAM_SEED=", seed));
  std::mt19937_64 random(seed);
  size_t compared = 0;
  for (const LogicalResults::Query& query : results.queries) {
    sql::ResultTables tables(results);
    absl::StatusOr<plan::logical::Query> tree = sql::BindLogical(query.text, tables);
    if (!tree.ok()) continue;
    const plan::logical::NodePtr bound = Clone(*tree->root);
    if (!Unnest(*tree).ok()) continue;
    for (int i = 0; i < 3; ++i) {
      const TableRows contents = RowsOfResultTables(results, random);
      plan::logical::Query original;
      original.root = Clone(*bound);
      absl::StatusOr<Rows> expected = plan::logical::testing::Run(original, contents);
      if (!expected.ok()) continue;  // a scalar subquery with two rows that only some rows ask
      absl::StatusOr<Rows> rows = plan::logical::testing::Run(*tree, contents);
      ASSERT_TRUE(rows.ok()) << query.text << "\n" << rows.status();
      std::sort(rows->begin(), rows->end(), plan::logical::testing::Before);
      std::sort(expected->begin(), expected->end(), plan::logical::testing::Before);
      const auto same = [](const Row& a, const Row& b) {
        return !plan::logical::testing::Before(a, b) && !plan::logical::testing::Before(b, a);
      };
      ASSERT_TRUE(std::equal(rows->begin(), rows->end(), expected->begin(), expected->end(), same))
          << query.text << "\n"
          << rows->size() << " rows instead of " << expected->size() << "\n"
          << ToString(*bound) << "unnested\n"
          << ToString(*tree->root);
      ++compared;
    }
  }
  EXPECT_GT(compared, 500u);
}

}  // namespace
}  // namespace nam::optimizer
