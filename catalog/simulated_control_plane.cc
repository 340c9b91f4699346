#include "catalog/simulated_control_plane.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "catalog/address.h"

namespace nam::catalog {

using fabric::sim::ProcessId;

/// One call, owned jointly by its caller and the serving thread.
struct CallState {
  ProcessId from, to;
  std::string address, path, request;
  fabric::Event* done = nullptr;  // the caller's; null once it stopped waiting
  std::optional<ControlChannel::Outcome> outcome;

  bool over() const { return done == nullptr || outcome.has_value(); }
  void End(ControlChannel::Outcome with) {
    if (over()) return;
    outcome = std::move(with);
    done->Set();
  }
};

namespace {

/// Interval at which a message checks whether a partition has ended.
constexpr int64_t kRetransmitUs = 1'000;
constexpr int kServerCallsMax = 64;

ControlChannel::Outcome Failed(const absl::Status& status) {
  ControlChannel::Outcome outcome;
  outcome.status = status;
  return outcome;
}

/// Takes the one-way delay; false if the message does not arrive.
bool Travel(fabric::sim::World& world, const CallState& call, ProcessId from, ProcessId to) {
  Clock& clock = world.clock();
  clock.SleepUntil({clock.NowNs() + world.RpcDelayNs()});
  while (!call.over() && world.Alive(call.from) && world.Alive(call.to)) {
    if (world.Reachable(from, to)) return true;
    clock.SleepUntil(clock.After(kRetransmitUs));
  }
  return false;
}

}  // namespace

class SimulatedServer final : public ControlServer {
 public:
  SimulatedServer(SimulatedControlNetwork& network, fabric::Fabric& fabric, ProcessId process,
                  const Handlers& handlers, std::string address)
      : network_(network),
        fabric_(fabric),
        process_(process),
        handlers_(handlers),
        address_(std::move(address)) {
    network_.servers_[address_] = this;
  }
  ~SimulatedServer() override { Shutdown(Deadline{0}); }

  ProcessId process() const { return process_; }
  const std::string& address() const override { return address_; }
  bool Connected(const std::string& connection) const override {
    const auto caller = callers_.find(connection);
    return caller != callers_.end() && network_.world_.Alive(caller->second);
  }

  void Shutdown(Deadline deadline) override {
    if (closed_) return;
    closed_ = true;
    network_.servers_.erase(address_);
    if (running_ > 0) {
      idle_ = fabric_.CreateEvent();
      idle_->Wait(deadline);
    }
    cancelled_ = true;
    network_.world_.AwaitDetached(process_);  // including those in flight to a server that is gone
  }

  /// Runs on a thread of this server's process.
  ControlChannel::Outcome Run(const CallState& state) {
    callers_[NameOf(state.from)] = state.from;
    if (running_ >= kServerCallsMax) return Failed(absl::ResourceExhaustedError("too many calls at once"));
    const auto found = handlers_.by_path().find(state.path);
    if (found == handlers_.by_path().end()) return Failed(absl::UnimplementedError("no such method"));
    ++running_;
    const absl::StatusOr<std::string> reply = found->second(Call(*this, state), state.request);
    if (--running_ == 0 && idle_ != nullptr) idle_->Set();
    ControlChannel::Outcome outcome;
    outcome.status = reply.status();
    outcome.from_service = true;
    if (reply.ok()) outcome.reply = *reply;
    return outcome;
  }

 private:
  class Call final : public IncomingCall {
   public:
    Call(const SimulatedServer& server, const CallState& state) : server_(server), state_(state) {}
    bool Cancelled() const override {
      const fabric::sim::World& world = server_.network_.world_;
      return server_.cancelled_ || state_.over() || !world.Alive(state_.from) || !world.Alive(state_.to);
    }
    std::string Connection() const override { return NameOf(state_.from); }

   private:
    const SimulatedServer& server_;
    const CallState& state_;
  };

  static std::string NameOf(ProcessId caller) { return absl::StrCat("process ", caller.value()); }

  SimulatedControlNetwork& network_;
  fabric::Fabric& fabric_;
  const ProcessId process_;
  const Handlers& handlers_;
  const std::string address_;
  bool closed_ = false;
  bool cancelled_ = false;
  int running_ = 0;
  std::map<std::string, ProcessId> callers_;  // all so far; a process has one connection
  std::unique_ptr<fabric::Event> idle_;       // set when the last handler ends during Shutdown
};

class SimulatedChannel final : public ControlChannel {
 public:
  SimulatedChannel(SimulatedControlNetwork& network, fabric::Fabric& fabric, std::string address)
      : network_(network), fabric_(fabric), address_(std::move(address)) {}

