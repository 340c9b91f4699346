#include "cli/cluster_commands.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cli/cluster_report.h"
#include "cli/foreground.h"
#include "cli/kept_records.h"
#include "cli/scale_requests.h"
#include "fabric/fabric.h"
#include "localcluster/buried_servers.h"
#include "localcluster/data_layout.h"
#include "localcluster/local_cluster.h"
#include "localcluster/memory_room.h"
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
constexpr unsigned kClusterEndSeconds = 40;
/// For each call that saves record tables: a catalog that does not answer is no reason to go on.
constexpr int64_t kKeepTimeoutUs = 3'000'000;
constexpr int kEndsMax = 3;  // until the supervisor finds that nobody else has been there
constexpr size_t kEventsMax = 8;
constexpr int64_t kPollMsMax = 3'600'000;

std::string Directory(const std::string& state_dir) {
  return state_dir.empty() ? DefaultStateDirectory() : state_dir;
}

/// Ends processes that a killed supervisor may have left; returns their number.
int EndLeftovers(const StateDirectory& directory) {
  int ended = 0;
  if (const auto state = directory.LoadState(); state.ok()) {
    for (const ClusterState::Server& server : state->servers) {
      ended += EndForeignProcess(server.process, kStopTimeoutMs) ? 1 : 0;
    }
  }
  directory.RemoveRunFiles();
  return ended;
}

ClusterState::Server Describe(const std::string& name, pid_t pid) {
  return {name, IdentityOf(pid).value_or(ProcessIdentity{.pid = pid})};
}

/// The supervisor's state beside the cluster itself. Used by its one thread.
struct Supervision {
  LocalCluster& cluster;
  const StateDirectory& directory;
  const std::string fabric;
  const std::string data_directory;     // empty: none
  std::string there_again = {};         // FormerRecords
  std::deque<std::string> events = {};  // the latest, for `nam status`

  absl::Status Save() const {
    ClusterState state{.catalog_address = cluster.catalog_address(),
                       .fabric = fabric,
                       .data_directory = data_directory,
                       .supervisor = Describe("supervisor", getpid()),
                       .events = {events.begin(), events.end()}};
    if (!there_again.empty()) state.events.insert(state.events.begin(), there_again);
    for (const Process* process : cluster.processes())
      state.servers.push_back(Describe(process->name(), process->pid()));
    return directory.SaveState(state);
  }
};

/// Starts or stops compute servers for `nam scale`.
absl::StatusOr<ScaleReply> ServeScale(Supervision& supervision, const ScaleRequest& request,
                                      int interrupt_fd) {
  LocalCluster& cluster = supervision.cluster;
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
  status.Update(supervision.Save());
  NAM_RETURN_IF_ERROR(status);
  LogInfo(absl::StrCat(request.out ? "started" : "stopped", " compute servers ",
                       absl::StrJoin(reply.changed, ", "), " as `nam scale` asked"));
  reply.compute_servers = cluster.running_compute_servers();
  reply.memory_servers = cluster.running_memory_servers();
  return reply;
}

std::vector<pid_t> PidsOf(const LocalCluster& cluster) {
  std::vector<pid_t> pids;
  for (const Process* process : cluster.processes()) pids.push_back(process->pid());
  return pids;
}

/// Restarts servers that have ended, and publishes that.
void Tend(Supervision& supervision, BuriedServers& buried) {
  const std::vector<pid_t> before = PidsOf(supervision.cluster);
  if (RealClock().Passed(buried.next())) {
    for (const std::string& killed : buried.Look()) LogWarning(killed);
  }
  const std::vector<std::string> events = supervision.cluster.Tend();
  if (events.empty() && PidsOf(supervision.cluster) == before) return;
  if (supervision.cluster.lost_memory()) supervision.there_again.clear();
  for (const std::string& event : events) {
    LogWarning(event);
    supervision.events.push_back(event);
    if (supervision.events.size() > kEventsMax) supervision.events.pop_front();
  }
  // A later clean-up after this process needs them all.
  if (const absl::Status saved = supervision.Save(); !saved.ok()) LogError(std::string(saved.message()));
}

