#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nam::catalog {

/// `host:port` split at the last colon ([v6]:port keeps its brackets in the host).
absl::StatusOr<std::pair<std::string, uint16_t>> SplitAddress(const std::string& address);

/// The host without the brackets of [v6], as resolvers take it.
std::string BareHost(const std::string& host);

/// The address to tell others: with `advertised_host` if there is one, else a wildcard becomes `host_name`.
std::string AdvertisedAddress(const std::string& address, const std::string& advertised_host,
                              const std::string& host_name);

/// INVALID_ARGUMENT, naming the option, if others cannot connect to what a server would tell them: the
/// loopback of its host, although it reaches the catalog by another address; or an address that means every
/// one.
absl::Status CheckAdvertised(const std::string& catalog_address, const std::vector<std::string>& advertised);

/// FabricOptions::host of a server that listens so: the advertised host, else that of the first address.
std::string FabricHost(const std::string& advertised_host, const std::string& fabric_listen_address,
                       const std::string& control_listen_address);

/// Whether every address of HOST:PORT, dialled by TCP, answers that nobody listens there. A stopped process
/// does not refuse: the kernel takes connections for it. A firewall that rejects looks like a refusal.
bool ConnectionRefused(const std::string& address, int64_t timeout_us);

}  // namespace nam::catalog
