#pragma once

#include <vector>

#include "cli/doctor_finding.h"
#include "fabric/verbs/inspect.h"

namespace nam::cli {

/// Checks the RDMA devices for the verbs fabric. It needs one usable device; further unusable ones are
/// warnings.
std::vector<Finding> CheckDevices(const std::vector<fabric::verbs::DeviceReport>& devices);

}  // namespace nam::cli
