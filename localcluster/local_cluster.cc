#include "localcluster/local_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "localcluster/data_layout.h"
#include "localcluster/memory_room.h"

namespace nam {
namespace {

constexpr int kServersMax = 64;

using Slots = std::vector<std::unique_ptr<ServerSlot>>;

/// Skips processes whose end is known.
std::vector<Process*> ToStop(const Slots& slots) {
  std::vector<Process*> processes;
  for (const auto& slot : slots) {
    if (!slot->down()) processes.push_back(&slot->process());
  }
  return processes;
}

int CountRunning(const Slots& slots) {
  return static_cast<int>(
      std::count_if(slots.begin(), slots.end(), [](const auto& slot) { return slot->process().running(); }));
}

}  // namespace

absl::Status Validate(const LocalClusterOptions& options) {
  const auto check = [](const char* what, int count) {
    if (count >= 1 && count <= kServersMax) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("a local cluster has 1 to %d %s servers, not %d", kServersMax, what, count));
  };
  NAM_RETURN_IF_ERROR(check("memory", options.memory_servers));
  NAM_RETURN_IF_ERROR(check("compute", options.compute_servers));
  if (options.threads < 0) return absl::InvalidArgumentError("a compute server needs at least one thread");
  if (options.encrypt && options.fabric != "tcp") {
    return absl::InvalidArgumentError(
        absl::StrFormat("--encrypt is for --fabric=tcp: %s does not encrypt the data plane", options.fabric));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(const LocalClusterOptions& options,
                                                                  int interrupt_fd) {
  NAM_RETURN_IF_ERROR(Validate(options));
  NAM_ASSIGN_OR_RETURN(StateDirectory directory, StateDirectory::Open(options.directory));
  NAM_RETURN_IF_ERROR(directory.WriteFreshSecret());
  LocalClusterOptions complete = options;
  if (complete.executable.empty()) {
    NAM_ASSIGN_OR_RETURN(complete.executable, FindExecutable("nam"));
  }
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(complete, std::move(directory)));
  const absl::Status status = cluster->StartAll(interrupt_fd);
  if (status.ok()) return cluster;
  cluster->Stop().IgnoreError();  // the reason for the failed start is more useful
  return status;
}

// The servers work in the directory, so file names are relative to it.
absl::StatusOr<std::unique_ptr<ServerSlot>> LocalCluster::Launch(const std::string& name,
                                                                 std::vector<std::string> arguments,
                                                                 const RestartPolicy& restart,
                                                                 ServerSlot::Holds holds) const {
  arguments.push_back(absl::StrCat("--secret-file=", SecretFile(".")));
  arguments.push_back("--log-dir=.");
  arguments.push_back(absl::StrCat("--log-level=", options_.log_level));
  return ServerSlot::Start({.name = name,
                            .executable = options_.executable,
                            .arguments = std::move(arguments),
                            // The user's own configuration must not affect a private cluster.
                            .drop_prefix = "NAM_",
                            .quote_stderr = true,
                            .directory_fd = directory_.fd()},
                           restart, holds);
}

absl::Status LocalCluster::StartAll(int interrupt_fd) {
  RestartPolicy ever = options_.restart;
  ever.failures_max = 0;
  NAM_ASSIGN_OR_RETURN(
      catalog_,
      Launch(
          "catalog",
          {"catalog", "--listen=127.0.0.1:0", "--lease-port=0",
           absl::StrCat("--store=", StoreIn(options_.data_directory.empty() ? "." : options_.data_directory)),
           absl::StrCat("--cluster-name=", options_.name), absl::StrCat("--fabric=", options_.fabric),
           absl::StrCat("--timestamps=", options_.timestamps),
           absl::StrCat("--encrypt=", options_.encrypt ? "true" : "false"),
           absl::StrCat("--bury-after=", options_.bury_after_s)},
          ever, ServerSlot::Holds::kNothing));
  NAM_RETURN_IF_ERROR(AwaitStarted({catalog_.get()}, interrupt_fd));
  catalog_address_ = catalog_->ReadyValue("address");
  if (catalog_address_.empty()) return absl::InternalError("the catalog did not tell its address");
  // Restarts use the address where all others look for it.
  catalog_->ReplaceArgument(absl::StrCat("--listen=", catalog_address_));
  const std::string leases = catalog_->ReadyValue("leases");
  catalog_->ReplaceArgument(absl::StrCat("--lease-port=", leases.substr(leases.find_last_of(':') + 1)));

  const int processors = HostProcessors();
  compute_threads_ =
      options_.threads > 0 ? options_.threads : std::max(1, processors / options_.compute_servers);
  // A host's query memory is shared out among its compute servers, like its processors.
  compute_memory_bytes_ = DefaultComputeMemory(options_.compute_servers);
  for (int i = 1; i <= options_.memory_servers; ++i) {
    NAM_ASSIGN_OR_RETURN(auto server, LaunchMemoryServer(i));
    memory_servers_.push_back(std::move(server));
  }
  NAM_RETURN_IF_ERROR(LaunchComputeServers(options_.compute_servers));
  return AwaitStarted(slots(), interrupt_fd);
}

absl::StatusOr<std::unique_ptr<ServerSlot>> LocalCluster::LaunchMemoryServer(int number) const {
  std::vector<std::string> arguments = {"memserver", absl::StrCat("--catalog=", catalog_address_),
                                        "--control-listen=127.0.0.1:0",
                                        absl::StrCat("--memory=", options_.memory_bytes)};
  if (options_.scratch_bytes.has_value())
    arguments.push_back(absl::StrCat("--scratch=", *options_.scratch_bytes));
  const bool durable = !options_.data_directory.empty();
  if (durable)
    arguments.push_back(absl::StrCat("--data-dir=", MemoryDirectoryIn(options_.data_directory, number)));
  return Launch(absl::StrCat("memory server ", number), std::move(arguments), options_.restart,
                durable ? ServerSlot::Holds::kDataDirectory : ServerSlot::Holds::kMemory);
}

absl::Status LocalCluster::AwaitStarted(const std::vector<ServerSlot*>& started, int interrupt_fd) {
  std::vector<Process*> processes;
  for (ServerSlot* slot : started) processes.push_back(&slot->process());
  NAM_RETURN_IF_ERROR(AwaitReady(processes, options_.start_timeout_ms, interrupt_fd));
  for (ServerSlot* slot : started) slot->Tend();
  return absl::OkStatus();
}

absl::Status LocalCluster::LaunchComputeServers(int count) {
  for (int i = 0; i < count; ++i) {
    NAM_ASSIGN_OR_RETURN(auto server,
                         Launch(absl::StrCat("compute server ", ++compute_servers_started_),
                                {"compute", absl::StrCat("--catalog=", catalog_address_),
                                 "--control-listen=127.0.0.1:0", absl::StrCat("--threads=", compute_threads_),
                                 absl::StrCat("--memory=", compute_memory_bytes_)},
                                options_.restart, ServerSlot::Holds::kNothing));
    compute_servers_.push_back(std::move(server));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Process*>> LocalCluster::AddComputeServers(int count, int interrupt_fd) {
  ForgetGivenUp();
  const int places = static_cast<int>(compute_servers_.size());  // including those being restarted
  if (count < 1 || count > kServersMax - places) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a local cluster has 1 to %d compute servers; it has %d, so %d more cannot be started", kServersMax,
        places, count));
  }
  const size_t before = compute_servers_.size();
  absl::Status status = LaunchComputeServers(count);
  std::vector<ServerSlot*> fresh;
  for (size_t i = before; i < compute_servers_.size(); ++i) fresh.push_back(compute_servers_[i].get());
  if (status.ok()) status = AwaitStarted(fresh, interrupt_fd);
  std::vector<Process*> processes;
  for (ServerSlot* slot : fresh) processes.push_back(&slot->process());
  if (status.ok()) return processes;
  StopAll(processes, options_.stop_timeout_ms)
      .IgnoreError();  // the reason for the failed start is more useful
  compute_servers_.resize(before);
  return status;
}

