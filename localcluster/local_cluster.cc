#include "localcluster/local_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "localcluster/executables.h"

namespace nam {
namespace {

constexpr int kServersMax = 64;

std::vector<Process*> Pointers(const std::vector<std::unique_ptr<Process>>& processes) {
  std::vector<Process*> pointers;
  for (const auto& process : processes) pointers.push_back(process.get());
  return pointers;
}

int CountRunning(const std::vector<std::unique_ptr<Process>>& processes) {
  return static_cast<int>(std::count_if(processes.begin(), processes.end(),
                                        [](const auto& process) { return process->running(); }));
}

/// What a server writes before it knows its id, and with it its log's name.
std::string StartingLog(const LocalClusterOptions& options, const std::string& name) {
  std::string file = name;
  std::replace(file.begin(), file.end(), ' ', '-');
  return absl::StrCat(options.directory, "/starting-", file, ".log");
}

absl::StatusOr<std::unique_ptr<Process>> Launch(const LocalClusterOptions& options, const std::string& name,
                                                std::vector<std::string> arguments) {
  arguments.push_back(absl::StrCat("--secret-file=", SecretFile(options.directory)));
  arguments.push_back(absl::StrCat("--log-dir=", options.directory));
  arguments.push_back(absl::StrCat("--log-level=", options.log_level));
  return Process::Start({.name = name,
                         .executable = options.executable,
                         .arguments = std::move(arguments),
                         // A configuration of the user's own must not reach into a private cluster.
                         .drop_prefix = "NAM_",
                         .stderr_file = StartingLog(options, name)});
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
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(const LocalClusterOptions& options,
                                                                  int interrupt_fd) {
  NAM_RETURN_IF_ERROR(Validate(options));
  NAM_RETURN_IF_ERROR(WriteFreshSecret(SecretFile(options.directory)));
  LocalClusterOptions complete = options;
  if (complete.executable.empty()) {
    NAM_ASSIGN_OR_RETURN(complete.executable, FindExecutable("nam"));
  }
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(complete));
  const absl::Status status = cluster->StartAll(interrupt_fd);
  if (status.ok()) return cluster;
  cluster->Stop().IgnoreError();  // why it did not start says more
  return status;
}

absl::Status LocalCluster::StartAll(int interrupt_fd) {
  NAM_ASSIGN_OR_RETURN(
      catalog_,
      Launch(options_, "catalog",
             {"catalog", "--listen=127.0.0.1:0", absl::StrCat("--store=", options_.directory, "/catalog.db"),
              absl::StrCat("--cluster-name=", options_.name), absl::StrCat("--fabric=", options_.fabric),
              absl::StrCat("--timestamps=", options_.timestamps),
              absl::StrCat("--bury-after=", options_.bury_after_s)}));
  Process* const catalog = catalog_.get();
  NAM_RETURN_IF_ERROR(AwaitReady({&catalog, 1}, options_.start_timeout_ms, interrupt_fd));
  const auto address = catalog->ready()->values.find("address");
  if (address == catalog->ready()->values.end())
    return absl::InternalError("the catalog did not tell its address");
  catalog_address_ = address->second;

  const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  compute_threads_ =
      options_.threads > 0 ? options_.threads : std::max(1, processors / options_.compute_servers);
  for (int i = 1; i <= options_.memory_servers; ++i) {
    NAM_ASSIGN_OR_RETURN(auto server, Launch(options_, absl::StrCat("memory server ", i),
                                             {"memserver", absl::StrCat("--catalog=", catalog_address_),
                                              "--control-listen=127.0.0.1:0",
                                              absl::StrCat("--memory=", options_.memory_bytes)}));
    memory_servers_.push_back(std::move(server));
  }
  NAM_RETURN_IF_ERROR(LaunchComputeServers(options_.compute_servers));
  return AwaitStarted(processes(), interrupt_fd);
}

absl::Status LocalCluster::AwaitStarted(const std::vector<Process*>& servers, int interrupt_fd) {
  NAM_RETURN_IF_ERROR(AwaitReady(servers, options_.start_timeout_ms, interrupt_fd));
  for (const Process* server : servers) unlink(StartingLog(options_, server->name()).c_str());
  return absl::OkStatus();
}

absl::Status LocalCluster::LaunchComputeServers(int count) {
  for (int i = 0; i < count; ++i) {
    NAM_ASSIGN_OR_RETURN(
        auto server, Launch(options_, absl::StrCat("compute server ", ++compute_servers_started_),
                            {"compute", absl::StrCat("--catalog=", catalog_address_),
                             "--control-listen=127.0.0.1:0", absl::StrCat("--threads=", compute_threads_)}));
    compute_servers_.push_back(std::move(server));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Process*>> LocalCluster::AddComputeServers(int count, int interrupt_fd) {
  const int running = running_compute_servers();
  if (count < 1 || count > kServersMax - running) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a local cluster has 1 to %d compute servers; %d run, so %d more cannot be started",
                        kServersMax, running, count));
  }
  const size_t before = compute_servers_.size();
  absl::Status status = LaunchComputeServers(count);
  std::vector<Process*> fresh = Pointers(compute_servers_);
  fresh.erase(fresh.begin(), fresh.begin() + static_cast<ptrdiff_t>(before));
  if (status.ok()) status = AwaitStarted(fresh, interrupt_fd);
  if (status.ok()) return fresh;
  StopAll(fresh, options_.stop_timeout_ms).IgnoreError();  // why one did not start says more
  compute_servers_.resize(before);
  return status;
}

absl::StatusOr<std::vector<std::string>> LocalCluster::RemoveComputeServers(int count) {
  std::erase_if(compute_servers_, [](const auto& server) { return !server->running(); });
  const int running = running_compute_servers();
  if (count < 1 || count >= running) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%d compute server%s and one has to stay, so %d cannot be stopped; `nam down` stops the cluster",
        running, running == 1 ? " runs" : "s run", count));
  }
  const size_t left = compute_servers_.size() - static_cast<size_t>(count);
  std::vector<Process*> youngest = Pointers(compute_servers_);
  youngest.erase(youngest.begin(), youngest.begin() + static_cast<ptrdiff_t>(left));
  std::vector<std::string> ids;
  for (const Process* server : youngest) ids.push_back(IdOf(*server));
  const absl::Status status = StopAll(youngest, options_.stop_timeout_ms);
  compute_servers_.resize(left);
  if (status.ok()) return ids;
  return absl::Status(status.code(),
                      absl::StrFormat("%s; %d compute servers are left", status.message(), left));
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

std::vector<Process*> LocalCluster::processes() const {
  std::vector<Process*> all;
  if (catalog_ != nullptr) all.push_back(catalog_.get());
  for (const auto* kind : {&memory_servers_, &compute_servers_}) {
    for (const auto& process : *kind) all.push_back(process.get());
  }
  return all;
}

absl::Status LocalCluster::Stop() {
  absl::Status result = StopAll(Pointers(compute_servers_), options_.stop_timeout_ms);
  compute_servers_.clear();
  result.Update(StopAll(Pointers(memory_servers_), options_.stop_timeout_ms));
  memory_servers_.clear();
  if (catalog_ != nullptr) result.Update(catalog_->Stop(options_.stop_timeout_ms));
  catalog_.reset();
  return result;
}

std::string IdOf(const Process& server) {
  const auto id = server.ready()->values.find("id");
  return id == server.ready()->values.end() ? server.name() : id->second;
}

uint64_t MemoryForSsb(double scale_factor, int memory_servers) {
  constexpr double kBytesPerScaleFactor = 700.0 * (1 << 20);
  return (1ULL << 30) +
         static_cast<uint64_t>(kBytesPerScaleFactor * scale_factor / std::max(1, memory_servers));
}

}  // namespace nam
