#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "catalog/missing_servers.h"
#include "proto/catalog.pb.h"

namespace nam::session {

/// The memory server that blocks statements on these tables; a buried one first, for which waiting is
/// useless.
struct MissingServerOfTable {
  std::string table;
  bool record = false;  // a record table: it cannot be loaded again
  catalog::MissingServer server;
};
std::optional<MissingServerOfTable> FindMissingServer(
    const std::vector<std::shared_ptr<const proto::Table>>& tables, const proto::Cluster& cluster);

/// The error of a statement that needs it: 57P03, to be retried, for a suspect; XX001 for a buried one.
absl::Status MissingServerError(const MissingServerOfTable& missing, const proto::Cluster& cluster);

}  // namespace nam::session
