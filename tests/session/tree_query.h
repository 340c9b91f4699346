#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plan/expression.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "tests/sql/logical_results.h"
#include "types/sql_error.h"
#include "types/wire.h"

/// Queries of any form, by the session of a cluster whose compute servers have the tables.
namespace nam::testing {

using session::ResultSet;
using sql::LogicalResults;

class TreeQueryTest : public ::testing::Test {
 protected:
  explicit TreeQueryTest(const InProcessCluster::Options& options = {.compute_servers = 2})
      : cluster_(options) {}

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
    size_t refused = 0;  // of those that were generated at random
    for (const LogicalResults::Query& query : results.queries) {
      // It is open which of several equal rows an OFFSET leaves out.
      if (other_ties_ && absl::StrContains(query.text, "with ties")) continue;
      SCOPED_TRACE(query.text);
      const auto result = cluster_.session().Execute(query.text);
      if (!result.ok()) {
        const auto error = SqlErrorOf(result.status());
        const std::string state = error.has_value() ? error->sqlstate : "";
        if (state == "0A000" && query.mark != '!') ++refused;
        if (state == "0A000") continue;
        EXPECT_EQ(state, query.error) << result.status();
        continue;
      }
      EXPECT_EQ(query.error, "");
      std::vector<plan::logical::Column> columns;
      for (const ResultSet::Column& column : result->columns)
        columns.push_back({.ref = {}, .name = column.name, .type = column.type});
      EXPECT_EQ(sql::Difference(query, columns, result->rows), "");
    }
    EXPECT_LE(refused * 40, results.queries.size());
  }

  InProcessCluster cluster_;
  bool other_ties_ = false;  // equal rows come in another order than in the results
};

/// Groups of columnar tables go by parts to a further stage even if they are few.
class TreeQueryByPartsTest : public TreeQueryTest {
 protected:
  explicit TreeQueryByPartsTest(const InProcessCluster::Options& options = {.compute_servers = 2,
                                                                            .always_by_parts = true})
      : TreeQueryTest(options) {
    EXPECT_TRUE(cluster_.session().Execute("set nam.aggregate = rdma").ok());
  }
  /// The memory that memory servers hold once it is `wanted`, or after a minute: memory that a peer may
  /// still be writing to is freed a little later.
  uint64_t UsedAtLast(uint64_t wanted) {
    Clock& clock = cluster_.attachment().fabric().clock();
    const Deadline deadline = clock.After(60'000'000);
    while (cluster_.UsedBytes() != wanted && !clock.Passed(deadline)) clock.SleepUntil(clock.After(10'000));
    return cluster_.UsedBytes();
  }
};

}  // namespace nam::testing