/// For `nam down`. OK: the rows are saved, and the cluster ends.
absl::Status DecideEnd(const Supervision& supervision, const EndRequest& request) {
  if (supervision.data_directory.empty())
    return absl::FailedPreconditionError("this cluster has no data directory");
  NAM_ASSIGN_OR_RETURN(const std::string secret, supervision.directory.ReadSecret());
  return MarkKept(
      {.address = supervision.cluster.catalog_address(), .secret = secret, .timeout_us = kKeepTimeoutUs},
      supervision.data_directory, request);
}

/// Until a signal comes, or `nam down` asks for the end.
void Supervise(Supervision& supervision, const StopSignals& stop, ScaleListener& requests,
               BuriedServers& buried) {
  bool ends = false;
  while (!ends) {
    std::vector<pollfd> waits{{stop.fd(), POLLIN, 0}, {requests.fd(), POLLIN, 0}};
    for (const int fd : supervision.cluster.wait_fds()) waits.push_back({fd, POLLIN, 0});
    const int64_t wake_ns = std::min(supervision.cluster.wake().ns, buried.next().ns);
    const int64_t left_ms = (wake_ns - RealClock().NowNs() + 999'999) / 1'000'000;
    const int ready =
        poll(waits.data(), waits.size(), static_cast<int>(std::clamp<int64_t>(left_ms, 0, kPollMsMax)));
    if (ready > 0 && waits[0].revents != 0) return;
    Tend(supervision, buried);
    if (ready <= 0 || waits[1].revents == 0) continue;
    requests.Serve(
        {.scale = [&](const ScaleRequest& request) { return ServeScale(supervision, request, stop.fd()); },
         .end =
             [&](const EndRequest& request) {
               absl::Status decided = DecideEnd(supervision, request);
               ends = decided.ok();
               return decided;
             }});
  }
}

std::vector<std::string> SuperviseArguments(const std::string& directory, const UpOptions& options) {
  std::vector<std::string> arguments = {
      "supervise",
      absl::StrCat("--state-dir=", std::string(std::filesystem::absolute(directory))),
      absl::StrCat("--data-dir=", options.data_directory),
      absl::StrCat("--fabric=", options.fabric),
      absl::StrCat("--memory-servers=", options.memory_servers),
      absl::StrCat("--compute-servers=", options.compute_servers),
      absl::StrCat("--memory=", options.memory_bytes),
      absl::StrCat("--threads=", options.threads),
      absl::StrCat("--timestamps=", options.timestamps),
      absl::StrCat("--encrypt=", options.encrypt ? "true" : "false"),
      absl::StrCat("--log-level=", options.log_level),
      absl::StrCat("--bury-after=", options.bury_after_s)};
  if (options.scratch_bytes.has_value())
    arguments.push_back(absl::StrCat("--scratch=", *options.scratch_bytes));
  return arguments;
}

LocalClusterOptions ClusterOptionsOf(const std::string& directory, const UpOptions& options) {
  return {.directory = directory,
          .data_directory = options.data_directory == kNoDataDirectory ? "" : options.data_directory,
          .fabric = options.fabric,
          .memory_servers = options.memory_servers,
          .compute_servers = options.compute_servers,
          .memory_bytes = options.memory_bytes,
          .scratch_bytes = options.scratch_bytes,
          .threads = options.threads,
          .timestamps = options.timestamps,
          .encrypt = options.encrypt,
          .log_level = options.log_level,
          .bury_after_s = options.bury_after_s};
}

}  // namespace

