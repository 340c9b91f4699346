#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/store.h"
#include "proto/catalog.pb.h"

namespace nam::catalog {

/// The initial contents of a cluster that is restored from another cluster's tables.
struct RestoredCluster {
  std::string name;
  std::string fabric;
  /// As GetTable returns them, without record tables. Their remote pointers stay valid.
  std::vector<proto::Table> tables;
  /// By storage id: the data directory on which a memory server is to be started.
  std::map<uint32_t, std::string> directories;
  /// The number of the file with the rows of record tables; 0: there is none.
  uint64_t saved_records = 0;
};

/// Creates the store of a new cluster at `path`. ALREADY_EXISTS if there is a store. The new store has a
/// random number of its own, so each of the two clusters refuses the other's members, marks and data
/// directories. Its epochs begin with the first start of its catalog. Ids that the tables name are never
/// handed out again.
absl::StatusOr<ClusterIdentity> MakeRestoredStore(const std::string& path, const RestoredCluster& cluster);

}  // namespace nam::catalog
