#pragma once

#include <cstdint>
#include <string>

namespace nam::cli {

struct SimOptions {
  uint64_t seed = 1;
  int seeds = 1;                   // from `seed` on
  std::string generation = "fdr";  // or a file
  std::string workload = "all";
  std::string faults = "all";
  double scale_factor = 0.002;
  std::string trace;    // file; one seed only
  bool verify = false;  // every seed twice
  std::string format = "table";
};

/// `nam sim`: whole clusters in virtual time, under faults drawn from seeds, every answer checked.
int RunSim(const SimOptions& options);

}  // namespace nam::cli
