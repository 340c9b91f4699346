#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "localcluster/connect.h"
#include "workload/benchmark.h"
#include "workload/benchmark_data.h"

namespace nam::cli {

struct BenchmarkGenerateOptions {
  DataSource source;
  std::string out;
  std::vector<std::string> tables;  // none: all
  uint64_t refresh = 0;             // data of so many refreshes instead of the tables
  bool replace = false;
};

struct BenchmarkLoadOptions {
  ClusterOptions cluster;
  DataSource source;
  uint64_t block_bytes = 0;  // 0: the loader's default
  bool replace = false;
};

struct BenchmarkRunOptions {
  ClusterOptions cluster;
  std::vector<std::string> queries;  // none: all
  uint64_t parameters_seed = 0;      // for the queries' random parameters; 0: those of the example answers
  int repeat = 5;
  std::string format = "table";
  std::string html;  // output file for a page with plots
  bool check = false;
  DataSource source;  // what the cluster was loaded with; for the check
};

int RunBenchmarkGenerate(const Benchmark& benchmark, const BenchmarkGenerateOptions& options);
int RunBenchmarkLoad(const Benchmark& benchmark, const BenchmarkLoadOptions& options);
/// kExitCheckFailed if an answer is wrong.
int RunBenchmarkRun(const Benchmark& benchmark, const BenchmarkRunOptions& options);

}  // namespace nam::cli
