#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "computeserver/query_shape.h"
#include "proto/compute.pb.h"
#include "storage/multicast_stream.h"

namespace nam::computeserver {

/// The build sides of a fragment that come by multicast, all in one stream.
struct MulticastBuild {
  uint32_t member = 0;
  std::vector<storage::MulticastAddress> senders;  // none: everything is READ
  std::vector<storage::MulticastTable> tables;
  std::vector<size_t> joins;  // of each of the tables

  /// INVALID_ARGUMENT if it does not fit the shape: every block that a join needs must come exactly once.
  static absl::StatusOr<MulticastBuild> From(const proto::MulticastStreams& streams, const QueryShape& shape);
  bool Covers(size_t join) const;
};

}  // namespace nam::computeserver
