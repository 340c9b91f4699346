#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"

/// What the conformance suite has to know of the fabric that it runs against. One file per provider
/// defines CurrentProvider(); the cases are the same for all.
namespace nam::fabric::conformance {

class Provider {
 public:
  virtual ~Provider() = default;
  /// A fabric as of one more process of the cluster with this secret.
  virtual absl::StatusOr<std::unique_ptr<Fabric>> Open(const std::string& secret) = 0;
  /// Something to listen on, never the same twice.
  virtual std::string ListenAddress() = 0;
  /// An address of the right form where nobody listens.
  virtual std::string DeadAddress() = 0;
  /// Whether peers can be processes of their own (not in a simulation).
  virtual bool has_processes() const = 0;
  /// Whether Fabric::datagram_drops sees every datagram that its own queue pairs dropped.
  virtual bool counts_dropped_datagrams() const { return true; }
  /// Connections to `address` that send `junk` (maybe nothing) and then stay silent until destroyed.
  virtual std::vector<UniqueFd> Harass(const std::string& address, const std::string& junk) = 0;
  /// What the process `pid`, which ran this provider, has on this host in the way of names.
  virtual std::vector<std::string> NamesOf(int pid) = 0;
};

Provider& CurrentProvider();

}  // namespace nam::fabric::conformance
