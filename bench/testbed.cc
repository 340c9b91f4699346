#include "bench/testbed.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/threads.h"
#include "terminal/json_report.h"

namespace nam::bench {
namespace {

constexpr int kRoundMs = 4;           // less than a time slice, so that most rounds are undisturbed
constexpr int kSimulatedRoundMs = 1;  // virtual time
constexpr int kStartSecondsMax = 60, kEndSecondsMax = 10;  // bound the process of the server

Json ToJson(const ServerAddress& address) {
  return {{"one_sided", address.one_sided},
          {"messages", address.messages},
          {"rkey", address.rkey.value},
          {"region_bytes", address.region_bytes}};
}

absl::StatusOr<ServerAddress> ParseAddress(const Json& json) {
  if (!json.is_object()) return absl::UnavailableError("the benchmark's server process does not start");
  if (json.contains("error")) return absl::InternalError(json.at("error").get<std::string>());
  return ServerAddress{.one_sided = json.at("one_sided"),
                       .messages = json.at("messages"),
                       .rkey = {json.at("rkey").get<uint32_t>()},
                       .region_bytes = json.at("region_bytes")};
}

}  // namespace

Testbed::Testbed(const TestbedOptions& options)
    : options_(options), secret_(absl::StrFormat("%016x%016x", fabric::RandomBits(), fabric::RandomBits())) {}

Testbed::~Testbed() {
  client_.reset();
  server_process_.reset();
  if (server_pid_ > 0) waitpid(server_pid_, nullptr, 0);
}

absl::StatusOr<std::unique_ptr<Testbed>> Testbed::Open(const TestbedOptions& options) {
  std::unique_ptr<Testbed> testbed(new Testbed(options));
  const bool simulated = options.kind == fabric::Kind::kSim;
  if (simulated) {
    NAM_ASSIGN_OR_RETURN(testbed->nic_, fabric::sim::NicModel::Parse(options.generation));
    testbed->world_.emplace(
        fabric::sim::WorldOptions{.nic = testbed->nic_, .replay = "nam bench --fabric=sim"});
  }
  const bool forks = options.own_process && !simulated;
  NAM_ASSIGN_OR_RETURN(testbed->address_, forks ? testbed->ForkServer() : testbed->StartServer());
  NAM_ASSIGN_OR_RETURN(testbed->client_, testbed->OpenClient());
  return testbed;
}

absl::StatusOr<ServerAddress> Testbed::StartServer() {
  NAM_ASSIGN_OR_RETURN(server_fabric_, OpenFabric("server", options_.server_host, options_.server_rdma));
  NAM_ASSIGN_OR_RETURN(server_, BenchServer::Start(*server_fabric_, options_.region_bytes,
                                                   world_.has_value() ? "server" : options_.server_host));
  return server_->address();
}

/// The child writes its server's addresses or an error, and ends with its parent:
///
///     child ── {"one_sided": ADDRESS, …} or {"error": TEXT}, end ──▶ parent,  parent ── end ──▶ child
void Testbed::ServeParent(int parent) {
  prctl(PR_SET_NAME, "nam-bench-srv");
  const absl::StatusOr<ServerAddress> address = StartServer();
  const std::string text =
      (address.ok() ? ToJson(*address) : Json{{"error", std::string(address.status().message())}}).dump();
  char end = 0;
  if (write(parent, text.data(), text.size()) > 0 && shutdown(parent, SHUT_WR) == 0)
    std::ignore = read(parent, &end, 1);
  alarm(kEndSecondsMax);
  server_.reset();
  server_fabric_.reset();
  _exit(0);
}

absl::StatusOr<ServerAddress> Testbed::ForkServer() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ErrnoToStatus(errno, "socketpair");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  server_pid_ = fork();
  if (server_pid_ < 0) return absl::ErrnoToStatus(errno, "fork");
  if (server_pid_ == 0) {
    ours.reset();
    ServeParent(theirs.get());
  }
  theirs.reset();
  server_process_ = std::move(ours);
  const timeval patience{.tv_sec = kStartSecondsMax};
  setsockopt(server_process_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t n = 0; (n = read(server_process_.get(), chunk.data(), chunk.size())) > 0;)
    text.append(chunk.data(), static_cast<size_t>(n));
  return ParseAddress(Json::parse(text, nullptr, /*allow_exceptions=*/false));
}

