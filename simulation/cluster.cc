#include "simulation/cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "catalog/store.h"
#include "computeserver/start_over_fabric.h"
#include "memserver/start_over_fabric.h"

namespace nam::simulation {
namespace {

constexpr char kCatalogHost[] = "catalog";

catalog::ClientOptions CatalogOf(Process& process, const std::string& address) {
  return {.address = address, .secret = kClusterSecret, .control_plane = &process.control_plane()};
}

}  // namespace

Process::Process(fabric::sim::World& world, catalog::SimulatedControlNetwork& network,
                 std::unique_ptr<fabric::Fabric> fabric)
    : owned_(std::move(fabric)),
      fabric_(*owned_),
      id_(world.ProcessOf(fabric_)),
      control_plane_(network.PlaneOf(fabric_)) {}

absl::StatusOr<std::unique_ptr<Process>> Process::Open(fabric::sim::World& world,
                                                       catalog::SimulatedControlNetwork& network,
                                                       const std::string& host) {
  fabric::FabricOptions options;
  options.secret = kClusterSecret;
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<fabric::Fabric> fabric, world.OpenFabric(host, options));
  return std::unique_ptr<Process>(new Process(world, network, std::move(fabric)));
}

catalog::FabricOpener Process::Opener() {
  return [this](const fabric::FabricOptions&) -> absl::StatusOr<std::unique_ptr<fabric::Fabric>> {
    NAM_CHECK(owned_ != nullptr, "a process has one fabric");
    return std::move(owned_);
  };
}

