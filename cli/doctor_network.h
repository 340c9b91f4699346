#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/doctor_finding.h"
#include "fabric/fabric.h"

/// Listen addresses and multicast.
namespace nam::cli {

/// Whether a server could listen there now: ALREADY_EXISTS (the port is taken), PERMISSION_DENIED (a
/// privileged port), NOT_FOUND (no such host, or not an address of this one), INVALID_ARGUMENT.
absl::Status TryListen(const std::string& address);
Finding CheckListen(const std::string& address, const absl::Status& listened);

/// Sends to a group of `fabric` and hears it on a second queue pair, within two seconds.
absl::Status TryMulticast(fabric::Fabric& fabric);
/// For tcp; `interface` names its interface in the message.
Finding CheckMulticast(const absl::Status& heard, const std::string& interface);

/// The receive buffer that a UDP socket may have.
Finding CheckDatagramBuffer(const HostTree& tree);

}  // namespace nam::cli
