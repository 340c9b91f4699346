#include "bench/two_phase/cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/two_phase/coordinator.h"
#include "bench/two_phase/participant.h"

namespace nam::bench::two_phase {
namespace {

constexpr uint32_t kVersionsMax = 16;
constexpr uint32_t kRowBytesMax = 1 << 20;
constexpr size_t kTablesMax = 1 << 16;  // the wire has two bytes for them
constexpr int64_t kConnectTimeoutUs = 10'000'000;

absl::Status CheckTables(const std::vector<TableLayout>& tables) {
  if (tables.size() > kTablesMax) return absl::InvalidArgumentError("more tables than the wire can name");
  for (const TableLayout& table : tables) {
    if (table.key_bytes >= 1 && table.key_bytes <= table.row_bytes && table.row_bytes <= kRowBytesMax &&
        table.versions >= 1 && table.versions <= kVersionsMax) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrFormat(
        "table %s: %d bytes of key in a row of %d (at most %d), %d versions (1 to %d)", table.name,
        table.key_bytes, table.row_bytes, kRowBytesMax, table.versions, kVersionsMax));
  }
  return absl::OkStatus();
}

}  // namespace

Server::~Server() {
  stopping_ = true;
  transport_->Wake();
  thread_.reset();
}

void Server::Start(fabric::Fabric& fabric, const std::string& name) {
  thread_ = fabric.StartThread(name, [this] {
    while (!stopping_) {
      transport_->Receive(*role_, Deadline::Never());
      role_->AfterBatch();
    }
  });
}

absl::StatusOr<std::unique_ptr<Server>> StartParticipant(fabric::Fabric& fabric,
                                                         const TransportOptions& transport,
                                                         const std::vector<TableLayout>& tables,
                                                         size_t deletions_kept) {
  NAM_RETURN_IF_ERROR(CheckTables(tables));
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<Transport> opened, OpenTransport(fabric, transport));
  std::unique_ptr<Server> server(new Server(std::move(opened)));
  server->role_ = std::make_unique<Participant>(*server->transport_, tables, deletions_kept);
  server->Start(fabric, "2pc-participant");
  return server;
}

absl::StatusOr<std::unique_ptr<Server>> StartCoordinator(fabric::Fabric& fabric,
                                                         const TransportOptions& transport,
                                                         const std::vector<std::string>& participants,
                                                         TimestampService& timestamps) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<Transport> opened, OpenTransport(fabric, transport));
  std::unique_ptr<Server> server(new Server(std::move(opened)));
  auto coordinator = std::make_unique<Coordinator>(*server->transport_, timestamps);
  NAM_RETURN_IF_ERROR(coordinator->Connect(participants, fabric.clock().After(kConnectTimeoutUs)));
  server->role_ = std::move(coordinator);
  server->Start(fabric, "2pc-coordinator");
  return server;
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(const Options& options) {
  std::unique_ptr<Cluster> cluster(new Cluster(options.transport));
  cluster->layout_.tables = options.tables;
  for (fabric::Fabric* const fabric : options.participants) {
    NAM_ASSIGN_OR_RETURN(
        std::unique_ptr<Server> server,
        StartParticipant(*fabric, options.transport, options.tables, options.deletions_kept));
    cluster->layout_.participants.push_back(server->address());
    cluster->participants_.push_back(std::move(server));
  }
  for (fabric::Fabric* const fabric : options.coordinators) {
    NAM_ASSIGN_OR_RETURN(
        std::unique_ptr<Server> server,
        StartCoordinator(*fabric, options.transport, cluster->layout_.participants, cluster->timestamps_));
    cluster->layout_.coordinators.push_back(server->address());
    cluster->coordinators_.push_back(std::move(server));
  }
  return cluster;
}

uint64_t Cluster::frames_received() const {
  uint64_t frames = 0;
  for (const auto* servers : {&participants_, &coordinators_}) {
    for (const std::unique_ptr<Server>& server : *servers) {
      if (server != nullptr) frames += server->frames_received();
    }
  }
  return frames;
}

absl::StatusOr<std::unique_ptr<txn::Session>> Cluster::OpenSession(fabric::Fabric& fabric,
                                                                   const SessionOptions& options) const {
  return two_phase::OpenSession(fabric, transport_, layout_, options);
}

}  // namespace nam::bench::two_phase
