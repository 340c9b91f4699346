#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

/// What every gRPC server and client of the control plane shares: limits, the token, statuses.
///
///     caller ── Peer::Call ── token, deadline ──▶ RpcServer ──▶ ServeCall ── TokenCheck ──▶ handler
///        ◀── absl::Status with payloads ◀── grpc-status-details-bin (google.rpc.Status) ◀──┘
namespace nam::catalog {

inline constexpr int kRpcMessageBytesMax = 64 << 20;

/// Code and message as they are; payloads travel in the details. Statuses of our own services always
/// have details, which tells them from what gRPC itself reports.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

/// Refuses callers that do not know the cluster's secret. Thread-safe.
class TokenCheck {
 public:
  explicit TokenCheck(const std::string& secret);
  grpc::Status Check(const grpc::ServerContext& context) const;

 private:
  std::string token_;
};

/// The body of every method of a service: `handler` returns absl::StatusOr<Reply>.
template <typename Reply, typename Handler>
grpc::Status ServeCall(const TokenCheck& check, const grpc::ServerContext& context, Reply* reply,
                       Handler&& handler) {
  if (grpc::Status refused = check.Check(context); !refused.ok()) return refused;
  absl::StatusOr<Reply> result = handler();
  if (!result.ok()) return ToGrpcStatus(result.status());
  *reply = *std::move(result);
  return grpc::Status::OK;
}

struct RpcServerOptions {
  std::string address;                   // host:port; port 0 picks one
  std::vector<grpc::Service*> services;  // outlive the server
  int threads_max = 64;                  // calls beyond are answered RESOURCE_EXHAUSTED
  size_t memory_bytes_max = size_t{512} << 20;
  Clock* clock = &RealClock();
};

/// A gRPC server with the limits of the control plane. Stops when destroyed.
class RpcServer {
 public:
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const RpcServerOptions& options);
  ~RpcServer();

  /// host:port as listened on, with the port that was picked.
  const std::string& address() const { return address_; }
  /// No new calls; those under way are cancelled at the deadline. Once it returned no handler runs.
  void Shutdown(Deadline deadline);

 private:
  RpcServer(std::unique_ptr<grpc::Server> server, std::string address, Clock& clock);

  std::unique_ptr<grpc::Server> server_;
  const std::string address_;
  Clock& clock_;
};

/// `host:port` split at the last colon ([v6]:port keeps its brackets in the host).
absl::StatusOr<std::pair<std::string, uint16_t>> SplitAddress(const std::string& address);
/// The address to tell others: a wildcard host becomes `host`, or this host's name if that is empty.
std::string AdvertisedAddress(const std::string& address, const std::string& host);
std::string LocalHostName();

/// The client side of one server of the control plane. Thread-safe; its calls share one connection,
/// which is made at the first call and again after it was lost.
class Peer {
 public:
  /// `name` is for messages: `the catalog at 127.0.0.1:4700`, `memory server 2 (127.0.0.1:4711)`.
  Peer(std::string name, const std::string& address, const std::string& secret);

  const std::string& name() const { return name_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  /// One unary call. Errors name the peer; UNAVAILABLE when it cannot be reached,
  /// DEADLINE_EXCEEDED when it did not answer in time, else the service's own code and payloads.
  template <typename Stub, typename Request, typename Reply>
  absl::StatusOr<Reply> Call(Stub& stub,
                             grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                             const Request& request, int64_t timeout_us) const {
    grpc::ClientContext context;
    Prepare(context, timeout_us);
    Reply reply;
    const grpc::Status status = (stub.*method)(&context, request, &reply);
    if (!status.ok()) return Error(status, timeout_us);
    return reply;
  }

  /// For calls made without Call: puts token and deadline into the context / words its outcome.
  void Prepare(grpc::ClientContext& context, int64_t timeout_us) const;
  absl::Status Error(const grpc::Status& status, int64_t timeout_us) const;

 private:
  const std::string name_;
  const std::string token_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace nam::catalog
