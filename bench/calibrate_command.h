#pragma once

#include <string>

#include "localcluster/connect.h"

namespace nam::bench {

struct CalibrateOptions {
  ClusterOptions cluster;
  int rounds = 5;
  bool no_rows = false;  // leave out what needs tables and compute servers
  bool dry_run = false;  // the catalog does not get them
  std::string format = "table";
};

/// `nam bench calibrate`: measures what transfers and memory cost on the running cluster's fabric, and stores
/// that in its catalog for the optimizer; the exit code.
int RunCalibrate(const CalibrateOptions& options);

}  // namespace nam::bench
