#pragma once

#include "absl/status/statusor.h"
#include "bench/calibration.h"

namespace nam::bench {

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
