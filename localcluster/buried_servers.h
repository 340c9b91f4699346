#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "catalog/client.h"
#include "localcluster/local_cluster.h"

namespace nam {

/// Finds processes of a local cluster whose membership has ended: they are stopped, or hang. Others end by
/// themselves when the catalog tells them. The catalog has given up what they held, so killing them loses
/// nothing, and LocalCluster::Tend replaces what has ended.
///
///     alive ─▶ suspect ─▶ buried by the catalog ─▶ Look, twice: killed ─▶ Tend: another is started
///
/// Used by the cluster's one thread.
class BuriedServers {
 public:
  using Ask = std::function<absl::StatusOr<proto::Cluster>()>;
  BuriedServers(LocalCluster& cluster, Ask ask);

  /// When to look again.
  Deadline next() const { return next_; }
  /// Asks for the members, and returns what it has killed, for the log: processes that were no members at the
  /// last look, either. Without an answer nothing happens.
  std::vector<std::string> Look();

 private:
  LocalCluster& cluster_;
  const Ask ask_;
  Deadline next_;
  std::set<std::string> gone_;  // ids that were no members at the last look
};

/// Asks the catalog, for at most a second.
BuriedServers::Ask AskCatalog(catalog::ClientOptions options);

}  // namespace nam
