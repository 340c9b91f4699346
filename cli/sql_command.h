#pragma once

#include <string>
#include <vector>

#include "localcluster/connect.h"

namespace nam::cli {

struct SqlOptions {
  ClusterOptions cluster;
  std::vector<std::string> commands;  // -c, in order
  std::vector<std::string> files;     // -f, in order; `-` is standard input
  std::string format = "table";
  std::string null_text;
  bool expanded = false;
  bool timing = false;
  bool keep_going = false;
};

/// `nam sql`: the shell on a terminal, a script otherwise.
int RunSql(const SqlOptions& options);

}  // namespace nam::cli