  Outcome Call(const std::string& path, const std::string& request, int64_t timeout_us,
               CallCancellation* cancellation) override {
    fabric::sim::World& world = network_.world_;
    const Deadline deadline = world.clock().After(timeout_us);
    const std::unique_ptr<fabric::Event> done = fabric_.CreateEvent();
    auto call = std::make_shared<CallState>();
    call->from = world.ProcessOf(fabric_);
    call->address = address_;
    call->path = path;
    call->request = request;
    call->done = done.get();
    const CallCancellation::Scope scope(cancellation,
                                        [call] { call->End(Failed(absl::CancelledError("cancelled"))); });
    if (!call->over()) Send(call, deadline);
    call->done = nullptr;
    return *std::move(call->outcome);
  }

 private:
  void Send(const std::shared_ptr<CallState>& call, Deadline deadline) {
    fabric::sim::World& world = network_.world_;
    const auto server = network_.servers_.find(address_);
    if (server == network_.servers_.end()) {
      world.clock().SleepUntil({world.NowNs() + 2 * world.RpcDelayNs()});
      return call->End(Failed(absl::UnavailableError("connection refused")));
    }
    call->to = server->second->process();
    if (!world.Alive(call->from)) return call->End(Failed(absl::UnavailableError("this process was killed")));
    if (world.Alive(call->to)) {
      world.StartDetached(call->to, "nam-rpc", [&network = network_, call] { Serve(network, *call); });
    }
    const absl::Status waited = world.Await(*call->done, call->from, call->to, deadline);
    if (!waited.ok()) call->End(Failed(absl::Status(waited.code(), "connection lost")));
  }

  // Runs on a thread of the server's process. The server may have gone while the request was in flight.
  static void Serve(SimulatedControlNetwork& network, CallState& call) {
    if (!Travel(network.world_, call, call.from, call.to)) return;
    const auto server = network.servers_.find(call.address);
    Outcome outcome = Failed(absl::UnavailableError("connection refused"));
    if (server != network.servers_.end() && server->second->process() == call.to) {
      outcome = server->second->Run(call);
    }
    if (Travel(network.world_, call, call.to, call.from)) call.End(std::move(outcome));
  }

  SimulatedControlNetwork& network_;
  fabric::Fabric& fabric_;
  const std::string address_;
};

class SimulatedControlPlane final : public ControlPlane {
 public:
  SimulatedControlPlane(SimulatedControlNetwork& network, fabric::Fabric& fabric)
      : network_(network), fabric_(fabric) {}

  std::string host_name() const override {
    const fabric::sim::World& world = network_.world_;
    return world.HostOf(world.ProcessOf(fabric_));
  }

  absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const ControlServerOptions& options) override {
    NAM_ASSIGN_OR_RETURN(const auto host_port, SplitAddress(options.address));
    options.handlers->CheckComplete();
    const uint16_t port = host_port.second != 0 ? host_port.second : network_.next_port_++;
    // Every host has one address, its name; any other listen address means that.
    const std::string address = absl::StrCat(host_name(), ":", port);
    if (network_.servers_.contains(address)) {
      return absl::UnavailableError(absl::StrFormat("cannot listen on %s: the port is in use", address));
    }
    return std::make_unique<SimulatedServer>(network_, fabric_, network_.world_.ProcessOf(fabric_),
                                             *options.handlers, address);
  }

  std::unique_ptr<ControlChannel> Open(const std::string& address, const std::string&) override {
    return std::make_unique<SimulatedChannel>(network_, fabric_, address);
  }

  bool Running() const override { return network_.world_.Alive(network_.world_.ProcessOf(fabric_)); }

  // A dead process's server may not have been destroyed yet.
  bool Refused(const std::string& address, int64_t timeout_us) override {
    fabric::sim::World& world = network_.world_;
    const auto host_port = SplitAddress(address);
    if (!host_port.ok()) return false;
    const fabric::sim::ProcessId self = world.ProcessOf(fabric_);
    const Deadline deadline = world.clock().After(timeout_us);
    const int64_t answer_ns = world.NowNs() + 2 * world.RpcDelayNs();
    world.clock().SleepUntil({std::min(answer_ns, deadline.ns)});
    if (!Running() || answer_ns > deadline.ns || !world.HostAnswers(self, host_port->first)) return false;
    const auto server = network_.servers_.find(address);
    return server == network_.servers_.end() || !world.Alive(server->second->process());
  }

 private:
  SimulatedControlNetwork& network_;
  fabric::Fabric& fabric_;
};

std::unique_ptr<ControlPlane> SimulatedControlNetwork::PlaneOf(fabric::Fabric& fabric) {
  return std::make_unique<SimulatedControlPlane>(*this, fabric);
}

}  // namespace nam::catalog
