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

/// Measures the costs of stages, parts, rows and groups on the cluster's compute servers, beyond the bytes
/// and accesses in `measured`. Loads tables, joins and groups them with forced algorithms, and fits
/// each constant so that the cost model's estimate of one query is right. Drops the tables again.
absl::StatusOr<catalog::FabricConstants> FitRowConstants(catalog::Attachment& attachment,
                                                         const catalog::FabricConstants& measured,
                                                         const CalibrationOptions& options);

/// The value of a constant at which an estimate equals `actual`, as estimates are linear in each constant.
/// Clipped to the constant's range; the old value if the estimate does not depend on it.
double FittedConstant(const catalog::FabricConstants& constants, const catalog::FabricConstant& constant,
                      double actual, const std::function<double(const catalog::FabricConstants&)>& estimate);

}  // namespace nam::bench
