#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/two_phase/row_store.h"
#include "bench/two_phase/session.h"
#include "bench/two_phase/timestamp_service.h"
#include "bench/two_phase/transport.h"
#include "fabric/fabric.h"

/// Two-phase commit under generalized snapshot isolation, the redesign paper's traditional protocol: the
/// baseline for RSI.
namespace nam::bench::two_phase {

/// A thread that serves one role. The destructor ends the thread and the role; clients see their connections
/// end.
class Server {
 public:
  const std::string& address() const { return transport_->address(); }
  uint64_t frames_received() const { return transport_->frames_received(); }
  ~Server();

 private:
  friend absl::StatusOr<std::unique_ptr<Server>> StartParticipant(fabric::Fabric&, const TransportOptions&,
                                                                  const std::vector<TableLayout>&, size_t);
  friend absl::StatusOr<std::unique_ptr<Server>> StartCoordinator(fabric::Fabric&, const TransportOptions&,
                                                                  const std::vector<std::string>&,
                                                                  TimestampService&);
  explicit Server(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
  void Start(fabric::Fabric& fabric, const std::string& name);

  const std::unique_ptr<Transport> transport_;
  std::unique_ptr<Role> role_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<fabric::Thread> thread_;
};

/// The deleted keys that a participant remembers; see RowStore.
inline constexpr size_t kDeletionsKept = 65'536;

/// `transport.host` is the address to listen on. INVALID_ARGUMENT: a table is invalid.
absl::StatusOr<std::unique_ptr<Server>> StartParticipant(fabric::Fabric& fabric,
                                                         const TransportOptions& transport,
                                                         const std::vector<TableLayout>& tables,
                                                         size_t deletions_kept = kDeletionsKept);
/// Coordinators of one cluster share `timestamps`, which outlives them.
absl::StatusOr<std::unique_ptr<Server>> StartCoordinator(fabric::Fabric& fabric,
                                                         const TransportOptions& transport,
                                                         const std::vector<std::string>& participants,
                                                         TimestampService& timestamps);

/// All servers of a cluster as threads of this process, each in a given fabric.
class Cluster {
 public:
  struct Options {
    TransportOptions transport;
    std::vector<fabric::Fabric*> participants;  // one server thread each; may repeat a fabric
    std::vector<fabric::Fabric*> coordinators;
    std::vector<TableLayout> tables;
    size_t deletions_kept = kDeletionsKept;
  };
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(const Options& options);

  const ClusterLayout& layout() const { return layout_; }
  absl::StatusOr<std::unique_ptr<txn::Session>> OpenSession(fabric::Fabric& fabric,
                                                            const SessionOptions& options = {}) const;
  /// The sum over all servers.
  uint64_t frames_received() const;
  /// Stops a server, as if it were lost. At most one call per server.
  void StopParticipant(size_t number) { participants_[number].reset(); }
  void StopCoordinator(size_t number) { coordinators_[number].reset(); }

 private:
  explicit Cluster(const TransportOptions& transport) : transport_(transport) {}

  const TransportOptions transport_;
  TimestampService timestamps_;
  ClusterLayout layout_;
  std::vector<std::unique_ptr<Server>> participants_;
  std::vector<std::unique_ptr<Server>> coordinators_;  // destroyed first
};

}  // namespace nam::bench::two_phase
