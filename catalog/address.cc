#include "catalog/address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace nam::catalog {

namespace {

bool IsLoopback(const std::string& host) {
  return host.rfind("127.", 0) == 0 || host == "localhost" || host == "[::1]" || host == "::1";
}

bool IsWildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "[::]" || host == "::";
}

}  // namespace

absl::StatusOr<std::pair<std::string, uint16_t>> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port > 65'535 || (address.find(':') != colon && address.front() != '[')) {
    return absl::InvalidArgumentError(
        absl::StrFormat("`%s` is not an address; write host:port, for example 127.0.0.1:4700", address));
  }
  return std::make_pair(address.substr(0, colon), static_cast<uint16_t>(port));
}

std::string AdvertisedAddress(const std::string& address, const std::string& advertised_host,
                              const std::string& host_name) {
  const auto split = SplitAddress(address);
  if (!split.ok()) return address;
  if (!advertised_host.empty()) return absl::StrCat(advertised_host, ":", split->second);
  return IsWildcard(split->first) ? absl::StrCat(host_name, ":", split->second) : address;
}

absl::Status CheckAdvertised(const std::string& catalog_address, const std::vector<std::string>& advertised) {
  const auto catalog = SplitAddress(catalog_address);
  if (!catalog.ok()) return catalog.status();
  for (const std::string& address : advertised) {
    const auto split = SplitAddress(address);
    if (!split.ok()) continue;  // not of a network
    const bool wildcard = IsWildcard(split->first);
    if (!wildcard && (!IsLoopback(split->first) || IsLoopback(catalog->first))) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "this server would tell others to connect to %s, %s, while it reaches the catalog at %s; listen on "
        "an "
        "address that they reach (--control-listen, --fabric-listen), or name it by --advertised-host",
        address, wildcard ? "which means every address" : "which on their hosts is their own",
        catalog_address));
  }
  return absl::OkStatus();
}

std::string FabricHost(const std::string& advertised_host, const std::string& fabric_listen_address,
                       const std::string& control_listen_address) {
  if (!advertised_host.empty()) return advertised_host;
  for (const std::string& address : {fabric_listen_address, control_listen_address}) {
    const auto split = SplitAddress(address);
    if (!split.ok()) continue;
    // Without the brackets of [v6]:port.
    const std::string& host = split->first;
    return host.front() == '[' ? host.substr(1, host.size() - 2) : host;
  }
  return "";
}

}  // namespace nam::catalog
