#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nam::catalog {

/// Splits `host:port` at the last colon ([v6]:port keeps its brackets in the host).
absl::StatusOr<std::pair<std::string, uint16_t>> SplitAddress(const std::string& address);

/// The host without the brackets of [v6], as resolvers expect it.
std::string BareHost(const std::string& host);

/// The address to advertise: with `advertised_host` if set, else with `host_name` in place of a wildcard.
std::string AdvertisedAddress(const std::string& address, const std::string& advertised_host,
                              const std::string& host_name);

/// INVALID_ARGUMENT, naming the option, if other hosts could not connect to an advertised address: the
/// loopback although the catalog is reached by another address, or a wildcard address.
absl::Status CheckAdvertised(const std::string& catalog_address, const std::vector<std::string>& advertised);

/// FabricOptions::host of a server with these addresses: the advertised host, else the host of the first
/// address set.
std::string FabricHost(const std::string& advertised_host, const std::string& fabric_listen_address,
                       const std::string& control_listen_address);

/// True if every address of HOST:PORT, dialled by TCP, refuses the connection. A stopped process does not
/// refuse: the kernel accepts for it. A firewall that rejects looks like a refusal, so it proves nothing
/// alone.
bool ConnectionRefused(const std::string& address, int64_t timeout_us);

}  // namespace nam::catalog
