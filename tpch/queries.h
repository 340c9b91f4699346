#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nam::tpch {

struct Query {
  std::string id;   // `Q1` … `Q22`
  std::string sql;  // without a closing semicolon; runs unmodified in PostgreSQL and DuckDB
};

/// The 22 queries as the specification writes them (2.4); Q15 by WITH instead of a view, which has the same
/// meaning. Substitution parameters are those of the qualification database (their "validation values"), or,
/// given a seed, random ones from the specification's ranges.
std::vector<Query> Queries(double scale_factor, std::optional<uint64_t> seed);

}  // namespace nam::tpch
