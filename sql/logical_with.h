#pragma once

#include <vector>

#include "absl/status/status.h"
#include "plan/logical.h"
#include "sql/logical_query.h"
#include "sql/parse_tree.h"

namespace nam::sql {

/// The WITH queries before one query, or before a statement that changes rows. Lives as long as its binding.
class WithBinder {
 public:
  WithBinder(LogicalContext& context, const Surroundings& around) : context_(context), level_(around.level) {
    tables_.outer = around.ctes;
  }
  WithBinder(const WithBinder&) = delete;
  WithBinder& operator=(const WithBinder&) = delete;

  absl::Status Bind(const Node& with);

  /// The body, inside the definitions that it uses twice; those that it uses once are inlined.
  plan::logical::NodePtr Around(plan::logical::NodePtr body);

  /// The body's common tables.
  CommonTables& tables() { return tables_; }

 private:
  struct Definition {
    plan::logical::NodePtr root;
    bool materialized = false;
  };

  absl::Status BindOne(const Node& cte);

  LogicalContext& context_;
  const ScopeLevel* const level_;
  CommonTables tables_;
  std::vector<Definition> definitions_;
};

}  // namespace nam::sql