absl::StatusOr<std::unique_ptr<fabric::Fabric>> Testbed::OpenFabric(const std::string& simulated_host,
                                                                    const std::string& host,
                                                                    const std::string& rdma) {
  if (world_.has_value()) return world_->OpenFabric(simulated_host, {.secret = secret_});
  return fabric::Open(
      {.kind = options_.kind, .secret = secret_, .rdma = rdma, .host = host, .encrypt = options_.encrypt});
}

absl::StatusOr<std::unique_ptr<fabric::Fabric>> Testbed::OpenClient() {
  // Both ends are on this host; an explicit device may have an address other than the server's.
  const std::string host = options_.rdma.empty() ? options_.server_host : "";
  return OpenFabric(absl::StrCat("client-", ++clients_), host, options_.rdma);
}

std::optional<FabricBound> Testbed::BoundOf(const Lanes& lanes) {
  switch (options_.kind) {
    case fabric::Kind::kShm:
      return MemoryBound(*client_, lanes);
    case fabric::Kind::kTcp:
      return SocketBound(*client_, lanes);
    case fabric::Kind::kSim:
      return LineRateBound(1e6 * static_cast<double>(nic_.port_bytes_per_us) * nic_.ports,
                           1e6 * static_cast<double>(nic_.messages_per_us));
    default:
      return std::nullopt;
  }
}

std::vector<Option> TestbedCommand::WithTestbed(std::vector<Option> own) {
  std::vector<Option> common = {
      Option::OneOf("--fabric", &fabric_, {"shm", "tcp", "verbs", "sim"}, "to be measured"),
      {"--generation", &testbed_.generation, "sim: fdr, edr, hdr or ndr"},
      Option::Place("--rdma", &testbed_.rdma, "DEVICE[:PORT][,gid=N]", "verbs: the client's device"),
      Option::Place("--server-rdma", &testbed_.server_rdma, "DEVICE[:PORT][,gid=N]",
                    "verbs: the server's device"),
      {"--encrypt", &testbed_.encrypt, "encrypt network traffic (tcp)"},
      Option::Place("--server-host", &testbed_.server_host, "HOST", "the address that the server listens on"),
      Option::Within("--repeat", &repeat_, 1, 10'000, "rounds; figures are medians"),
      Option::Within("--round-ms", &round_ms_, 0, 60'000,
                     "duration of a measurement; 0: the fabric's default")};
  std::move(common.begin(), common.end(), std::back_inserter(own));
  return own;
}

absl::Status TestbedCommand::Check() {
  testbed_.kind = fabric::Kind::kSim;  // not a cluster's fabric, so it is not parsed
  if (!simulated()) {
    NAM_ASSIGN_OR_RETURN(testbed_.kind, fabric::ParseKind(fabric_));
  }
  if (testbed_.encrypt && testbed_.kind != fabric::Kind::kTcp)
    return absl::InvalidArgumentError("--encrypt is for --fabric=tcp");
  if (simulated()) repeat_ = 1;
  if (round_ms_ == 0) round_ms_ = simulated() ? kSimulatedRoundMs : kRoundMs;
  return simulated() ? fabric::sim::NicModel::Parse(testbed_.generation).status() : absl::OkStatus();
}

absl::StatusOr<Report> TestbedCommand::Measure(Run& run) {
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<Testbed> testbed, Testbed::Open(testbed_));
  return MeasureOn(*testbed, run);
}

}  // namespace nam::bench
