#pragma once

#include <vector>

#include "cli/doctor_finding.h"
#include "fabric/verbs/inspect.h"

namespace nam::cli {

/// What the verbs fabric needs of RDMA devices. It needs one usable device; further ones that are not
/// usable are warnings.
std::vector<Finding> CheckDevices(const std::vector<fabric::verbs::DeviceReport>& devices);

}  // namespace nam::cli
