#include "catalog/grpc_control_plane.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/method_handler.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/interruption.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/process_limits.h"
#include "base/status_macros.h"
#include "catalog/address.h"
#include "catalog/control_acceptor.h"
#include "fabric/threads.h"

namespace nam::catalog {
namespace {

namespace tls = grpc::experimental;

constexpr int kMessageBytesMax = 64 << 20;
constexpr int kServerThreadsMax = 192;  // more than the calls that wait at a compute server
constexpr size_t kServerMemoryBytesMax = size_t{512} << 20;
constexpr int kStreamsOfConnectionMax = 256;
constexpr int kRequestMetadataBytesMax = 8 << 10;
constexpr int kHandshakeTimeoutMs = 5'000;

// A server under a flood closes connections that have not made a call yet: the client retries this long.
constexpr int64_t kConnectAgainUs = 4'000'000;
constexpr int64_t kConnectPauseUs = 50'000;
constexpr int64_t kPollConnectionUs = 100'000;
constexpr int64_t kInterruptionCheckUs = 20'000;

// Statuses travel as HTTP/2 trailers, whose size both ends limit.
constexpr int kTrailerBytesMax = 64 << 10;
constexpr size_t kStatusTextBytesMax = 8 << 10;
constexpr size_t kPayloadBytesMax = 16 << 10;

// A server that stalls inside a long call (an attempt of a query) counts as lost after the sum of both.
constexpr int kKeepaliveMs = 1'500;
constexpr int kKeepaliveTimeoutMs = 3'000;

// Fields of google.rpc.Status.
constexpr int kCodeField = 1;
constexpr int kDetailsField = 3;

/// Translates gRPC's description of a failed connection for users.
struct TransportError {
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  std::string reason;
  bool cut_off = false;  // by a live server before the call was sent
};

TransportError ReadTransportError(const std::string& message) {
  constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
  constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;
  static constexpr char kNotTrusted[] =
      "is not trusted: its TLS certificate is not from the authority of our cluster, or has expired";
  static constexpr struct {
    const char* found;
    const char* said;
    absl::StatusCode code;
  } kKnown[] = {
      {"unrecognized name",
       "refuses us: the secret is not that of this cluster; use the secret of its cluster", kUnauthenticated},
      {"certificate verify failed", kNotTrusted, kUnauthenticated},
      {"asn1 encoding routines", kNotTrusted, kUnauthenticated},  // OpenSSL's name for a wrong signature
      {"wrong version number", "it does not speak TLS", kUnavailable},
      {"Connection refused", "connection refused", kUnavailable},
      {"DNS resolution failed", "unknown host name", kUnavailable},
      {"No route to host", "no route to host", kUnavailable},
      {"Network is unreachable", "network is unreachable", kUnavailable},
      {"http1.x server", "it does not speak gRPC", kUnavailable},
      {"Failed parsing HTTP/2", "it does not speak gRPC", kUnavailable},
      {"Connection reset", "connection reset", kUnavailable},
      {"Broken pipe", "connection closed", kUnavailable},
      {"Socket closed", "connection closed", kUnavailable},
      {"GOAWAY", "connection closed", kUnavailable},
      {"Handshake read failed", "no answer", kUnavailable},
      {"imeout occurred", "no answer", kUnavailable},
      {"watchdog timeout", "no answer", kUnavailable},
      {"imed out", "no answer", kUnavailable},
  };
  TransportError error;
  const size_t last = message.rfind("last error: ");
  error.reason = last == std::string::npos ? message : message.substr(last + std::strlen("last error: "));
  for (const auto& known : kKnown) {
    if (message.find(known.found) == std::string::npos) continue;
    error.reason = known.said;
    error.code = known.code;
    break;
  }
  const bool never_sent = message.find("failed to connect to all addresses") != std::string::npos;
  error.cut_off = never_sent && (error.reason == "connection closed" || error.reason == "connection reset");
  return error;
}

// Errors are returned as statuses; gRPC's own lines on stderr would only repeat them. GRPC_VERBOSITY restores
// them.
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

// Replaces the protobuf plugin's code for each service by one class: bytes in, bytes out.
class GrpcService final : public grpc::Service {
 public:
  GrpcService(const Handlers& handlers, ControlAcceptor& acceptor) : acceptor_(acceptor) {
    using MethodHandler = grpc::internal::RpcMethodHandler<GrpcService, grpc::ByteBuffer, grpc::ByteBuffer>;
    for (const auto& [path, handler] : handlers.by_path()) {
      AddMethod(new grpc::internal::RpcServiceMethod(  // owned by the base
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
    std::string Connection() const override { return context_.peer(); }

   private:
    const grpc::ServerContext& context_;
  };

  grpc::Status Serve(const Handlers::Handler& handler, const grpc::ServerContext& context,
                     const grpc::ByteBuffer& request, grpc::ByteBuffer& reply) const {
    acceptor_.Called(context.peer());
    const absl::StatusOr<std::string> result = handler(Call(context), ToString(request));
    if (!result.ok()) return ToGrpcStatus(result.status());
    reply = ToByteBuffer(*result);
    return grpc::Status::OK;
  }

  ControlAcceptor& acceptor_;
};

class GrpcServer final : public ControlServer {
 public:
  GrpcServer(const ControlServerOptions& options, std::unique_ptr<ControlAcceptor> acceptor)
      : acceptor_(std::move(acceptor)), service_(*options.handlers, *acceptor_) {}
  ~GrpcServer() override { Shutdown(Deadline{0}); }

  absl::Status Start(const std::shared_ptr<grpc::ServerCredentials>& credentials, int request_bytes_max);
  const std::string& address() const override { return acceptor_->address(); }
  bool Connected(const std::string& connection) const override { return acceptor_->Connected(connection); }
  void Shutdown(Deadline deadline) override;

 private:
  const std::unique_ptr<ControlAcceptor> acceptor_;
  GrpcService service_;
  std::unique_ptr<tls::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<grpc::Server> server_;
};

absl::Status GrpcServer::Start(const std::shared_ptr<grpc::ServerCredentials>& credentials,
                               int request_bytes_max) {
  grpc::ResourceQuota quota("nam");
  quota.Resize(kServerMemoryBytesMax).SetMaxThreads(kServerThreadsMax);
  grpc::ServerBuilder builder;
  connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  builder.RegisterService(&service_);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(request_bytes_max);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 4);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsOfConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kRequestMetadataBytesMax);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMs / 2);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC could not start");
  acceptor_->Start([this](int fd) {
    tls::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    connections_->HandleNewConnection(&connection);
  });
  return absl::OkStatus();
}

void GrpcServer::Shutdown(Deadline deadline) {
  acceptor_->Stop();
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

gpr_timespec In(int64_t us) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(us, GPR_TIMESPAN));
}

class GrpcChannel final : public ControlChannel {
 public:
  GrpcChannel(const std::string& address, const std::string& secret,
              const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : channel_(Connect(address, secret, credentials)), stub_(channel_) {}

  Outcome Call(const std::string& path, const std::string& request, int64_t timeout_us,
               CallCancellation* cancellation) override {
    const Deadline deadline = RealClock().After(timeout_us);
    const Deadline connect_by = RealClock().After(std::min(timeout_us, kConnectAgainUs));
    while (true) {
      bool cut_off = false;
      if (unreached_.load(std::memory_order_relaxed)) PollConnection(std::min(timeout_us, kPollConnectionUs));
      Outcome outcome = Try(path, request, deadline, cancellation, &cut_off);
      const Deadline again = RealClock().After(kConnectPauseUs);
      if (!cut_off || again.ns >= connect_by.ns || Interruption::requested()) return outcome;
      RealClock().SleepUntil(again);
    }
  }

 private:
  static std::shared_ptr<grpc::Channel> Connect(const std::string& address, const std::string& secret,
                                                const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  /// A lost connection reconnects only while it is polled. In a process without servers only calls poll, and
  /// calls that fail at once do not.
  void PollConnection(int64_t timeout_us) { channel_->WaitForConnected(In(timeout_us)); }

  Outcome Try(const std::string& path, const std::string& request, Deadline deadline,
              CallCancellation* cancellation, bool* cut_off) {
    grpc::ClientContext context;
    const int64_t left_ns = std::max<int64_t>(deadline.ns - RealClock().NowNs(), 0);
    context.set_deadline(gpr_time_from_nanos(left_ns, GPR_TIMESPAN));
    grpc::CompletionQueue queue;
    grpc::ByteBuffer reply;
    grpc::Status status;
    std::atomic<bool> cancelled = false;  // by this side
    const auto cancel = [&context, &cancelled] {
      cancelled.store(true, std::memory_order_relaxed);
      context.TryCancel();
    };
    const auto call = stub_.PrepareUnaryCall(&context, path, ToByteBuffer(request), &queue);
    {
      const CallCancellation::Scope scope(cancellation, cancel);
      call->StartCall();
      call->Finish(&reply, &status, /*tag=*/nullptr);
      void* tag = nullptr;
      bool ok = false;
      bool ended = false;
      while (!ended && Interruption::flag() != nullptr && !Interruption::requested())
        ended = queue.AsyncNext(&tag, &ok, In(kInterruptionCheckUs)) != grpc::CompletionQueue::TIMEOUT;
      if (!ended && Interruption::requested()) cancel();
      if (!ended) queue.Next(&tag, &ok);  // bounded by the deadline
    }
    Outcome outcome;
    outcome.status = FromGrpcStatus(status);
    outcome.from_service = !status.error_details().empty();
    // A server that ends cancels the calls that it has.
    if (absl::IsCancelled(outcome.status) && !outcome.from_service &&
        !cancelled.load(std::memory_order_relaxed))
      outcome.status = absl::UnavailableError("GOAWAY");
    if (status.ok()) {
      outcome.reply = ToString(reply);
      unreached_.store(false, std::memory_order_relaxed);
    } else if (!outcome.from_service) {
      const TransportError error = ReadTransportError(std::string(outcome.status.message()));
      const bool unavailable = absl::IsUnavailable(outcome.status);
      *cut_off = unavailable && error.cut_off;
      unreached_.store(unavailable, std::memory_order_relaxed);
      outcome.status = absl::StrContains(error.reason, std::strerror(ENOMEM))
                           ? NoAddressesLeft("a connection")
                           : absl::Status(unavailable ? error.code : outcome.status.code(), error.reason);
    }
    return outcome;
  }

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  std::atomic<bool> unreached_ = false;  // the last call did not reach the server
};

std::shared_ptr<grpc::Channel> GrpcChannel::Connect(
    const std::string& address, const std::string& secret,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kTrailerBytesMax);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // By default a call without other traffic sends only two pings.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Lets clients find a restarted server well within a lease.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // The cluster's traffic never uses a proxy of the environment.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // The name that the handshake requests first (catalog/control_acceptor.h).
  arguments.SetString(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, KnockName(secret));
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

/// TLS in both directions. Certificates belong to the cluster, not to a host: only the authority counts, and
/// names are not compared.
struct Credentials {
  std::shared_ptr<grpc::ChannelCredentials> channel;
  std::shared_ptr<grpc::ServerCredentials> server;
};

Credentials MakeCredentials(const std::shared_ptr<tls::CertificateProviderInterface>& certificates) {
  const auto by_authority = [](tls::TlsCredentialsOptions& options) {
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
    options.set_certificate_verifier(std::make_shared<tls::NoOpCertificateVerifier>());
    options.set_check_call_host(false);
  };
  tls::TlsServerCredentialsOptions server(certificates);
  by_authority(server);
  server.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls::TlsChannelCredentialsOptions channel;
  channel.set_certificate_provider(certificates);
  by_authority(channel);
  channel.set_verify_server_certs(true);
  return {tls::TlsCredentials(channel), tls::TlsServerCredentials(server)};
}

/// Logs when the operator's certificate files become invalid, or valid again. gRPC reads them equally often,
/// but silently keeps the previous ones.
class CertificateWatch {
 public:
  CertificateWatch(const TlsFiles& files, int64_t pause_us)
      : files_(files),
        pause_us_(pause_us),
        thread_(fabric::StartRealThread("nam-certs", [this] { Run(); })) {}
  ~CertificateWatch() { stop_->Set(); }

 private:
  void Run() {
    absl::Status before;
    while (!stop_->Wait(RealClock().After(pause_us_))) {
      const absl::Status now = ReadIdentity(files_).status();
      if (now == before) continue;
      if (now.ok()) LogInfo("the files of the TLS certificates are valid again");
      if (!now.ok()) LogWarning(absl::StrCat(std::string(now.message()), "; the former ones stay in use"));
      before = now;
    }
  }

  const TlsFiles files_;
  const int64_t pause_us_;
  const std::unique_ptr<fabric::Event> stop_ = fabric::MakeRealEvent();
  const std::unique_ptr<fabric::Thread> thread_;  // last: joined first
};

class GrpcControlPlaneImpl final : public ControlPlane {
 public:
  /// With certificates made from each secret.
  GrpcControlPlaneImpl() { QuietGrpc(); }
  /// With an operator's certificates.
  GrpcControlPlaneImpl(const TlsFiles& files, unsigned refresh_s) : GrpcControlPlaneImpl() {
    given_ = MakeCredentials(std::make_shared<tls::FileWatcherCertificateProvider>(
        files.key, files.certificate, files.authority, refresh_s));
    watch_ = std::make_unique<CertificateWatch>(files, int64_t{refresh_s} * 1'000'000);
  }

  std::string host_name() const override {
    char name[256] = {};
    if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
    return name;
  }
  absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const ControlServerOptions& options) override {
    options.handlers->CheckComplete();
    NAM_ASSIGN_OR_RETURN(auto acceptor,
                         ControlAcceptor::Listen(options.address, KnockName(options.secret), AcceptBounds()));
    auto server = std::make_unique<GrpcServer>(options, std::move(acceptor));
    NAM_RETURN_IF_ERROR(server->Start(CredentialsOf(options.secret).server, options.request_bytes_max));
    return server;
  }
  std::unique_ptr<ControlChannel> Open(const std::string& address, const std::string& secret) override {
    return std::make_unique<GrpcChannel>(address, secret, CredentialsOf(secret).channel);
  }
  bool Refused(const std::string& address, int64_t timeout_us) override {
    return ConnectionRefused(address, timeout_us);
  }

 private:
  Credentials CredentialsOf(const std::string& secret) {
    if (given_.server != nullptr) return given_;
    const MutexLock lock(mutex_);
    Credentials& made = made_[secret];
    if (made.server == nullptr) {
      const Identity identity = MakeIdentity(secret);
      made = MakeCredentials(std::make_shared<tls::StaticDataCertificateProvider>(
          identity.authority, std::vector<tls::IdentityKeyCertPair>{{identity.key, identity.certificate}}));
    }
    return made;
  }

  Credentials given_;
  Mutex mutex_;
  // By secret: a process has one, tests have several.
  std::map<std::string, Credentials> made_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<CertificateWatch> watch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

ControlPlane& GrpcControlPlane() {
  // Never destroyed, because gRPC's static destructors run in an unknown order.
  static GrpcControlPlaneImpl& control_plane = *new GrpcControlPlaneImpl();
  return control_plane;
}

absl::StatusOr<std::unique_ptr<ControlPlane>> MakeGrpcControlPlane(const TlsFiles& files,
                                                                   unsigned refresh_s) {
  NAM_RETURN_IF_ERROR(ReadIdentity(files).status());
  return std::make_unique<GrpcControlPlaneImpl>(files, refresh_s);
}

}  // namespace nam::catalog