void LocalCluster::ForgetGivenUp() {
  std::erase_if(compute_servers_, [](const auto& slot) { return slot->given_up(); });
}

absl::StatusOr<std::vector<std::string>> LocalCluster::RemoveComputeServers(int count) {
  ForgetGivenUp();
  const int running = running_compute_servers();
  if (count < 1 || count >= running) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%d compute server%s and one has to stay, so %d cannot be stopped; `nam down` stops the cluster",
        running, running == 1 ? " runs" : "s run", count));
  }
  std::vector<Process*> youngest;
  std::vector<std::string> ids;
  for (auto slot = compute_servers_.rbegin(); static_cast<int>(ids.size()) < count; ++slot) {
    if (!(*slot)->process().running()) continue;  // about to be restarted, so it stays
    youngest.push_back(&(*slot)->process());
    ids.push_back(IdOf((*slot)->process()));
  }
  std::reverse(ids.begin(), ids.end());
  const absl::Status status = StopAll(youngest, options_.stop_timeout_ms);
  std::erase_if(compute_servers_, [&](const auto& slot) {
    return std::find(youngest.begin(), youngest.end(), &slot->process()) != youngest.end();
  });
  if (status.ok()) return ids;
  return absl::Status(status.code(), absl::StrFormat("%s; %d compute servers are left", status.message(),
                                                     compute_servers_.size()));
}