int RunUp(const UpOptions& given) {
  UpOptions options = given;
  const std::string path = Directory(options.state_dir);
  const std::string data = DataDirectoryOf(path, options.data_directory);
  options.data_directory = data.empty() ? kNoDataDirectory : data;
  options.memory_servers = std::max(options.memory_servers, data.empty() ? 0 : MemoryDirectoriesIn(data));
  if (options.memory_bytes == 0) options.memory_bytes = DefaultMemory(options.memory_servers);
  const auto fabric = fabric::ParseRealKind(options.fabric);
  if (!fabric.ok()) return Refuse(fabric.status());
  if (const absl::Status status = Validate(ClusterOptionsOf(path, options)); !status.ok())
    return Refuse(status);
  absl::Status room = CheckMemoryRoom(options.memory_bytes, options.memory_servers);
  if (room.ok()) room = CheckScratch(options.memory_bytes, options.scratch_bytes);
  if (!room.ok()) return Refuse(room);
  const auto directory = StateDirectory::Create(path);
  if (!directory.ok()) return Refuse(directory.status());
  {
    const auto lock = directory->Lock();
    if (absl::IsAlreadyExists(lock.status())) {
      return ReportFailure(absl::FailedPreconditionError(
          absl::StrCat(std::string(lock.status().message()), " already; `nam down` stops it")));
    }
    if (!lock.ok()) return ReportFailure(lock.status());
    EndLeftovers(*directory);
  }
  if (!data.empty()) {
    if (const absl::Status made = MakeDataDirectory(data); !made.ok()) return ReportFailure(made);
  }
  const StopSignals stop;
  const auto supervisor = Process::Start({.name = "the cluster's supervisor",
                                          .arguments = SuperviseArguments(path, options),
                                          .drop_prefix = "NAM_",
                                          .quote_stderr = true,
                                          .directory_fd = directory->fd(),
                                          .detached = true});
  if (!supervisor.ok()) return ReportFailure(supervisor.status());
  Process* const one[] = {supervisor->get()};
  if (const absl::Status status = AwaitReady(one, kStartTimeoutMs, stop.fd()); !status.ok()) {
    if ((*supervisor)->running()) (*supervisor)->Stop(kStopTimeoutMs).IgnoreError();
    return ReportFailure(absl::Status(
        status.code(), absl::StrCat("no cluster runs in ", path, ": ", std::string(status.message()))));
  }
  std::printf("A cluster of %s (%s%s) and %s runs in %s; its catalog is at %s.\n",
              CountOf(static_cast<uint64_t>(options.memory_servers), "memory server").c_str(),
              FormatBytes(options.memory_bytes).c_str(), options.memory_servers == 1 ? "" : " each",
              CountOf(static_cast<uint64_t>(options.compute_servers), "compute server").c_str(), path.c_str(),
              (*supervisor)->ready()->values.at("catalog").c_str());
  if (data.empty()) {
    std::printf("All data end with it.\n");
  } else {
    std::printf("Columnar tables outlive it in %s%s.\n", data.c_str(),
                EndsWithHost(data)
                    ? ", which is in memory (tmpfs) and ends with this host: --data-dir=DIR names another"
                    : "");
  }
  if (const auto state = directory->LoadState(); state.ok()) {
    for (const std::string& event : state->events) std::printf("%s\n", event.c_str());
  }
  std::printf("Next: nam ssb load, nam sql, nam status, nam down.\n");
  return kExitOk;
}

namespace {

/// Restores the record tables of a former run.
absl::Status BringBack(Supervision& supervision) {
  NAM_ASSIGN_OR_RETURN(const std::string secret, supervision.directory.ReadSecret());
  NAM_ASSIGN_OR_RETURN(const FormerRecords said,
                       BringBackRecords({.address = supervision.cluster.catalog_address(), .secret = secret},
                                        supervision.data_directory));
  supervision.there_again = said.there_again;
  if (!said.there_again.empty()) LogInfo(said.there_again);
  for (const std::string& what : said.lost) {
    supervision.events.push_back(what);
    LogWarning(what);
  }
  return absl::OkStatus();
}

}  // namespace

