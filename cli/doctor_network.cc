#include "cli/doctor_network.h"

#include <linux/capability.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "catalog/address.h"
#include "cli/host_files.h"
#include "terminal/units.h"

namespace nam::cli {
namespace {

using fabric::Kind;

constexpr int64_t kMulticastTimeoutUs = 2'000'000;
constexpr int64_t kResendUs = 100'000;
constexpr uint32_t kReceives = 8;
constexpr uint32_t kSlotBytes = 256;
constexpr uint32_t kPayloadBytes = 64;
constexpr uint64_t kDatagramBufferBytes = uint64_t{16} << 20;  // requested by the tcp fabric

absl::Status ListenError(int error) {
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError("the port is in use");
    case EACCES:
      return absl::PermissionDeniedError("the port is privileged");
    case EADDRNOTAVAIL:
      return absl::NotFoundError("not an address of this host");
    default:
      return absl::UnavailableError(std::strerror(error));
  }
}

absl::Status BindAndListen(const addrinfo& to) {
  const UniqueFd socket(::socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC, to.ai_protocol));
  if (!socket.valid()) return ListenError(errno);
  // As servers do: lingering connections of an earlier one do not keep the port.
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.get(), to.ai_addr, to.ai_addrlen) != 0) return ListenError(errno);
  if (listen(socket.get(), 1) != 0) return ListenError(errno);
  return absl::OkStatus();
}

/// A datagram queue pair with its completion queue and memory.
struct DatagramEnd {
  static absl::StatusOr<DatagramEnd> Create(fabric::Fabric& fabric) {
    DatagramEnd end;
    NAM_ASSIGN_OR_RETURN(end.memory, fabric.Allocate(size_t{kSlotBytes} * kReceives, {.huge_pages = false}));
    NAM_ASSIGN_OR_RETURN(end.completions, fabric.CreateCompletionQueue(2 * kReceives));
    NAM_ASSIGN_OR_RETURN(
        end.pair, fabric.CreateDatagramQueuePair(*end.completions,
                                                 {.send_depth = kReceives, .receive_depth = kReceives}));
    return end;
  }
  std::unique_ptr<fabric::MemoryRegion> memory;
  std::unique_ptr<fabric::CompletionQueue> completions;
  std::unique_ptr<fabric::DatagramQueuePair> pair;
};

}  // namespace

absl::Status TryListen(const std::string& address) {
  NAM_ASSIGN_OR_RETURN(auto split, catalog::SplitAddress(address));
  const std::string host = catalog::BareHost(split.first);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), absl::StrCat(split.second).c_str(), &hints, &found);
  if (error != 0) return absl::NotFoundError(absl::StrCat("the host has no address: ", gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  return BindAndListen(*found);
}

Finding CheckListen(const std::string& address, const absl::Status& listened) {
  Finding finding{.name = "listen " + address, .needed = "free", .fabrics = kRealFabrics};
  finding.found = listened.ok() ? "free" : std::string(listened.message());
  if (listened.ok()) return finding;
  finding.state = FindingState::kMissing;
  const std::string port = address.substr(address.rfind(':') + 1);
  if (absl::IsAlreadyExists(listened)) {
    finding.remedy = absl::StrCat("ss -ltnp 'sport = :", port,
                                  "' names the process that has it; stop that, or choose another");
  } else if (absl::IsPermissionDenied(listened)) {
    finding.remedy = absl::StrCat("sysctl -w net.ipv4.ip_unprivileged_port_start=", port);
  } else {
    finding.remedy = "ip address show lists what this host can listen on";
  }
  return finding;
}

absl::Status TryMulticast(fabric::Fabric& fabric) {
  NAM_ASSIGN_OR_RETURN(DatagramEnd sender, DatagramEnd::Create(fabric));
  NAM_ASSIGN_OR_RETURN(DatagramEnd member, DatagramEnd::Create(fabric));
  NAM_ASSIGN_OR_RETURN(const fabric::DatagramTarget group,
                       sender.pair->OpenGroup(static_cast<uint32_t>(fabric.Random() >> 40)));
  NAM_ASSIGN_OR_RETURN(const std::string address, sender.pair->GroupAddress(group));
  for (uint32_t i = 0; i < kReceives; ++i) {
    const fabric::ReceiveRequest receive{i, member.memory->Slice(size_t{i} * kSlotBytes, kSlotBytes)};
    NAM_RETURN_IF_ERROR(member.pair->PostReceive({&receive, 1}));
  }
  NAM_RETURN_IF_ERROR(member.pair->Join(address));
  std::array<fabric::Completion, kReceives> completions;
  const Deadline deadline = fabric.clock().After(kMulticastTimeoutUs);
  while (!fabric.clock().Passed(deadline)) {
    const fabric::DatagramRequest request{.local = sender.memory->Slice(0, kPayloadBytes), .to = group};
    NAM_RETURN_IF_ERROR(sender.pair->Post({&request, 1}));
    const size_t heard = member.completions->Wait(completions, fabric.clock().After(kResendUs));
    if (heard > 0 && completions[0].ok() && completions[0].bytes == kPayloadBytes) return absl::OkStatus();
    sender.completions->Poll(completions);
  }
  return absl::UnavailableError("nothing came back within 2 s");
}

Finding CheckMulticast(const absl::Status& heard, const std::string& interface) {
  Finding finding{.name = "multicast", .needed = "heard by a second socket", .fabrics = {Kind::kTcp}};
  finding.found = heard.ok() ? "heard by a second socket" : std::string(heard.message());
  if (heard.ok()) return finding;
  finding.state = FindingState::kWarning;  // streams fall back to READ
  finding.remedy = absl::StrCat("ip link set dev ", interface, " multicast on; ip route add 224.0.0.0/4 dev ",
                                interface, "; let UDP ports 20000 to 28191 through the firewall");
  return finding;
}

Finding CheckDatagramBuffer(const HostTree& tree) {
  Finding finding{
      .name = "UDP receive buffer", .needed = FormatBytes(kDatagramBufferBytes), .fabrics = {Kind::kTcp}};
  const auto bytes = ReadNumber(tree.proc + "/sys/net/core/rmem_max");
  const bool may_exceed = HasCapability(tree.proc, CAP_NET_ADMIN);
  finding.found = may_exceed ? "any (CAP_NET_ADMIN)" : bytes ? FormatBytes(*bytes) : "unknown";
  if (may_exceed || (bytes && *bytes >= kDatagramBufferBytes)) return finding;
  finding.state = FindingState::kWarning;
  finding.remedy = absl::StrCat("sysctl -w net.core.rmem_max=", kDatagramBufferBytes);
  return finding;
}

}  // namespace nam::cli
