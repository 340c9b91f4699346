#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/store.h"
#include "proto/catalog.pb.h"

namespace nam::catalog {

/// What a cluster begins with that is made of another one's tables.
struct RestoredCluster {
  std::string name;
  std::string fabric;
  /// As GetTable tells them, but no record tables: their pointers keep their meaning.
  std::vector<proto::Table> tables;
  /// Data directories by storage id, where servers are to be started.
  std::map<uint32_t, std::string> directories;
};

/// Makes the store of a new cluster at `path`, where no file is. It is another store than the former one's,
/// so that members, marks and data directories of each are refused by the other; its epochs begin with the
/// first start of its catalog. No id that tables name is given out again.
absl::StatusOr<ClusterIdentity> MakeRestoredStore(const std::string& path, const RestoredCluster& cluster);

}  // namespace nam::catalog
