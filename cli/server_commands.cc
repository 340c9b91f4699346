#include "cli/server_commands.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "catalog/server.h"
#include "cli/foreground.h"
#include "computeserver/server.h"
#include "fabric/fabric.h"
#include "localcluster/connect.h"
#include "localcluster/memory_room.h"
#include "localcluster/state_directory.h"
#include "memserver/server.h"
#include "terminal/exit_codes.h"
#include "terminal/units.h"

namespace nam::cli {
namespace {

constexpr int64_t kShutdownUs = 3'000'000;
constexpr uint64_t kPageBytes = 4096;

std::string Number(uint64_t n) {
  return absl::StrCat(n);
}

uint32_t Milliseconds(double seconds) {
  return static_cast<uint32_t>(std::clamp(seconds * 1e3, 0.0, 4e9));
}

class CatalogProcess final : public RunningServer {
 public:
  explicit CatalogProcess(std::unique_ptr<catalog::CatalogServer> server) : server_(std::move(server)) {}
  ~CatalogProcess() override { server_->Shutdown(RealClock().After(kShutdownUs)); }
  ReadyLine ready() const override {
    return {"catalog", {{"address", server_->address()}, {"leases", server_->lease_address()}}};
  }

 private:
  std::unique_ptr<catalog::CatalogServer> server_;
};

class MemoryServerProcess final : public RunningServer {
 public:
  explicit MemoryServerProcess(std::unique_ptr<memserver::MemoryServer> server)
      : server_(std::move(server)) {}
  ~MemoryServerProcess() override { server_->Shutdown(RealClock().After(kShutdownUs)); }
  ReadyLine ready() const override {
    return {"memserver",
            {{"id", Number(server_->id().value())},
             {"control", server_->control_address()},
             {"fabric", server_->fabric_address()},
             {"memory_bytes", Number(server_->capacity_bytes())},
             {"storage", Number(server_->storage().value())}}};
  }

 private:
  std::unique_ptr<memserver::MemoryServer> server_;
};

class ComputeServerProcess final : public RunningServer {
 public:
  explicit ComputeServerProcess(std::unique_ptr<computeserver::ComputeServer> server)
      : server_(std::move(server)) {}
  ReadyLine ready() const override {
    return {"compute", {{"id", Number(server_->id().value())}, {"control", server_->control_address()}}};
  }

