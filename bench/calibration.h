#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "catalog/fabric_constants.h"

namespace nam::bench {

struct CalibrationOptions {
  int rounds = 5;  // per measurement; the median counts
  /// Called before each measurement; false ends the work with CANCELLED.
  std::function<bool(const std::string& doing)> proceed = [](const std::string&) { return true; };
  /// Rows of each of two large tables: enough that the one-time cost of a stage hardly counts. Fewer if the
  /// cluster lacks memory.
  uint64_t rows = uint64_t{4} << 20;
};

/// Measures the costs of transfers and accesses from this host: READs and WRITEs of scratch memory of the
/// cluster's memory servers, which is freed afterwards, with the compute servers' window; messages of the
/// same fabric and of the tcp fabric between two threads of this process; memory and caches of this host,
/// which should resemble the compute servers'. Costs of rows are not measured and stay as in `before`.
absl::StatusOr<catalog::FabricConstants> MeasureFabricConstants(catalog::Attachment& attachment,
                                                                const catalog::FabricConstants& before,
                                                                const CalibrationOptions& options);

}  // namespace nam::bench
