#include "catalog/rpc.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "catalog/token.h"

namespace nam::catalog {
namespace {

// Statuses travel as HTTP/2 trailers, whose size both ends bound.
constexpr int kTrailerBytesMax = 64 << 10;
constexpr size_t kMessageBytesMax = 8 << 10;
constexpr size_t kPayloadBytesMax = 16 << 10;

// A server that stands still in the middle of a long call (a query's fragment) is lost after their sum.
constexpr int kKeepaliveMs = 1'500;
constexpr int kKeepaliveTimeoutMs = 3'000;

// Fields of google.rpc.Status.
constexpr int kCodeField = 1;
constexpr int kDetailsField = 3;

// How a failed bind looks to the kernel: gRPC only says that it failed.
std::string WhyNotListening(const std::string& host, uint16_t port) {
  std::string bare = host;
  if (bare.size() > 2 && bare.front() == '[') bare = bare.substr(1, bare.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int failed = getaddrinfo(bare.c_str(), std::to_string(port).c_str(), &hints, &found);
      failed != 0) {
    return absl::StrCat("unknown host: ", gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  const UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (!fd.valid() || ::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), 1) != 0) {
    switch (errno) {
      case EADDRINUSE:
        return "the port is in use by another process; choose another, or 0 for any";
      case EADDRNOTAVAIL:
        return "this host has no such address";
      case EACCES:
        return "no permission for this port; choose one above 1023";
      default:
        return std::strerror(errno);
    }
  }
  return "gRPC could not start";
}

// The words of gRPC's transport errors that tell a user something.
std::string TransportReason(const std::string& message) {
  static constexpr struct {
    const char* found;
    const char* said;
  } kKnown[] = {
      {"Connection refused", "connection refused"},
      {"DNS resolution failed", "unknown host name"},
      {"No route to host", "no route to host"},
      {"Network is unreachable", "network is unreachable"},
      {"http1.x server", "it does not speak gRPC"},
      {"Failed parsing HTTP/2", "it does not speak gRPC"},
      {"Connection reset", "connection reset"},
      {"Broken pipe", "connection closed"},
      {"Socket closed", "connection closed"},
      {"GOAWAY", "connection closed"},
      {"imeout occurred", "no answer"},
      {"watchdog timeout", "no answer"},
      {"imed out", "no answer"},
  };
  for (const auto& known : kKnown) {
    if (message.find(known.found) != std::string::npos) return known.said;
  }
  const size_t last = message.rfind("last error: ");
  return last == std::string::npos ? message : message.substr(last + std::strlen("last error: "));
}

// What goes wrong comes back as a status; gRPC's own lines on stderr would only repeat it in its words.
// GRPC_VERBOSITY brings them back.
void QuietGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
  });
}

bool IsWildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "[::]" || host == "*";
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::protobuf::UnknownFieldSet details;
  details.AddVarint(kCodeField, static_cast<uint64_t>(status.code()));
  size_t payload_bytes = 0;
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    payload_bytes += type_url.size() + payload.size();
    if (payload_bytes > kPayloadBytesMax) return;
    google::protobuf::Any any;
    any.set_type_url(std::string(type_url));
    any.set_value(std::string(payload));
    details.AddLengthDelimited(kDetailsField, any.SerializeAsString());
  });
  std::string encoded;
  details.SerializeToString(&encoded);
  std::string message(status.message().substr(0, kMessageBytesMax));
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message, encoded);
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::protobuf::UnknownFieldSet details;
  if (!details.ParseFromString(status.error_details())) return result;
  for (int i = 0; i < details.field_count(); ++i) {
    const google::protobuf::UnknownField& field = details.field(i);
    if (field.number() != kDetailsField ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    google::protobuf::Any any;
    if (any.ParseFromString(field.length_delimited()))
      result.SetPayload(any.type_url(), absl::Cord(any.value()));
  }
  return result;
}

TokenCheck::TokenCheck(const std::string& secret) : token_(ControlToken(secret)) {}

