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

/// The 22 queries of the specification (2.4), with Q15's view written as an equivalent WITH. Substitution
/// parameters are those of the qualification database (the "validation values"), or, given a seed, random
/// ones from the specification's ranges.
std::vector<Query> Queries(double scale_factor, std::optional<uint64_t> seed);

}  // namespace nam::tpch
