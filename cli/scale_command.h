#pragma once

#include <string>

namespace nam::cli {

struct ScaleOptions {
  std::string state_dir;  // empty: DefaultStateDirectory()
  std::string catalog;    // of a cluster that is not local: refused
  int compute_servers = 1;
};

/// Starts more compute servers of the local cluster, under its supervisor (cluster_commands.h).
int RunScaleOut(const ScaleOptions& options);
/// Stops its youngest compute servers. Each finishes its work under way and leaves the rest of queries to
/// others.
int RunScaleIn(const ScaleOptions& options);

}  // namespace nam::cli
