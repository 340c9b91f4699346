#pragma once

#include <array>
#include <string_view>

namespace nam::ssb {

struct Query {
  std::string_view id;   // "Q1.1" … "Q4.3"
  std::string_view sql;  // without a closing semicolon; runs unmodified in PostgreSQL, SQLite and DuckDB
};

/// The benchmark's 13 queries (revision 3), in order. Rows that tie in flight 3's ORDER BY may come in any
/// order: compare sorted results.
const std::array<Query, 13>& Queries();
/// Null if there is none. Also accepts `q2.1` and `2.1`.
const Query* FindQuery(std::string_view id);

}  // namespace nam::ssb
