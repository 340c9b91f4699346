#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"

/// Calls between the processes of a cluster: one request, one reply, a deadline.
///
///     Peer::Call(method, request) ─▶ ControlChannel ══ path, bytes ══▶ ControlServer ─▶ Handlers[path]
///        ◀─ reply, or absl::Status with payloads ◀══════════════════════════════════════════┘
///
/// A ControlPlane carries them: gRPC (catalog/grpc_control_plane.h), or function calls between the processes
/// of a simulated world (catalog/simulated_control_plane.h).
namespace nam::catalog {

/// Names a method of proto/: `/nam.proto.Catalog/Join`.
template <typename RequestType, typename ReplyType>
struct Method {
  const char* path;
};

/// A handler's view of its call. Thread-safe.
class IncomingCall {
 public:
  virtual ~IncomingCall() = default;
  /// True if the caller gave up, is gone, or this server is ending.
  virtual bool Cancelled() const = 0;
  /// Names the connection that the call has come over, for ControlServer::Connected. Never empty.
  virtual std::string Connection() const = 0;
};

/// The methods of one service. A server requires a handler for every method of the .proto.
class Handlers {
 public:
  using Handler = std::function<absl::StatusOr<std::string>(const IncomingCall&, const std::string& request)>;

  /// `service` as in proto/: nam.proto.Catalog.
  explicit Handlers(const std::string& service);

  /// handler(const Request&, const IncomingCall&) returns absl::StatusOr<Reply>. Runs on any thread.
  template <typename Request, typename Reply, typename F>
  void Add(const Method<Request, Reply>& method, F handler) {
    CheckTypes(method.path, Request::descriptor(), Reply::descriptor());
    by_path_[method.path] = [handler = std::move(handler)](
                                const IncomingCall& call,
                                const std::string& bytes) -> absl::StatusOr<std::string> {
      Request request;
      if (!request.ParseFromString(bytes)) return absl::InvalidArgumentError("the request is malformed");
      const absl::StatusOr<Reply> reply = handler(request, call);
      if (!reply.ok()) return reply.status();
      return reply->SerializeAsString();
    };
  }
  const std::map<std::string, Handler>& by_path() const { return by_path_; }
  void CheckComplete() const;

 private:
  void CheckTypes(const std::string& path, const google::protobuf::Descriptor* request,
                  const google::protobuf::Descriptor* reply) const;

  const google::protobuf::ServiceDescriptor* const service_;
  std::map<std::string, Handler> by_path_;
};

/// Cancels one call from a thread other than the waiting one.
class CallCancellation {
 public:
  /// Any thread; allowed before the call begins and after it ends.
  void Cancel();

  /// For transports: `end` runs once if Cancel comes while the scope lives, at once if it came before. It
  /// must not wait.
  class Scope {
   public:
    Scope(CallCancellation* cancellation, std::function<void()> end);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CallCancellation* const cancellation_;  // null: not cancellable
  };

 private:
  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> end_ ABSL_GUARDED_BY(mutex_);
};

/// The client's end of a connection. Connects at the first call, and again after a loss. Thread-safe.
class ControlChannel {
 public:
  struct Outcome {
    absl::Status status;
    bool from_service = false;  // the status comes from a handler, not from the transport
    std::string reply;
  };
  virtual ~ControlChannel() = default;
  /// UNAVAILABLE if the server is unreachable or lost; DEADLINE_EXCEEDED; CANCELLED; UNAUTHENTICATED;
  /// otherwise the handler's status.
  virtual Outcome Call(const std::string& path, const std::string& request, int64_t timeout_us,
                       CallCancellation* cancellation) = 0;
};

struct ControlServerOptions {
  std::string address;  // host:port; port 0 picks one
  std::string secret;   // callers with a different one are refused
  const Handlers* handlers = nullptr;
  int request_bytes_max = 64 << 20;  // per call
};

/// Serves until it is shut down or destroyed.
class ControlServer {
 public:
  virtual ~ControlServer() = default;
  /// The listen address as host:port, with the actual port.
  virtual const std::string& address() const = 0;
  /// True while the connection lasts that a call has come over. It ends with the caller's process, even if
  /// that is killed, but not with its host or with the network between them.
  virtual bool Connected(const std::string& connection) const = 0;
  /// Refuses new calls, and cancels calls in progress at the deadline. No handler runs once it returns.
  virtual void Shutdown(Deadline deadline) = 0;
};

/// The transport of one process's calls. Thread-safe; outlives the objects that it makes.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;
  /// This host's name, for display; and for connections, if a server listens on every address.
  virtual std::string host_name() const = 0;
  virtual absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const ControlServerOptions& options) = 0;
  virtual std::unique_ptr<ControlChannel> Open(const std::string& address, const std::string& secret) = 0;
  /// True if the address's host, or a firewall in its place, reports that no process listens there. False if
  /// a process listens, or the host does not answer in time.
  virtual bool Refused(const std::string& address, int64_t timeout_us) = 0;
  /// False once a simulated world has killed this process: its threads unwind and must do nothing else.
  virtual bool Running() const { return true; }
};

/// True if a failed call got no answer from the service itself: its peer is dead, unreachable, or too slow.
bool Unanswered(const absl::Status& error);

/// The service's own message, without the peer's name; the error's whole message if the service did not
/// answer.
std::string MessageOfService(const absl::Status& error);

/// A client's handle of one control-plane server. Thread-safe.
class Peer {
 public:
  /// `name` is for messages: `the catalog at 127.0.0.1:4700`, `memory server 2 (127.0.0.1:4711)`.
  Peer(std::string name, std::unique_ptr<ControlChannel> channel)
      : name_(std::move(name)), channel_(std::move(channel)) {}

  const std::string& name() const { return name_; }

  /// Makes one call. Errors name the peer: UNAVAILABLE if it is unreachable, DEADLINE_EXCEEDED if it does not
  /// answer in time, else the service's own code and payloads.
  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(const Method<Request, Reply>& method, const Request& request, int64_t timeout_us,
                             CallCancellation* cancellation = nullptr) const {
    const ControlChannel::Outcome outcome =
        channel_->Call(method.path, request.SerializeAsString(), timeout_us, cancellation);
    if (!outcome.status.ok()) return Error(outcome, timeout_us);
    Reply reply;
    if (reply.ParseFromString(outcome.reply)) return reply;
    return absl::InternalError(name_ + ": its reply is malformed");
  }

 private:
  absl::Status Error(const ControlChannel::Outcome& outcome, int64_t timeout_us) const;

  const std::string name_;
  const std::unique_ptr<ControlChannel> channel_;
};

}  // namespace nam::catalog
