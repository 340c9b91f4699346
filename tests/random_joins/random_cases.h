#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace nam::testing {

/// Random joins and group-bys on the engine and on SQLite.
///
///     seed ─▶ set 0: cluster of drawn fabric and shape, tables ─▶ case 0, 1, …: query, settings
///             set 1: …                                                          ─▶ same rows?
///
/// A case follows from the seed and its number alone, so each can be run again by itself.
struct RandomCasesOptions {
  uint64_t seed = 1;
  uint64_t first = 0;  // the first case
  uint64_t cases = 100;
  uint64_t cases_of_a_set = 250;
  std::vector<fabric::Kind> fabrics;  // a set draws one of them; repeated ones more often
  uint64_t failures_max = 1;          // the run ends after this many failures
  bool verbose = false;               // prints each statement before it runs
};

struct RandomCasesResult {
  uint64_t cases = 0;
  uint64_t failures = 0;
  uint64_t rows = 0;                          // those that were compared
  uint64_t empty = 0;                         // cases without any
  uint64_t too_slow = 0;                      // queries that took SQLite too long: others were drawn
  uint64_t not_understood = 0;                // the same, for queries that SQLite refused
  uint64_t timed_out = 0;                     // cases that took the engine too long
  std::map<std::string, uint64_t> refused;    // by SQLSTATE: cases that the engine's bounds ended
  std::map<std::string, uint64_t> by_fabric;  // cases
  double engine_s = 0, sqlite_s = 0, setup_s = 0;

  std::string Summary() const;
};

/// Writes to `out` the failures, with all that is needed to run them again, and every ten seconds the
/// progress.
RandomCasesResult RunRandomCases(const RandomCasesOptions& options, std::ostream& out);

}  // namespace nam::testing
