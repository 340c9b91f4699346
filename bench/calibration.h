#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "catalog/fabric_constants.h"

namespace nam::bench {

struct CalibrationOptions {
  int rounds = 5;  // of each measurement; its median counts
  /// Says what comes next; false ends the work with CANCELLED.
  std::function<bool(const std::string& doing)> proceed;
};

/// What transfers and accesses cost, measured from here: READs and WRITEs of scratch memory of the cluster's
/// memory servers, which is given back, by the window that compute servers have; messages of the same fabric
/// and sockets between two threads of this process; memory and caches of this host, which should be one like
/// the compute servers'. What rows cost beside that is not measured, and stays as `before`.
absl::StatusOr<catalog::FabricConstants> MeasureFabricConstants(catalog::Attachment& attachment,
                                                                const catalog::FabricConstants& before,
                                                                const CalibrationOptions& options);

}  // namespace nam::bench
