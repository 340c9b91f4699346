#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

namespace nam::testing {

/// Exact answers on data that a reader can follow.
class QueryTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new InProcessCluster({});
    SmallTable sales{{"sales",
                      {{"id", Type::Integer()},
                       {"item", Type::Integer(), true},
                       {"price", Type::Decimal(2)},
                       {"big", Type::Integer()},
                       {"day", Type::Date()},
                       {"note", Type::String(10), true}},
                      {{"item", 4}},
                      "day"},
                     {}};
    for (int i = 0; i < 1000; ++i) {
      sales.rows.push_back(
          {Value::Integer(i), i % 10 == 9 ? Value::Null(Type::Integer()) : Value::Integer(i % 10),
           Value::Decimal(i * 25 + 1, 2), Value::Integer(INT64_MAX - i), Value::Date(8035 + i % 400),
           i % 7 == 0 ? Value::Null(Type::String()) : Value::String(i % 2 == 0 ? "even" : "odd")});
    }
    SmallTable items{{"items", {{"item", Type::Integer()}, {"name", Type::String(8)}}, {{"item", 4}}, ""},
                     {}};
    for (int i = 0; i < 9; ++i)
      items.rows.push_back({Value::Integer(i), Value::String("item" + std::to_string(i))});
    SmallTable empty{{"empty", {{"k", Type::Integer()}, {"s", Type::String(4)}}, {{"k", 4}}, ""}, {}};
    for (const SmallTable* table : {&sales, &items, &empty}) {
      const absl::Status status =
          Load(cluster_->attachment(), *table, {.block_bytes = 2048, .pointer_group = 4});
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  TextRows Rows(const std::string& sql) {
    auto result = cluster_->session().Execute(sql);
    EXPECT_TRUE(result.ok()) << sql << "\n" << result.status();
    return result.ok() ? ToText(*result) : TextRows();
  }
  SqlError Error(const std::string& statement) {
    const auto result = cluster_->session().Execute(statement);
    EXPECT_FALSE(result.ok()) << statement;
    const auto error = SqlErrorOf(result.status());
    EXPECT_TRUE(error.has_value()) << result.status();
    return error.value_or(SqlError{});
  }
  static inline InProcessCluster* cluster_ = nullptr;
};

}  // namespace nam::testing
