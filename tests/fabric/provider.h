#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

/// The conformance suite's view of the fabric under test. One file per provider defines CurrentProvider();
/// the cases are the same for all.
namespace nam::fabric::conformance {

/// A peer in a separate process, which plays a role (see child.cc).
class ChildProcess {
 public:
  /// Kills it if it still runs.
  virtual ~ChildProcess() = default;
  /// The next line that it prints; nothing when it ends or hangs.
  virtual std::optional<std::string> ReadLine() = 0;
  virtual void Kill() = 0;
  virtual int pid() const = 0;
  /// Lets it end by itself: its exit code, -1 if it hung and had to be killed.
  virtual int Finish() = 0;
};

class Provider {
 public:
  virtual ~Provider() = default;
  /// A fabric as of another process of the cluster with this secret.
  virtual absl::StatusOr<std::unique_ptr<Fabric>> Open(const std::string& secret) = 0;
  /// Something to listen on, never the same twice.
  virtual std::string ListenAddress() = 0;
  /// A well-formed address without a listener.
  virtual std::string DeadAddress() = 0;
  /// Whether Fabric::datagram_drops sees every datagram that its own queue pairs dropped.
  virtual bool counts_dropped_datagrams() const { return true; }
  /// A process of the provider's kind. By default one of the operating system: this binary again.
  virtual std::unique_ptr<ChildProcess> StartChild(const std::vector<std::string>& role);
  /// Connections to `address` that send `junk` (maybe nothing) and then stay silent until destroyed.
  virtual std::vector<std::shared_ptr<void>> Harass(const std::string& address, const std::string& junk) = 0;
  /// The names on this host that the process `pid` of this provider left.
  virtual std::vector<std::string> NamesOf(int pid) = 0;
};

Provider& CurrentProvider();

/// NAM_TEST_LOSSY: packet loss is so high that connections may be lost.
bool LossyNetwork();
/// Factor on time limits for slow machines: NAM_TEST_TIMEOUT_FACTOR, default 1.
int64_t TimeoutFactor();

}  // namespace nam::fabric::conformance