int RunSupervise(const UpOptions& options) {
  StopSignals stop;
  const auto log_level = ParseLogLevel(options.log_level);
  if (!log_level.ok()) return Refuse(log_level.status());
  StartLog(*log_level, "supervisor");
  const auto directory = StateDirectory::Open(Directory(options.state_dir));
  if (!directory.ok()) return Refuse(directory.status());
  const auto lock = directory->Lock();
  if (!lock.ok()) return ReportFailure(lock.status());
  if (fchdir(directory->fd()) != 0)
    return ReportFailure(absl::InternalError("cannot work in the state directory"));
  auto cluster = LocalCluster::Start(ClusterOptionsOf(directory->path(), options), stop.fd());
  absl::Status status = cluster.status();
  absl::StatusOr<std::unique_ptr<ScaleListener>> requests;
  if (status.ok()) status = (requests = ScaleListener::Listen(*directory)).status();
  if (status.ok()) {
    Supervision supervision{**cluster, *directory, options.fabric,
                            options.data_directory == kNoDataDirectory ? "" : options.data_directory};
    if (!supervision.data_directory.empty()) status = BringBack(supervision);
    if (status.ok()) status = supervision.Save();
    if (status.ok()) status = OpenLogFile({.directory = ".", .name = "supervisor"});
    const absl::StatusOr<std::string> secret = directory->ReadSecret();
    if (status.ok()) status = secret.status();
    if (status.ok()) {
      const ReadyLine ready{"supervisor", {{"catalog", (*cluster)->catalog_address()}}};
      LogInfo(absl::StrCat("started: ", ready.ToString()));
      SayReady(ready);
      BuriedServers buried(**cluster,
                           AskCatalog({.address = (*cluster)->catalog_address(), .secret = *secret}));
      Supervise(supervision, stop, **requests, buried);
      LogInfo("told to end");
      requests->reset();  // later requests are refused at once
      stop.GiveOrderlyEnd(kClusterEndSeconds);
    }
    status.Update((*cluster)->Stop());
  }
  directory->RemoveRunFiles();
  return status.ok() ? kExitOk : ReportFailure(status);
}

namespace {

/// Ends the sessions of all clients, saves the rows, and has the supervisor end the cluster with them.
/// Nothing: there is nothing to save, because it has ended. Any other cluster may answer again, and has its
/// rows still.
absl::StatusOr<std::optional<KeptRecords>> EndWithRecords(const StateDirectory& directory,
                                                          const ClusterState& state) {
  const absl::StatusOr<std::string> secret = directory.ReadSecret();
  if (!secret.ok()) return std::nullopt;
  absl::Status ends;
  for (int i = 0; i < kEndsMax; ++i) {
    absl::StatusOr<KeptRecords> kept =
        KeepRecords({.address = state.catalog_address, .secret = *secret, .timeout_us = kKeepTimeoutUs},
                    state.data_directory);
    ends = kept.status();
    if (kept.ok()) ends = AskToEnd(directory, kept->end, kStopTimeoutMs);
    if (ends.ok()) {
      for (const std::string& what : kept->said) std::printf("%s\n", what.c_str());
      return std::optional<KeptRecords>(*std::move(kept));
    }
    if (!absl::IsAborted(ends)) break;
  }
  const bool ended = IdentityOf(state.supervisor.process.pid) != state.supervisor.process;
  if (absl::IsUnavailable(ends) && ended) return std::nullopt;
  return absl::Status(ends.code(), absl::StrCat("record tables cannot be saved, so the cluster still runs: ",
                                                std::string(ends.message()),
                                                "; `nam down --discard-records` stops it without"));
}

}  // namespace