absl::StatusOr<std::unique_ptr<Client>> Client::Attach(fabric::sim::World& world,
                                                       catalog::SimulatedControlNetwork& network,
                                                       const std::string& host,
                                                       const std::string& catalog_address) {
  auto client = std::make_unique<Client>();
  NAM_ASSIGN_OR_RETURN(client->process_, Process::Open(world, network, host));
  catalog::AttachOptions options;
  options.catalog = CatalogOf(*client->process_, catalog_address);
  NAM_ASSIGN_OR_RETURN(client->attachment_, catalog::AttachOverFabric(options, client->process_->Opener()));
  NAM_ASSIGN_OR_RETURN(client->session_, session::Session::Open(*client->attachment_));
  return client;
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(fabric::sim::World& world,
                                                        const ClusterOptions& options) {
  std::unique_ptr<Cluster> cluster(new Cluster(world, options));
  NAM_RETURN_IF_ERROR(cluster->StartCatalog());
  for (int i = 0; i < options.memory_servers; ++i) {
    cluster->memory_.emplace_back().host = absl::StrCat(options.shared_hosts ? "server-" : "memory-", i);
  }
  for (int i = 0; i < options.compute_servers; ++i) {
    cluster->compute_.emplace_back().host = absl::StrCat(options.shared_hosts ? "server-" : "compute-", i);
  }
  for (const Role role : {Role::kMemory, Role::kCompute}) {
    for (Slot& slot : cluster->slots(role)) NAM_RETURN_IF_ERROR(cluster->StartServer(role, slot));
  }
  return cluster;
}

Cluster::~Cluster() {
  compute_.clear();
  memory_.clear();
  catalog_.reset();
}

absl::Status Cluster::StartCatalog() {
  NAM_ASSIGN_OR_RETURN(catalog_process_, Process::Open(world_, network_, kCatalogHost));
  catalog::CatalogServerOptions options;
  options.store_path = options_.catalog_store.empty() ? catalog::kStoreInMemory : options_.catalog_store;
  options.timestamps = options_.timestamps;
  if (!catalog_address_.empty()) options.listen_address = catalog_address_;
  options.fabric = fabric::Kind::kSim;
  options.secret = kClusterSecret;
  options.lease_ms = options_.lease_ms;
  options.bury_after_ms = options_.bury_after_ms;
  options.fabric_of_threads = &catalog_process_->fabric();
  options.clock = &world_.clock();
  options.control_plane = &catalog_process_->control_plane();
  options.random = [this] { return catalog_ids_.Next(); };
  NAM_ASSIGN_OR_RETURN(catalog_, catalog::CatalogServer::Start(options));
  catalog_address_ = catalog_->address();
  return absl::OkStatus();
}

void Cluster::KillCatalog(bool whole_host) {
  NAM_CHECK(!options_.catalog_store.empty(), "a catalog that is killed has a store that outlives it");
  catalog_host_down_ = whole_host;
  if (whole_host) {
    world_.KillHost(kCatalogHost);
  } else {
    world_.KillProcess(catalog_process_->id());
  }
}

absl::Status Cluster::RestartCatalog() {
  catalog_.reset();
  catalog_process_.reset();
  if (std::exchange(catalog_host_down_, false)) world_.RestartHost(kCatalogHost);
  return StartCatalog();
}

absl::Status Cluster::StartServer(Role role, Slot& slot) {
  NAM_ASSIGN_OR_RETURN(slot.process, Process::Open(world_, network_, slot.host));
  const catalog::ClientOptions catalog = CatalogOf(*slot.process);
  const auto on_lost = [this, role, process = slot.process->id()](const absl::Status&) {
    ++given_up_;
    if (role == Role::kMemory) ++memory_deaths_;
    world_.KillProcess(process);
  };
  if (role == Role::kMemory) {
    memserver::MemoryServerOptions options;
    options.catalog = catalog;
    const bool first = &slot == &memory_.front();
    options.memory_bytes =
        first && options_.first_memory_bytes != 0 ? options_.first_memory_bytes : options_.memory_bytes;
    options.region_bytes = options_.region_bytes;
    options.scratch_bytes = options_.scratch_bytes;
    options.huge_pages = false;
    options.on_lost = on_lost;
    NAM_ASSIGN_OR_RETURN(slot.memory, memserver::StartOverFabric(options, slot.process->Opener()));
  } else {
    computeserver::ComputeServerOptions options;
    options.catalog = catalog;
    options.threads = options_.threads;
    options.memory_bytes = options_.compute_memory_bytes;
    options.first_memory_bytes = options_.first_attempt_bytes;
    options.running_max = options_.running_max;
    options.waiting_max = options_.waiting_max;
    options.always_by_parts = options_.always_by_parts;
    options.on_lost = on_lost;
    NAM_ASSIGN_OR_RETURN(slot.compute, computeserver::StartOverFabric(options, slot.process->Opener()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Client>> Cluster::NewClient(const std::string& host) {
  return Client::Attach(world_, network_, host, catalog_address_);
}

absl::StatusOr<std::unique_ptr<Process>> Cluster::NewProcess(const std::string& host) {
  return Process::Open(world_, network_, host);
}

catalog::ClientOptions Cluster::CatalogOf(Process& process) const {
  return simulation::CatalogOf(process, catalog_address_);
}

bool Cluster::Alive(Role role, int number) const {
  const Slot& slot = slots(role)[static_cast<size_t>(number)];
  return slot.process != nullptr && world_.Alive(slot.process->id());
}

void Cluster::Kill(Role role, int number, bool whole_host) {
  Slot& slot = slots(role)[static_cast<size_t>(number)];
  if (role == Role::kMemory) ++memory_deaths_;
  slot.host_down = whole_host;
  if (whole_host) {
    world_.KillHost(slot.host);
  } else {
    world_.KillProcess(slot.process->id());
  }
}

void Cluster::Leave(int number) {
  constexpr int64_t kLeaveUs = 10'000'000;
  Slot& slot = compute_[static_cast<size_t>(number)];
  slot.compute->Shutdown(world_.clock().After(kLeaveUs));
}

absl::Status Cluster::Restart(Role role, int number) {
  Slot& slot = slots(role)[static_cast<size_t>(number)];
  slot.memory.reset();
  slot.compute.reset();
  slot.process.reset();
  if (std::exchange(slot.host_down, false)) world_.RestartHost(slot.host);
  const absl::Status started = StartServer(role, slot);
  if (!started.ok()) slot.process.reset();
  return started;
}

std::string Cluster::Holdings() const {
  std::string text;
  for (const Slot& slot : memory_) {
    if (slot.memory == nullptr) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", slot.host, ":", slot.memory->used_bytes());
    if (!world_.Alive(slot.process->id())) absl::StrAppend(&text, "(dead)");
  }
  return text;
}

bool Cluster::Idle() const {
  for (const Slot& slot : compute_) {
    if (slot.compute != nullptr && world_.Alive(slot.process->id()) && !slot.compute->load().idle())
      return false;
  }
  return true;
}

uint64_t Cluster::UsedBytes() const {
  uint64_t used = 0;
  for (const Slot& slot : memory_) {
    if (slot.memory != nullptr && world_.Alive(slot.process->id())) used += slot.memory->used_bytes();
  }
  return used;
}

uint64_t Cluster::ScratchUsedBytes() const {
  uint64_t used = 0;
  for (const Slot& slot : memory_) {
    if (slot.memory != nullptr && world_.Alive(slot.process->id())) used += slot.memory->scratch_used_bytes();
  }
  return used;
}

}  // namespace nam::simulation
