#pragma once

#include <string>

#include "absl/status/status.h"
#include "localcluster/local_cluster.h"
#include "localcluster/stop_signals.h"

namespace nam {

/// Work of a command as a client of its own cluster. One thread runs it; another one may cancel it.
class ClusterWork {
 public:
  virtual ~ClusterWork() = default;
  virtual absl::Status Run() = 0;
  /// Any thread; makes Run return soon.
  virtual void Cancel() = 0;
};

/// Runs the work on its own thread until it is done, a signal comes or a server ends:
///
///     Run ──done──────────────────────────▶ Stop ─▶ the work's status
///      └──signal, or a server that ended──▶ Cancel ─▶ Stop ─▶ CANCELLED, or UNAVAILABLE
///
/// The cluster is stopped in every case. If the work ignores Cancel, the process ends after `directory` is
/// removed.
absl::Status RunClusterWork(LocalCluster& cluster, ClusterWork& work, StopSignals& stop,
                            const std::string& directory);

}  // namespace nam
