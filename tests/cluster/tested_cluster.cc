#include "tests/cluster/tested_cluster.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/fabric.h"
#include "fabric/sim/world.h"
#include "simulation/cluster.h"
#include "tests/cluster/in_process_cluster.h"

namespace nam::testing {
namespace {

constexpr int64_t kPatienceUs = 60'000'000;

/// Waits on the fabric's clock until `left` returns 0.
template <typename Left>
uint64_t AwaitNone(Clock& clock, Left&& left) {
  const Deadline deadline = clock.After(kPatienceUs);
  while (left() != 0 && !clock.Passed(deadline)) clock.SleepUntil(clock.After(1'000));
  return left();
}

class RealCluster final : public TestedCluster {
 public:
  explicit RealCluster(const ClusterShape& shape)
      : cluster_({.fabric = shape.fabric,
                  .memory_servers = shape.memory_servers,
                  .compute_servers = shape.compute_servers,
                  .threads = shape.threads,
                  .memory_bytes = shape.memory_bytes,
                  .region_bytes = shape.region_bytes,
                  .lease_ms = 20'000,
                  .scratch_bytes = shape.memory_bytes / 2,
                  .compute_memory_bytes = shape.compute_memory_bytes,
                  .first_memory_bytes = shape.first_attempt_bytes,
                  .always_by_parts = shape.always_by_parts}),
        session_(cluster_.NewSession()) {}

  bool started() const { return session_ != nullptr; }
  catalog::Attachment& attachment() override { return cluster_.attachment(); }
  session::Session& session() override { return *session_; }
  uint64_t ScratchLeftBehind() override {
    session_.reset();
    return AwaitNone(cluster_.attachment().fabric().clock(), [&] {
      uint64_t used = 0;
      for (const auto& server : cluster_.memory()) used += server->scratch_used_bytes();
      return used;
    });
  }

 private:
  InProcessCluster cluster_;
  std::unique_ptr<session::Session> session_;
};

class SimulatedCluster final : public TestedCluster {
 public:
  static absl::StatusOr<std::unique_ptr<TestedCluster>> Start(const ClusterShape& shape) {
    std::unique_ptr<SimulatedCluster> self(new SimulatedCluster);
    NAM_ASSIGN_OR_RETURN(
        self->cluster_,
        simulation::Cluster::Start(self->world_, {.memory_servers = shape.memory_servers,
                                                  .compute_servers = shape.compute_servers,
                                                  .threads = shape.threads,
                                                  .memory_bytes = shape.memory_bytes,
                                                  .region_bytes = shape.region_bytes,
                                                  .scratch_bytes = shape.memory_bytes / 2,
                                                  .compute_memory_bytes = shape.compute_memory_bytes,
                                                  .first_attempt_bytes = shape.first_attempt_bytes,
                                                  .always_by_parts = shape.always_by_parts}));
    NAM_ASSIGN_OR_RETURN(self->client_, self->cluster_->NewClient("client"));
    return self;
  }
  ~SimulatedCluster() override {
    client_.reset();
    cluster_.reset();
  }

  catalog::Attachment& attachment() override { return client_->attachment(); }
  session::Session& session() override { return client_->session(); }
  uint64_t ScratchLeftBehind() override {
    client_.reset();
    return AwaitNone(world_.clock(), [&] { return cluster_->ScratchUsedBytes(); });
  }

 private:
  SimulatedCluster() = default;

  fabric::sim::World world_{fabric::sim::WorldOptions()};
  std::unique_ptr<simulation::Cluster> cluster_;
  std::unique_ptr<simulation::Client> client_;
};

}  // namespace

std::string ClusterShape::Describe() const {
  return absl::StrFormat(
      "%s, %d memory servers, %d compute servers of %d threads and %d MiB, %d MiB for an attempt at first%s",
      fabric::KindName(fabric), memory_servers, compute_servers, threads, compute_memory_bytes >> 20,
      first_attempt_bytes >> 20, always_by_parts ? ", few groups by parts" : "");
}

absl::StatusOr<std::unique_ptr<TestedCluster>> TestedCluster::Start(const ClusterShape& shape) {
  if (shape.fabric == fabric::Kind::kSim) return SimulatedCluster::Start(shape);
  auto cluster = std::make_unique<RealCluster>(shape);
  if (!cluster->started()) return absl::UnavailableError("a cluster does not start");
  return cluster;
}

std::vector<fabric::Kind> FabricsHere() {
  std::vector<fabric::Kind> fabrics = {fabric::Kind::kSim, fabric::Kind::kShm, fabric::Kind::kTcp};
  if (fabric::Open({.kind = fabric::Kind::kVerbs, .secret = "secret"}).ok())
    fabrics.push_back(fabric::Kind::kVerbs);
  return fabrics;
}

}  // namespace nam::testing
