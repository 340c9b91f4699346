#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "catalog/missing_servers.h"
#include "proto/catalog.pb.h"

namespace nam::session {

/// The memory server that keeps statements on these tables from running; first one that is buried, for which
/// nobody need wait.
struct MissingServerOfTable {
  std::string table;
  catalog::MissingServer server;
};
std::optional<MissingServerOfTable> FindMissingServer(
    const std::vector<std::shared_ptr<const proto::Table>>& tables, const proto::Cluster& cluster);

/// What the statement that needs it ends with: 57P03, run it again, for a suspect; XX001 for one that is
/// buried.
absl::Status MissingServerError(const MissingServerOfTable& missing, const proto::Cluster& cluster);

}  // namespace nam::session
