#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/tuple_table.h"
#include "bench/turns.h"
#include "terminal/json_report.h"

namespace nam::bench {

/// What all contenders load, and the answer, computed without the measured algorithms.
struct CaseData {
  std::vector<TupleTable> tables;
  Rows expected;
};

/// A query over one benchmark's tables, the same text for all SQL systems.
struct AlgorithmCase {
  std::string title;    // `16M tuples, selectivity 0.5`
  Json settings;        // columns of the report
  uint64_t tuples = 0;  // of all tables, the measure of speed
  std::string sql;
  std::function<CaseData()> make;
};

struct JoinCase {
  uint64_t tuples = 0;  // per relation
  double selectivity = 1;
  double zipf = 0;
  uint64_t s_tuples = 0;  // 0: as many as R
};
/// R ⋈ S on their keys (bench/join_input.h), counted and summed.
AlgorithmCase CaseOf(JoinCase with, uint64_t seed, int threads);

struct AggregateCase {
  uint64_t tuples = 0;
  uint64_t groups = 0;  // at most `tuples`
  bool dense = true;
};
/// A table of values, grouped by keys and summed. Every group has the same number of tuples, or one more, in
/// random places. Keys are dense, from 1 to the number of groups as in the papers, or random 31-bit numbers.
AlgorithmCase CaseOf(const AggregateCase& with, uint64_t seed, int threads);

}  // namespace nam::bench
