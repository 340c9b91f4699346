#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

/// Calls between the processes of a cluster: one request, one reply, a deadline.
///
///     Peer::Call(method, request) ─▶ ControlChannel ══ path, bytes ══▶ ControlServer ─▶ Handlers[path]
///        ◀─ reply, or absl::Status with payloads ◀══════════════════════════════════════════┘
///
/// How they get there is the ControlPlane's: gRPC (catalog/grpc_control_plane.h), or a function call between
/// the processes of a simulated world (catalog/simulated_control_plane.h).
namespace nam::catalog {

/// Names a method of proto/: `/nam.proto.Catalog/Join`.
template <typename RequestType, typename ReplyType>
struct Method {
  const char* path;
};

/// What a handler may know of its call. Thread-safe.
class IncomingCall {
 public:
  virtual ~IncomingCall() = default;
  /// The caller gave up, is gone, or this server ends.
  virtual bool Cancelled() const = 0;
};

/// The methods of one service. Complete once given to a server: every method of the .proto has its handler.
class Handlers {
 public:
  using Handler = std::function<absl::StatusOr<std::string>(const IncomingCall&, const std::string& request)>;

  /// `service` as in proto/: nam.proto.Catalog.
  explicit Handlers(const std::string& service);

  /// handler(const Request&, const IncomingCall&) returns absl::StatusOr<Reply>; on any thread.
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

/// Ends one call from another thread than the one that waits for it.
class CallCancellation {
 public:
  /// Any thread; also before the call has begun, or after its end.
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
    CallCancellation* const cancellation_;  // nullptr: nobody cancels
  };

 private:
  std::mutex mutex_;
  bool cancelled_ = false;
  std::function<void()> end_;
};

/// The client's end of a connection, which is made at the first call and again after it was lost.
/// Thread-safe.
class ControlChannel {
 public:
  struct Outcome {
    absl::Status status;
    bool from_service = false;  // the status is a handler's word, not the transport's
    std::string reply;
  };
  virtual ~ControlChannel() = default;
  /// UNAVAILABLE when the server cannot be reached or is lost, DEADLINE_EXCEEDED, CANCELLED,
  /// UNAUTHENTICATED; else the handler's status.
  virtual Outcome Call(const std::string& path, const std::string& request, int64_t timeout_us,
                       CallCancellation* cancellation) = 0;
};

struct ControlServerOptions {
  std::string address;  // host:port; port 0 picks one
  std::string secret;   // callers with another are refused
  const Handlers* handlers = nullptr;
  int request_bytes_max = 64 << 20;  // of one call
};

/// Serves until it is shut down or destroyed.
class ControlServer {
 public:
  virtual ~ControlServer() = default;
  /// host:port as listened on, with the port that was picked.
  virtual const std::string& address() const = 0;
  /// No new calls; those under way are cancelled at the deadline. Once it returned no handler runs.
  virtual void Shutdown(Deadline deadline) = 0;
};

/// How the calls of one process travel. Thread-safe; outlives what it makes.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;
  /// This host's name, for others to show and, where a server listens on every address, to connect to.
  virtual std::string host_name() const = 0;
  virtual absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const ControlServerOptions& options) = 0;
  virtual std::unique_ptr<ControlChannel> Open(const std::string& address, const std::string& secret) = 0;
  /// Whether the address's host says that nobody listens there: who did has ended. False when somebody
  /// listens, and when nothing is heard in time.
  virtual bool Refused(const std::string& address, int64_t timeout_us) = 0;
  /// False once a simulated world has killed this process: its threads unwind, and must not do anything more.
  virtual bool Running() const { return true; }
};

/// Whether a failed call never got the service's own answer: its peer is dead, unreachable, or too slow.
bool Unanswered(const absl::Status& error);

/// One server of the control plane, as its clients call it. Thread-safe.
class Peer {
 public:
  /// `name` is for messages: `the catalog at 127.0.0.1:4700`, `memory server 2 (127.0.0.1:4711)`.
  Peer(std::string name, std::unique_ptr<ControlChannel> channel)
      : name_(std::move(name)), channel_(std::move(channel)) {}

  const std::string& name() const { return name_; }

  /// One call. Errors name the peer; UNAVAILABLE when it cannot be reached, DEADLINE_EXCEEDED when it did
  /// not answer in time, else the service's own code and payloads.
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
