#include "catalog/grpc_control_plane.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/method_handler.h>
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
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "catalog/address.h"
#include "catalog/connection_refused.h"
#include "catalog/token.h"

namespace nam::catalog {
namespace {

constexpr int kMessageBytesMax = 64 << 20;
constexpr int kServerThreadsMax = 64;
constexpr size_t kServerMemoryBytesMax = size_t{512} << 20;

// Statuses travel as HTTP/2 trailers, whose size both ends bound.
constexpr int kTrailerBytesMax = 64 << 10;
constexpr size_t kStatusTextBytesMax = 8 << 10;
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

grpc::ByteBuffer ToByteBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
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
  std::string message(status.message().substr(0, kStatusTextBytesMax));
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

namespace {

// What the protobuf plugin would generate for each service, once for all: bytes in, bytes out.
class GrpcService final : public grpc::Service {
 public:
  GrpcService(const Handlers& handlers, const std::string& secret) : token_(ControlToken(secret)) {
    using MethodHandler = grpc::internal::RpcMethodHandler<GrpcService, grpc::ByteBuffer, grpc::ByteBuffer>;
    for (const auto& [path, handler] : handlers.by_path()) {
      AddMethod(new grpc::internal::RpcServiceMethod(  // the base owns it
          path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC,
          new MethodHandler(
              [&handler = handler](GrpcService* service, grpc::ServerContext* context,
                                   const grpc::ByteBuffer* request, grpc::ByteBuffer* reply) {
                return service->Serve(handler, *context, *request, *reply);
              },
              this)));
    }
  }

 private:
  class Call final : public IncomingCall {
   public:
    explicit Call(const grpc::ServerContext& context) : context_(context) {}
    bool Cancelled() const override { return context_.IsCancelled(); }

   private:
    const grpc::ServerContext& context_;
  };

  absl::Status CheckToken(const grpc::ServerContext& context) const {
    const auto& metadata = context.client_metadata();
    const auto found = metadata.find(kTokenKey);
    if (found == metadata.end()) return absl::UnauthenticatedError("the call carries no token");
    if (SameToken({found->second.data(), found->second.size()}, token_)) return absl::OkStatus();
    return absl::UnauthenticatedError("the token is not that of this cluster");
  }

  grpc::Status Serve(const Handlers::Handler& handler, const grpc::ServerContext& context,
                     const grpc::ByteBuffer& request, grpc::ByteBuffer& reply) const {
    if (const absl::Status refused = CheckToken(context); !refused.ok()) return ToGrpcStatus(refused);
    const absl::StatusOr<std::string> result = handler(Call(context), ToString(request));
    if (!result.ok()) return ToGrpcStatus(result.status());
    reply = ToByteBuffer(*result);
    return grpc::Status::OK;
  }

  const std::string token_;
};

class GrpcServer final : public ControlServer {
 public:
  explicit GrpcServer(const ControlServerOptions& options) : service_(*options.handlers, options.secret) {}
  ~GrpcServer() override { Shutdown(Deadline{0}); }

  absl::Status Listen(const std::string& address);
  const std::string& address() const override { return address_; }
  void Shutdown(Deadline deadline) override;

 private:
  GrpcService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

absl::Status GrpcServer::Listen(const std::string& address) {
  NAM_ASSIGN_OR_RETURN(const auto host_port, SplitAddress(address));
  QuietGrpc();
  grpc::ResourceQuota quota("nam");
  quota.Resize(kServerMemoryBytesMax).SetMaxThreads(kServerThreadsMax);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service_);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
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
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    Shutdown(Deadline{0});
    return absl::UnavailableError(absl::StrFormat("cannot listen on %s: %s", address,
                                                  WhyNotListening(host_port.first, host_port.second)));
  }
  address_ = absl::StrCat(host_port.first, ":", port);
  return absl::OkStatus();
}

void GrpcServer::Shutdown(Deadline deadline) {
  if (server_ == nullptr) return;
  if (deadline.ns == Deadline::Never().ns) {
    server_->Shutdown();
  } else {
    const int64_t left_ns = deadline.ns - RealClock().NowNs();
    server_->Shutdown(gpr_time_from_nanos(std::max<int64_t>(left_ns, 0), GPR_TIMESPAN));
  }
  server_->Wait();
  server_.reset();
}

class GrpcChannel final : public ControlChannel {
 public:
  GrpcChannel(const std::string& address, const std::string& secret)
      : token_(ControlToken(secret)), stub_(Connect(address)) {}

  Outcome Call(const std::string& path, const std::string& request, int64_t timeout_us,
               CallCancellation* cancellation) override {
    grpc::ClientContext context;
    context.AddMetadata(kTokenKey, token_);
    context.set_deadline(gpr_time_from_micros(timeout_us, GPR_TIMESPAN));
    grpc::CompletionQueue queue;
    grpc::ByteBuffer reply;
    grpc::Status status;
    const auto call = stub_.PrepareUnaryCall(&context, path, ToByteBuffer(request), &queue);
    {
      const CallCancellation::Scope scope(cancellation, [&context] { context.TryCancel(); });
      call->StartCall();
      call->Finish(&reply, &status, /*tag=*/nullptr);
      void* tag = nullptr;
      bool ok = false;
      queue.Next(&tag, &ok);  // the deadline bounds it
    }
    Outcome outcome;
    outcome.status = FromGrpcStatus(status);
    outcome.from_service = !status.error_details().empty();
    if (status.ok()) {
      outcome.reply = ToString(reply);
    } else if (!outcome.from_service) {
      outcome.status = absl::Status(outcome.status.code(), TransportReason(status.error_message()));
    }
    return outcome;
  }

 private:
  static std::shared_ptr<grpc::Channel> Connect(const std::string& address);

  const std::string token_;
  grpc::GenericStub stub_;
};

std::shared_ptr<grpc::Channel> GrpcChannel::Connect(const std::string& address) {
  QuietGrpc();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
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
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

class GrpcControlPlaneImpl final : public ControlPlane {
 public:
  std::string host_name() const override {
    char name[256] = {};
    if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
    return name;
  }
  absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const ControlServerOptions& options) override {
    options.handlers->CheckComplete();
    auto server = std::make_unique<GrpcServer>(options);
    NAM_RETURN_IF_ERROR(server->Listen(options.address));
    return server;
  }
  std::unique_ptr<ControlChannel> Open(const std::string& address, const std::string& secret) override {
    return std::make_unique<GrpcChannel>(address, secret);
  }
  bool Refused(const std::string& address, int64_t timeout_us) override {
    return ConnectionRefused(address, timeout_us);
  }
};

}  // namespace

ControlPlane& GrpcControlPlane() {
  static GrpcControlPlaneImpl control_plane;
  return control_plane;
}

}  // namespace nam::catalog