grpc::Status TokenCheck::Check(const grpc::ServerContext& context) const {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kTokenKey);
  if (found != metadata.end() && SameToken({found->second.data(), found->second.size()}, token_)) {
    return grpc::Status::OK;
  }
  return ToGrpcStatus(absl::UnauthenticatedError(
      found == metadata.end() ? "the call carries no token" : "the token is not that of this cluster"));
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcServerOptions& options) {
  NAM_ASSIGN_OR_RETURN(const auto host_port, SplitAddress(options.address));
  QuietGrpc();
  grpc::ResourceQuota quota("nam");
  quota.Resize(options.memory_bytes_max).SetMaxThreads(options.threads_max);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kRpcMessageBytesMax);
  builder.SetMaxSendMessageSize(kRpcMessageBytesMax);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 4);
  // Without this a second server on the same port would start and take half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kTrailerBytesMax);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMs / 2);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    if (server != nullptr) server->Shutdown();
    return absl::UnavailableError(absl::StrFormat("cannot listen on %s: %s", options.address,
                                                  WhyNotListening(host_port.first, host_port.second)));
  }
  return std::unique_ptr<RpcServer>(
      new RpcServer(std::move(server), absl::StrCat(host_port.first, ":", port), *options.clock));
}

RpcServer::RpcServer(std::unique_ptr<grpc::Server> server, std::string address, Clock& clock)
    : server_(std::move(server)), address_(std::move(address)), clock_(clock) {}

RpcServer::~RpcServer() {
  Shutdown(Deadline{0});
}

void RpcServer::Shutdown(Deadline deadline) {
  if (server_ == nullptr) return;
  const int64_t left_ns = deadline.ns == Deadline::Never().ns ? deadline.ns : deadline.ns - clock_.NowNs();
  if (left_ns == Deadline::Never().ns) {
    server_->Shutdown();
  } else {
    server_->Shutdown(gpr_time_from_nanos(std::max<int64_t>(left_ns, 0), GPR_TIMESPAN));
  }
  server_->Wait();
  server_.reset();
}

absl::StatusOr<std::pair<std::string, uint16_t>> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port > 65'535 || (address.find(':') != colon && address.front() != '[')) {
    return absl::InvalidArgumentError(
        absl::StrFormat("`%s` is not an address; write host:port, for example 127.0.0.1:4700", address));
  }
  return std::make_pair(address.substr(0, colon), static_cast<uint16_t>(port));
}

std::string LocalHostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::string AdvertisedAddress(const std::string& address, const std::string& host) {
  const auto split = SplitAddress(address);
  if (!split.ok()) return address;
  if (!host.empty()) return absl::StrCat(host, ":", split->second);
  return IsWildcard(split->first) ? absl::StrCat(LocalHostName(), ":", split->second) : address;
}

Peer::Peer(std::string name, const std::string& address, const std::string& secret)
    : name_(std::move(name)), token_(ControlToken(secret)) {
  QuietGrpc();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kRpcMessageBytesMax);
  arguments.SetMaxSendMessageSize(kRpcMessageBytesMax);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kTrailerBytesMax);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // Otherwise there are only two pings in a call that sends nothing else.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A server that comes back is found again well within a lease.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // The cluster's own traffic never goes by a proxy of the environment.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void Peer::Prepare(grpc::ClientContext& context, int64_t timeout_us) const {
  context.AddMetadata(kTokenKey, token_);
  context.set_deadline(gpr_time_from_micros(timeout_us, GPR_TIMESPAN));
}

absl::Status Peer::Error(const grpc::Status& status, int64_t timeout_us) const {
  absl::Status error = FromGrpcStatus(status);
  const bool from_service = !status.error_details().empty();
  std::string message;
  if (error.code() == absl::StatusCode::kUnauthenticated) {
    message =
        absl::StrFormat("%s refuses us: %s; use the secret of its cluster", name_, status.error_message());
  } else if (from_service) {
    message = absl::StrFormat("%s: %s", name_, status.error_message());
  } else if (error.code() == absl::StatusCode::kUnavailable) {
    message = absl::StrFormat("cannot reach %s: %s; is it running?", name_,
                              TransportReason(status.error_message()));
  } else if (error.code() == absl::StatusCode::kDeadlineExceeded) {
    message =
        absl::StrFormat("%s did not answer within %.1f s", name_, static_cast<double>(timeout_us) / 1e6);
  } else {
    message = absl::StrFormat("a call to %s failed: %s", name_, TransportReason(status.error_message()));
  }
  absl::Status result(error.code(), message);
  error.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

}  // namespace nam::catalog
