#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
  void Load(const LogicalResults& results, const std::string& of_records) {
    for (const auto& [name, table] : results.tables) {
      if (name == of_records) continue;
      SmallTable small{{name, {}, {}, ""}, results.contents.at(name)};
      for (const proto::Column& column : table->columns())
        small.schema.columns.push_back({column.name(), ColumnTypeOf(column.type()), column.nullable()});
      if (!table->columns(0).nullable()) small.schema.partitioning.push_back({table->columns(0).name(), 4});
      const absl::Status loaded =
          testing::Load(cluster_.attachment(), small, {.block_bytes = 2048, .pointer_group = 4});
      ASSERT_TRUE(loaded.ok()) << name << ": " << loaded;
    }
  }

  /// Table u, as transactions write it.
  void WriteRecords(const LogicalResults& results) {
    std::string rows;
    for (const auto& row : results.contents.at("u")) {
      absl::StrAppend(&rows, rows.empty() ? "(" : ", (");
      for (size_t i = 0; i < row.size(); ++i) {
        const bool text = row[i].type.kind == TypeKind::kString;
        const std::string value = row[i].null ? "null" : text ? "'" + row[i].text + "'" : row[i].ToString();
        absl::StrAppend(&rows, i == 0 ? "" : ", ", value);
      }
      rows += ")";
    }
    for (const std::string& statement :
         {std::string(
              "create table u (id int primary key, t_id int, a int, v numeric(10, 2), s varchar(10)) with "
              "(storage = record)"),
          "insert into u values " + rows}) {
      const auto result = cluster_.session().Execute(statement);
      ASSERT_TRUE(result.ok()) << statement << "\n" << result.status();
    }
  }

  void Compare(const std::string& file, bool with_records = false) {
    const LogicalResults results = LogicalResults::Read("tests/sql/" + file);
    Load(results, with_records ? "u" : "");
    if (with_records) WriteRecords(results);
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

/// They are equal as spans, of which one value has many forms.
TEST_F(TreeQueryTest, IntervalsAreNoKeys) {
  const std::string from = " from (values (1, interval '1 day'), (2, interval '24 hours')) v (n, i)";
  for (const std::string& query :
       {"select i, count(*)" + from + " group by i", "select distinct i" + from,
        "select n" + from + " order by i", "select n, rank() over (partition by i)" + from,
        "select n, rank() over (order by i)" + from, "select i" + from + " union select i" + from,
        "select distinct on (i) n" + from}) {
    const auto result = cluster_.session().Execute(query);
    ASSERT_FALSE(result.ok()) << query;
    EXPECT_EQ(SqlErrorOf(result.status()).value_or(SqlError{}).sqlstate, "0A000") << query << result.status();
  }
  // Compared one by one they are what they are.
  const auto joined = cluster_.session().Execute(
      "select count(*) from (values (interval '1 day')) a (i) join (values (interval '24 "
      "hours')) b (i) on a.i = b.i");
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->rows[0][0].ToString(), "1");
}

TEST_F(TreeQueryTest, ResultsAreThoseOfPostgreSql) {
  Compare("logical_results.txt");
}

/// One of the tables is of records.
TEST_F(TreeQueryTest, ResultsOverRecordsAreThoseOfPostgreSql) {
  Compare("logical_results.txt", true);
}

TEST_F(TreeQueryTest, RandomResultsOverRecordsAreThoseOfPostgreSql) {
  Compare("logical_random_results.txt", true);
}

TEST_F(TreeQueryTest, RandomResultsAreThoseOfPostgreSql) {
  Compare("logical_random_results.txt");
}

}  // namespace
}  // namespace nam::testing
