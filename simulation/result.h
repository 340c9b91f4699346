#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nam::simulation {

struct RunResult {
  uint64_t seed = 0;
  std::string workload;
  bool in_place = false;
  int statements = 0;  // queries, or transactions
  int right = 0;       // correct answers, or commits
  int clean_errors = 0;
  int aborts = 0;
  int loads = 0;                      // complete loads of all tables
  std::map<std::string, int> faults;  // injected, by kind
  std::map<std::string, int> errors;  // of statements and loads, by code
  double virtual_ms = 0;
  uint64_t trace_hash = 0;
  uint64_t trace_events = 0;
  /// Wrong answers, lost commits, unclean errors, slow statements, leaked memory. Empty on success.
  std::vector<std::string> failures;
};

}  // namespace nam::simulation