 private:
  std::unique_ptr<computeserver::ComputeServer> server_;
};

constexpr char kMakeSecret[] =
    "make a secret with (umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' >FILE); `nam up` "
    "starts a cluster on this host without any of that";
constexpr char kCatalogTells[] =
    "they are the catalog's address, as its READY line tells it, and the file that the catalog was started "
    "with; `nam up` starts a cluster on this host without any of that";

struct NeededOption {
  const char* shown;
  const std::string& value;
};

/// INVALID_ARGUMENT names all missing options.
absl::Status CheckGiven(const char* role, std::initializer_list<NeededOption> needed, const char* hint) {
  std::vector<std::string> missing;
  for (const NeededOption& option : needed) {
    if (option.value.empty()) missing.emplace_back(option.shown);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("nam ", role, " needs ", absl::StrJoin(missing, " and "), "; ", hint));
}

absl::Status CheckMember(const char* role, const std::string& catalog, const std::string& secret_file) {
  return CheckGiven(role, {{"--catalog=HOST:PORT", catalog}, {"--secret-file=FILE", secret_file}},
                    kCatalogTells);
}

}  // namespace

int RunCatalog(const CatalogOptions& options) {
  const auto fabric = fabric::ParseRealKind(options.fabric);
  if (!fabric.ok()) return Refuse(fabric.status());
  if (options.encrypt && !fabric::CanEncrypt(*fabric)) {
    return Refuse(absl::InvalidArgumentError("--encrypt is for --fabric=tcp"));
  }
  const absl::Status given = CheckGiven(
      "catalog", {{"--store=FILE", options.store}, {"--secret-file=FILE", options.secret_file}}, kMakeSecret);
  if (!given.ok()) return Refuse(given);
  const auto secret = ReadSecret(options.secret_file);
  if (!secret.ok()) return Refuse(secret.status());
  const auto control_plane = OpenControlPlane(options.tls);
  if (!control_plane.ok()) return Refuse(control_plane.status());
  return ServeInForeground(
      "catalog", options.log, [&](const OnLost&) -> absl::StatusOr<std::unique_ptr<RunningServer>> {
        NAM_ASSIGN_OR_RETURN(
            auto server, catalog::CatalogServer::Start({.listen_address = options.listen,
                                                        .lease_port = options.lease_port,
                                                        .store_path = options.store,
                                                        .cluster_name = options.cluster_name,
                                                        .fabric = *fabric,
                                                        .secret = *secret,
                                                        .lease_ms = options.lease_ms,
                                                        .bury_after_ms = Milliseconds(options.bury_after_s),
                                                        .timestamps = options.timestamps,
                                                        .encrypt = options.encrypt,
                                                        .accept_older_store = options.accept_older_store,
                                                        .control_plane = *control_plane}));
        return std::make_unique<CatalogProcess>(std::move(server));
      });
}

namespace {

std::optional<uint64_t> WholePages(std::optional<uint64_t> bytes) {
  if (bytes.has_value()) *bytes = *bytes / kPageBytes * kPageBytes;
  return bytes;
}

}  // namespace

int RunMemoryServer(const MemoryServerCommandOptions& options) {
  const absl::Status given = CheckMember("memserver", options.catalog, options.secret_file);
  if (!given.ok()) return Refuse(given);
  const auto secret = ReadSecret(options.secret_file);
  if (!secret.ok()) return Refuse(secret.status());
  const auto control_plane = OpenControlPlane(options.tls);
  if (!control_plane.ok()) return Refuse(control_plane.status());
  const catalog::ClientOptions catalog = {
      .address = options.catalog, .secret = *secret, .control_plane = *control_plane};
  if (options.memory_bytes < kPageBytes) {
    return Refuse(absl::InvalidArgumentError("a memory server needs at least 4 KiB of memory"));
  }
  absl::Status room = CheckMemoryRoom(options.memory_bytes, 1);
  if (room.ok()) room = CheckScratch(options.memory_bytes, options.scratch_bytes);
  if (!room.ok()) return Refuse(room);
  return ServeInForeground(
      "memserver", options.log, [&](const OnLost& on_lost) -> absl::StatusOr<std::unique_ptr<RunningServer>> {
        NAM_ASSIGN_OR_RETURN(
            auto server,
            memserver::MemoryServer::Start(
                {.catalog = catalog,
                 .memory_bytes = options.memory_bytes / kPageBytes * kPageBytes,
                 .scratch_bytes = WholePages(options.scratch_bytes),
                 .control_listen_address = options.control_listen,
                 .fabric_listen_address = options.fabric_listen,
                 .advertised_host = options.advertised_host,
                 .data_directory = options.data_directory == "none" ? "" : options.data_directory,
                 .populate = options.populate,
                 .nic_threads = options.nic_threads,
                 .rdma = options.rdma,
                 .multicast_interface = options.multicast_interface,
                 .multicast_ttl = options.multicast_ttl,
                 .on_lost = on_lost}));
        return std::make_unique<MemoryServerProcess>(std::move(server));
      });
}

int RunComputeServer(const ComputeServerCommandOptions& options) {
  const absl::Status given = CheckMember("compute", options.catalog, options.secret_file);
  if (!given.ok()) return Refuse(given);
  const auto secret = ReadSecret(options.secret_file);
  if (!secret.ok()) return Refuse(secret.status());
  const auto control_plane = OpenControlPlane(options.tls);
  if (!control_plane.ok()) return Refuse(control_plane.status());
  const catalog::ClientOptions catalog = {
      .address = options.catalog, .secret = *secret, .control_plane = *control_plane};
  const uint64_t memory_bytes = options.memory_bytes.value_or(DefaultComputeMemory(1));
  if (const absl::Status room = CheckComputeMemory(memory_bytes); !room.ok()) return Refuse(room);
  return ServeInForeground(
      "compute", options.log, [&](const OnLost& on_lost) -> absl::StatusOr<std::unique_ptr<RunningServer>> {
        NAM_ASSIGN_OR_RETURN(auto server,
                             computeserver::ComputeServer::Start(
                                 {.catalog = catalog,
                                  .threads = options.threads > 0 ? options.threads : HostProcessors(),
                                  .memory_bytes = memory_bytes,
                                  .control_listen_address = options.control_listen,
                                  .fabric_listen_address = options.fabric_listen,
                                  .advertised_host = options.advertised_host,
                                  .rdma = options.rdma,
                                  .multicast_interface = options.multicast_interface,
                                  .multicast_ttl = options.multicast_ttl,
                                  .on_lost = on_lost}));
        return std::make_unique<ComputeServerProcess>(std::move(server));
      });
}

}  // namespace nam::cli
