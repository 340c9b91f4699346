#pragma once

#include <string>

#include "localcluster/connect.h"

namespace nam::bench {

struct CalibrateOptions {
  ClusterOptions cluster;
  int rounds = 5;
  bool no_rows = false;  // skip what needs tables and compute servers
  bool dry_run = false;  // do not store the results in the catalog
  std::string format = "table";
};

/// `nam bench calibrate`: measures the costs of transfers and memory on the running cluster's fabric, and
/// stores them in its catalog for the optimizer. Returns the exit code.
int RunCalibrate(const CalibrateOptions& options);

}  // namespace nam::bench
