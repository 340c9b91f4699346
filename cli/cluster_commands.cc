#include "cli/cluster_commands.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cli/cluster_report.h"
#include "cli/foreground.h"
#include "cli/scale_requests.h"
#include "fabric/fabric.h"
#include "localcluster/local_cluster.h"
#include "localcluster/state_directory.h"
#include "localcluster/stop_signals.h"
#include "terminal/exit_codes.h"
#include "terminal/json_report.h"
#include "terminal/table_printer.h"
#include "terminal/units.h"

namespace nam::cli {
namespace {

constexpr int64_t kStartTimeoutMs = 150'000;
constexpr int64_t kStopTimeoutMs = 45'000;  // three kinds of servers, one after the other
constexpr unsigned kOrderlyEndSeconds = 40;

std::string Directory(const std::string& state_dir) {
  return state_dir.empty() ? DefaultStateDirectory() : state_dir;
}

/// Ends what a killed supervisor may have left; the number of processes that were still there.
int EndLeftovers(const std::string& directory) {
  int ended = 0;
  if (const auto state = LoadState(directory); state.ok()) {
    for (const ClusterState::Server& server : state->servers) {
      ended += EndForeignProcess(server.pid, server.start_time, kStopTimeoutMs) ? 1 : 0;
    }
  }
  RemoveRunFiles(directory);
  return ended;
}

ClusterState::Server Describe(const std::string& name, pid_t pid) {
  return {name, pid, StartTimeOf(pid).value_or(0)};
}

ClusterState StateOf(const LocalCluster& cluster, const std::string& fabric) {
  ClusterState state{.catalog_address = cluster.catalog_address(),
                     .fabric = fabric,
                     .supervisor = Describe("supervisor", getpid())};
  for (const Process* process : cluster.processes())
    state.servers.push_back(Describe(process->name(), process->pid()));
  return state;
}

/// Starts or stops compute servers for `nam scale`.
absl::StatusOr<ScaleReply> Scale(LocalCluster& cluster, const ScaleRequest& request,
                                 const std::string& directory, const std::string& fabric, int interrupt_fd) {
  ScaleReply reply;
  absl::Status status;
  if (request.out) {
    const auto fresh = cluster.AddComputeServers(request.compute_servers, interrupt_fd);
    status = fresh.status();
    if (fresh.ok()) {
      for (const Process* server : *fresh) reply.changed.push_back(IdOf(*server));
    }
  } else {
    auto stopped = cluster.RemoveComputeServers(request.compute_servers);
    status = stopped.status();
    if (stopped.ok()) reply.changed = *std::move(stopped);
  }
  status.Update(SaveState(directory, StateOf(cluster, fabric)));
  NAM_RETURN_IF_ERROR(status);
  reply.compute_servers = cluster.running_compute_servers();
  reply.memory_servers = cluster.running_memory_servers();
  return reply;
}

/// Until a signal comes or the catalog ends. Without another server the cluster goes on.
void Supervise(LocalCluster& cluster, const StopSignals& stop, ScaleListener& requests,
               const std::string& directory, const std::string& fabric) {
  std::set<std::string> ended;  // whose end has been told
  while (cluster.processes()[0]->running()) {
    std::vector<pollfd> waits{{stop.fd(), POLLIN, 0}, {requests.fd(), POLLIN, 0}};
    for (Process* process : cluster.processes()) {
      if (process->running()) {
        waits.push_back({process->exit_fd(), POLLIN, 0});
      } else if (ended.insert(process->name()).second) {
        LogWarning(absl::StrCat(process->name(), " ended with ", process->Outcome()));
      }
    }
    if (poll(waits.data(), waits.size(), -1) <= 0) continue;
    if (waits[0].revents != 0) return;
    if (waits[1].revents == 0) continue;
    requests.Serve(
        [&](const ScaleRequest& request) { return Scale(cluster, request, directory, fabric, stop.fd()); });
  }
}

std::vector<std::string> SuperviseArguments(const std::string& directory, const UpOptions& options) {
  return {"supervise",
          absl::StrCat("--state-dir=", directory),
          absl::StrCat("--fabric=", options.fabric),
          absl::StrCat("--memory-servers=", options.memory_servers),
          absl::StrCat("--compute-servers=", options.compute_servers),
          absl::StrCat("--memory=", options.memory_bytes),
          absl::StrCat("--threads=", options.threads),
          absl::StrCat("--timestamps=", options.timestamps),
          absl::StrCat("--log-level=", options.log_level),
          absl::StrCat("--bury-after=", options.bury_after_s)};
}

LocalClusterOptions ClusterOptionsOf(const std::string& directory, const UpOptions& options) {
  return {.directory = directory,
          .fabric = options.fabric,
          .memory_servers = options.memory_servers,
          .compute_servers = options.compute_servers,
          .memory_bytes = options.memory_bytes,
          .threads = options.threads,
          .timestamps = options.timestamps,
          .log_level = options.log_level,
          .bury_after_s = options.bury_after_s};
}

/// What the supervisor writes before the cluster runs.
std::string StartingLog(const std::string& directory) {
  return directory + "/starting-supervisor.log";
}

int Refuse(const absl::Status& status) {
  ReportFailure(status);
  return kExitUsage;
}

}  // namespace

int RunUp(const UpOptions& options) {
  const std::string directory = Directory(options.state_dir);
  const auto fabric = fabric::ParseRealKind(options.fabric);
  if (!fabric.ok()) return Refuse(fabric.status());
  if (const absl::Status status = Validate(ClusterOptionsOf(directory, options)); !status.ok())
    return Refuse(status);
  if (const absl::Status status = EnsurePrivateDirectory(directory); !status.ok()) return Refuse(status);
  {
    const auto lock = LockDirectory(directory);
    if (!lock.ok()) {
      return ReportFailure(absl::FailedPreconditionError(
          absl::StrCat(std::string(lock.status().message()), " already; `nam down` stops it")));
    }
    EndLeftovers(directory);
  }
  const StopSignals stop;
  const auto supervisor = Process::Start({.name = "the cluster's supervisor",
                                          .arguments = SuperviseArguments(directory, options),
                                          .drop_prefix = "NAM_",
                                          .stderr_file = StartingLog(directory),
                                          .detached = true});
  if (!supervisor.ok()) return ReportFailure(supervisor.status());
  Process* const one[] = {supervisor->get()};
  if (const absl::Status status = AwaitReady(one, kStartTimeoutMs, stop.fd()); !status.ok()) {
    if ((*supervisor)->running()) (*supervisor)->Stop(kStopTimeoutMs).IgnoreError();
    return ReportFailure(status);
  }
  unlink(StartingLog(directory).c_str());
  std::printf(
      "A cluster of %d memory servers (%s each) and %d compute servers runs in %s; its catalog is at %s.\n",
      options.memory_servers, FormatBytes(options.memory_bytes).c_str(), options.compute_servers,
      directory.c_str(), (*supervisor)->ready()->values.at("catalog").c_str());
  std::printf("Next: nam ssb load, nam sql, nam status, nam down.\n");
  return kExitOk;
}

int RunSupervise(const UpOptions& options) {
  StopSignals stop;
  const auto log_level = ParseLogLevel(options.log_level);
  if (!log_level.ok()) return Refuse(log_level.status());
  StartLog(*log_level, "supervisor");
  const std::string directory = Directory(options.state_dir);
  const auto lock = LockDirectory(directory);
  if (!lock.ok()) return ReportFailure(lock.status());
  auto cluster = LocalCluster::Start(ClusterOptionsOf(directory, options), stop.fd());
  absl::Status status = cluster.status();
  absl::StatusOr<std::unique_ptr<ScaleListener>> requests;
  if (status.ok()) status = (requests = ScaleListener::Listen(directory)).status();
  if (status.ok()) status = SaveState(directory, StateOf(**cluster, options.fabric));
  if (status.ok()) status = OpenLogFile({.directory = directory, .name = "supervisor"});
  if (status.ok()) {
    SayReady({"supervisor", {{"catalog", (*cluster)->catalog_address()}}});
    Supervise(**cluster, stop, **requests, directory, options.fabric);
    requests->reset();  // who asks from now on is told that nobody answers
    stop.GiveOrderlyEnd(kOrderlyEndSeconds);
    status = (*cluster)->Stop();
  }
  RemoveRunFiles(directory);
  return status.ok() ? kExitOk : ReportFailure(status);
}

int RunDown(const DownOptions& options) {
  const std::string directory = Directory(options.state_dir);
  const auto state = LoadState(directory);
  if (absl::IsNotFound(state.status())) {
    std::printf("No cluster runs in %s.\n", directory.c_str());
    return kExitOk;
  }
  const bool ran =
      state.ok() && EndForeignProcess(state->supervisor.pid, state->supervisor.start_time, kStopTimeoutMs);
  const auto lock = LockDirectory(directory);
  if (!lock.ok()) {
    return ReportFailure(absl::FailedPreconditionError(
        absl::StrCat(std::string(lock.status().message()),
                     ", but its cluster.json does not say which; end its `nam supervise`")));
  }
  const int left = EndLeftovers(directory);
  if (ran) {
    std::printf("The cluster in %s has stopped.\n", directory.c_str());
  } else {
    std::printf("Cleaned up after a cluster in %s that had been killed (%d processes were left).\n",
                directory.c_str(), left);
  }
  return kExitOk;
}

namespace {

/// What the catalog knows of used memory is as of the last renewal; a memory server that answers knows it
/// now.
void AskMemoryServers(catalog::Attachment& attachment, proto::Cluster& cluster) {
  for (proto::Member& member : *cluster.mutable_members()) {
    if (!member.alive() || member.suspect() || member.role() != proto::ROLE_MEMORY) continue;
    const auto usage = attachment.MemoryUsage(MemoryServerId(static_cast<uint16_t>(member.id())));
    if (usage.ok()) member.set_used_bytes(usage->used_bytes());
  }
}

}  // namespace

int RunStatus(const StatusOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  if (!format.ok()) return Refuse(format.status());
  const auto address = FindCluster(options.cluster);
  if (!address.ok()) return ReportNoConnection(address.status());
  // Looks on without being a member, and does not wait long for a server that stands still.
  catalog::ClientOptions catalog = address->client_options();
  catalog.timeout_us = 1'000'000;
  const auto attachment =
      catalog::Attachment::Attach({.catalog = catalog,
                                   .role = proto::ROLE_UNKNOWN,
                                   .rdma = options.cluster.rdma,
                                   .multicast_interface = options.cluster.multicast_interface,
                                   .multicast_ttl = options.cluster.multicast_ttl});
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  auto cluster = (*attachment)->catalog().GetCluster();
  if (!cluster.ok()) return ReportNoConnection(cluster.status());
  AskMemoryServers(**attachment, *cluster);
  const auto tables = (*attachment)->catalog().ListTables();
  if (!tables.ok()) return ReportNoConnection(tables.status());
  const bool readable = *format == OutputFormat::kTable || *format == OutputFormat::kMarkdown;
  if (*format == OutputFormat::kJson) {
    std::cout << StatusJson(*cluster, *tables);
    return kExitOk;
  }
  const PrintOptions print{.format = *format, .footer = false};
  if (*format == OutputFormat::kTable) {
    std::cout << "cluster " << cluster->name() << " over " << cluster->fabric() << ", timestamps "
              << cluster->timestamps() << "\n\n";
  }
  std::cout << Render(MembersReport(*cluster), print) << "\n"
            << Render(TablesReport(*tables, readable, &*cluster), print);
  return kExitOk;
}

}  // namespace nam::cli
