#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sql/bound_query.h"
#include "tests/plan/logical_run.h"

namespace nam::sql {

/// Tables, queries and what PostgreSQL returned for them: the file of tests/sql/make_logical_results.py.
struct LogicalResults {
  struct Query {
    std::string text;
    char mark = '~';    // '=': the order counts; '~': it does not; '!': NAM refuses it by name
    std::string error;  // SQLSTATE; empty if it has rows
    std::vector<std::string> rows;
  };
  std::map<std::string, std::shared_ptr<const proto::Table>> tables;
  plan::logical::testing::TableRows contents;
  std::vector<Query> queries;

  /// A test failure if the file does not exist or is no such file.
  static LogicalResults Read(const std::string& path);
};

/// Finds a result file's tables.
class ResultTables : public TableSource {
 public:
  explicit ResultTables(const LogicalResults& results) : results_(results) {}
  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override;
  std::vector<std::string> Names() override;

 private:
  const LogicalResults& results_;
};

/// How rows differ from those of the file, by the query's mark; empty if they do not. Numbers of fewer
/// decimals than PostgreSQL's are compared as rounded.
std::string Difference(const LogicalResults::Query& query, const std::vector<plan::logical::Column>& columns,
                       plan::logical::testing::Rows rows);

}  // namespace nam::sql