int RunDown(const DownOptions& options) {
  const std::string path = Directory(options.state_dir);
  const auto directory = StateDirectory::Open(path);
  const auto state = directory.ok() ? directory->LoadState() : directory.status();
  if (absl::IsNotFound(state.status())) {
    std::printf("No cluster runs in %s.\n", path.c_str());
    return kExitOk;
  }
  if (!directory.ok()) return Refuse(directory.status());
  const bool keeps = state.ok() && !state->data_directory.empty() && !options.discard_records;
  absl::StatusOr<std::optional<KeptRecords>> ends =
      keeps ? EndWithRecords(*directory, *state) : absl::StatusOr<std::optional<KeptRecords>>(std::nullopt);
  if (!ends.ok()) return ReportFailure(ends.status());
  const bool found =
      state.ok() && EndForeignProcess(state->supervisor.process, kStopTimeoutMs, ends->has_value());
  const bool ran = found || ends->has_value();  // it may have ended by now
  if (ends->has_value()) (*ends)->sole->Forget();
  const auto lock = directory->Lock();
  if (absl::IsAlreadyExists(lock.status())) {
    return ReportFailure(absl::FailedPreconditionError(
        absl::StrCat(std::string(lock.status().message()),
                     ", but its cluster.json does not say which; end its `nam supervise`")));
  }
  if (!lock.ok()) return ReportFailure(lock.status());
  const int left = EndLeftovers(*directory);
  if (ran) {
    std::printf("The cluster in %s has stopped.\n", path.c_str());
  } else {
    std::printf("Cleaned up after a cluster in %s that had been killed (%d processes were left).\n",
                path.c_str(), left);
  }
  return kExitOk;
}

namespace {

/// The catalog knows used memory as of the last renewal; a memory server that answers knows the current
/// figure, and its scratch memory.
ScratchUses AskMemoryServers(catalog::Attachment& attachment, proto::Cluster& cluster) {
  ScratchUses scratch;
  for (proto::Member& member : *cluster.mutable_members()) {
    if (!member.alive() || member.suspect() || member.role() != proto::ROLE_MEMORY) continue;
    const auto usage = attachment.MemoryUsage(MemoryServerId(static_cast<uint16_t>(member.id())));
    if (!usage.ok()) continue;
    member.set_used_bytes(usage->used_bytes());
    scratch[member.id()] = {.used_bytes = usage->scratch_used_bytes(),
                            .highest_bytes = usage->scratch_highest_bytes(),
                            .bytes = usage->scratch_bytes()};
  }
  return scratch;
}

}  // namespace

int RunStatus(const StatusOptions& options) {
  const auto format = ParseOutputFormat(options.format);
  if (!format.ok()) return Refuse(format.status());
  const auto address = FindCluster(options.cluster);
  if (!address.ok()) return ReportNoConnection(address.status());
  // Watches without being a member, and does not wait long for a stalled server.
  const auto attachment = AttachTo(*address, {.catalog = {.timeout_us = 1'000'000},
                                              .role = proto::ROLE_UNKNOWN,
                                              .rdma = options.cluster.rdma,
                                              .multicast_interface = options.cluster.multicast_interface,
                                              .multicast_ttl = options.cluster.multicast_ttl});
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  auto cluster = (*attachment)->catalog().GetCluster();
  if (!cluster.ok()) return ReportNoConnection(cluster.status());
  const ScratchUses scratch = AskMemoryServers(**attachment, *cluster);
  const auto tables = (*attachment)->catalog().ListTables();
  if (!tables.ok()) return ReportNoConnection(tables.status());
  const bool readable = *format == OutputFormat::kTable || *format == OutputFormat::kMarkdown;
  if (*format == OutputFormat::kJson) {
    std::cout << StatusJson(*cluster, scratch, *tables, address->events);
    return kExitOk;
  }
  const PrintOptions print{.format = *format, .footer = false};
  if (*format == OutputFormat::kTable) {
    std::cout << "cluster " << cluster->name() << " over " << cluster->fabric() << ", timestamps "
              << cluster->timestamps() << "\n\n";
  }
  std::cout << Render(MembersReport(*cluster, scratch), print) << "\n"
            << Render(TablesReport(*tables, readable, *cluster), print);
  if (*format == OutputFormat::kTable) {
    std::cout << "\n" << CalibrationLine(*cluster) << "\n";
    for (const std::string& event : address->events) std::cout << "\n" << event;
    if (!address->events.empty()) std::cout << "\n";
  }
  return kExitOk;
}

}  // namespace nam::cli