std::vector<std::string> LocalCluster::Tend() {
  std::vector<std::string> events;
  for (ServerSlot* slot : slots()) {
    if (auto event = slot->Tend()) events.push_back(*std::move(event));
  }
  for (const auto& server : memory_servers_) lost_memory_ |= server->down();
  return events;
}

std::vector<int> LocalCluster::wait_fds() const {
  std::vector<int> fds;
  for (const ServerSlot* slot : slots()) {
    if (slot->wait_fd() >= 0) fds.push_back(slot->wait_fd());
  }
  return fds;
}

Deadline LocalCluster::wake() const {
  Deadline first;
  for (const ServerSlot* slot : slots()) first.ns = std::min(first.ns, slot->wake().ns);
  return first;
}

int LocalCluster::running_compute_servers() const {
  return CountRunning(compute_servers_);
}

int LocalCluster::running_memory_servers() const {
  return CountRunning(memory_servers_);
}

LocalCluster::~LocalCluster() {
  Stop().IgnoreError();
}

std::vector<ServerSlot*> LocalCluster::slots() const {
  std::vector<ServerSlot*> all;
  if (catalog_ != nullptr) all.push_back(catalog_.get());
  for (const Slots* kind : {&memory_servers_, &compute_servers_}) {
    for (const auto& slot : *kind) all.push_back(slot.get());
  }
  return all;
}

std::vector<Process*> LocalCluster::processes() const {
  std::vector<Process*> all;
  for (ServerSlot* slot : slots()) all.push_back(&slot->process());
  return all;
}

absl::Status LocalCluster::Stop() {
  absl::Status result = StopAll(ToStop(compute_servers_), options_.stop_timeout_ms);
  compute_servers_.clear();
  result.Update(StopAll(ToStop(memory_servers_), options_.stop_timeout_ms));
  memory_servers_.clear();
  if (catalog_ != nullptr && !catalog_->down())
    result.Update(catalog_->process().Stop(options_.stop_timeout_ms));
  catalog_.reset();
  return result;
}

std::string IdOf(const Process& server) {
  if (!server.ready().has_value()) return server.name();
  const auto id = server.ready()->values.find("id");
  return id == server.ready()->values.end() ? server.name() : id->second;
}

uint64_t MemoryForTables(double bytes, int memory_servers) {
  return (1ULL << 30) + static_cast<uint64_t>(bytes / std::max(1, memory_servers));
}

}  // namespace nam
