#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/random_joins/draw.h"
#include "tests/random_joins/random_tables.h"

namespace nam::testing {

/// A SELECT in pieces, so that a failing one can be made smaller by leaving some out.
struct RandomQuery {
  struct Join {
    std::string kind;  // `left join`; empty for the first item
    std::string item;  // `t1 a2`, `(select …) a2`
    std::vector<std::string> on;
  };
  struct Output {
    std::string text;
    bool approximate = false;  // an average
  };

  std::vector<std::string> with;  // `w1 as (select …)`
  std::vector<Join> from;
  std::vector<std::string> where;
  std::vector<Output> outputs;
  std::vector<std::string> group_by;
  std::vector<std::string> having;
  bool distinct = false;
  bool ordered = false;  // by all outputs
  int limit = -1;        // for ordered queries

  std::string Text() const;
  std::vector<bool> Approximate() const;
};

/// Draws a query of 1 to 4 tables that means the same to the engine and to SQLite:
///
/// - no division, no overflow, nothing that depends on the order of evaluation;
/// - LIMIT comes with an order of all outputs, and NULLs' places are said;
/// - averages stand where nothing is compared with them.
RandomQuery DrawQuery(Draw& draw, const std::vector<SmallTable>& tables);

/// The smallest query that can be made of this one by leaving pieces out, one after the other, and that still
/// `fails`, after at most `tries_max` calls.
RandomQuery Shrink(RandomQuery query, int tries_max, const std::function<bool(const RandomQuery&)>& fails);

}  // namespace nam::testing
