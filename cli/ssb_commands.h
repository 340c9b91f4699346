#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "localcluster/connect.h"
#include "workload/ssb_data.h"

namespace nam::cli {

struct SsbGenerateOptions {
  SsbSource source;
  std::string out;
  std::vector<std::string> tables;  // none: all
  bool replace = false;
};

struct SsbLoadOptions {
  ClusterOptions cluster;
  SsbSource source;
  uint64_t block_bytes = 0;  // 0: the loader's default
  bool replace = false;
};

struct SsbRunOptions {
  ClusterOptions cluster;
  std::vector<std::string> queries;  // none: all 13
  int repeat = 5;
  std::string format = "table";
  std::string html;  // a page with plots is written there
  bool check = false;
  SsbSource source;  // what the cluster was loaded with; for the check
};

int RunSsbGenerate(const SsbGenerateOptions& options);
int RunSsbLoad(const SsbLoadOptions& options);
/// kExitCheckFailed if an answer is wrong.
int RunSsbRun(const SsbRunOptions& options);

}  // namespace nam::cli
