#pragma once

#include "absl/status/statusor.h"
#include "bench/calibration.h"

namespace nam::bench {

struct RowCalibrationOptions {
  CalibrationOptions calibration;
  /// Of each of two large tables: so many that what a stage takes once hardly counts. Fewer where the cluster
  /// has no memory for them.
  uint64_t rows = uint64_t{4} << 20;
};

/// What stages, parts, rows and groups cost on the cluster's compute servers, beside the bytes and accesses
/// that `measured` has. Loads three tables for that, joins and groups them by forced algorithms, and takes
/// for each constant what makes the cost model's estimate of one of these queries right. The tables are
/// dropped again.
absl::StatusOr<catalog::FabricConstants> FitRowConstants(catalog::Attachment& attachment,
                                                         const catalog::FabricConstants& measured,
                                                         const RowCalibrationOptions& options);

/// The value of a constant at which an estimate is `actual`: estimates are linear in each. In the constant's
/// range; the old one if the estimate does not depend on it.
double FittedConstant(const catalog::FabricConstants& constants, const catalog::FabricConstant& constant,
                      double actual, const std::function<double(const catalog::FabricConstants&)>& estimate);

}  // namespace nam::bench
