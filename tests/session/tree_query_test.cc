#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "tests/sql/logical_results.h"
#include "types/sql_error.h"
#include "types/wire.h"

/// Queries of any form, by the session of a cluster whose compute servers have the tables.
namespace nam::testing {
namespace {

using session::ResultSet;
using sql::LogicalResults;

class TreeQueryTest : public ::testing::Test {
 protected:
  void Load(const LogicalResults& results) {
    for (const auto& [name, table] : results.tables) {
      SmallTable small{{name, {}, {}, ""}, results.contents.at(name)};
      for (const proto::Column& column : table->columns())
        small.schema.columns.push_back({column.name(), ColumnTypeOf(column.type()), column.nullable()});
      if (!table->columns(0).nullable()) small.schema.partitioning.push_back({table->columns(0).name(), 4});
      const absl::Status loaded =
          testing::Load(cluster_.attachment(), small, {.block_bytes = 2048, .pointer_group = 4});
      ASSERT_TRUE(loaded.ok()) << name << ": " << loaded;
    }
  }

  void Compare(const std::string& file) {
    const LogicalResults results = LogicalResults::Read("tests/sql/" + file);
    Load(results);
    for (const LogicalResults::Query& query : results.queries) {
      SCOPED_TRACE(query.text);
      const auto result = cluster_.session().Execute(query.text);
      if (!result.ok()) {
        const auto error = SqlErrorOf(result.status());
        const std::string expected = query.mark == '!' ? "0A000" : query.error;
        EXPECT_EQ(error.has_value() ? error->sqlstate : "", expected) << result.status();
        continue;
      }
      EXPECT_EQ(query.error, "");
      std::vector<plan::logical::Column> columns;
      for (const ResultSet::Column& column : result->columns)
        columns.push_back({.ref = {}, .name = column.name, .type = column.type});
      EXPECT_EQ(sql::Difference(query, columns, result->rows), "");
    }
  }

  InProcessCluster cluster_{{.compute_servers = 2}};
};

TEST_F(TreeQueryTest, ResultsAreThoseOfPostgreSql) {
  Compare("logical_results.txt");
}

TEST_F(TreeQueryTest, RandomResultsAreThoseOfPostgreSql) {
  Compare("logical_random_results.txt");
}

}  // namespace
}  // namespace nam::testing
