#include "fabric/sim/world.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/cache_costs.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/sim/network.h"
#include "fabric/sim/scheduler.h"
#include "fabric/sim/sim_fabric.h"
#include "fabric/sim/trace.h"

namespace nam::fabric::sim {
namespace {

constexpr ProcessId kDriver;
/// The timeout of the driver's calls; the driver has no options of its own.
constexpr int64_t kDriverTimeoutNs = 3'000'000'000;

class SimClock : public Clock {
 public:
  explicit SimClock(Scheduler& scheduler) : scheduler_(scheduler) {}
  int64_t NowNs() const override { return scheduler_.NowNs(); }
  void SleepUntil(Deadline deadline) override { scheduler_.SleepUntil(deadline); }
  void Charge(int64_t ns) override { scheduler_.Charge(ns); }

 private:
  Scheduler& scheduler_;
};

class SimClockWithCaches final : public SimClock, public CacheCosts {
 public:
  SimClockWithCaches(Scheduler& scheduler, const CacheModel& caches) : SimClock(scheduler), caches_(caches) {}
  int64_t AccessPs(uint64_t working_set_bytes) const override { return caches_.AccessPs(working_set_bytes); }

 private:
  const CacheModel caches_;
};

std::unique_ptr<Clock> MakeClock(Scheduler& scheduler, const std::optional<CacheModel>& caches) {
  if (caches.has_value()) return std::make_unique<SimClockWithCaches>(scheduler, *caches);
  return std::make_unique<SimClock>(scheduler);
}

}  // namespace

class World::Impl {
 public:
  explicit Impl(const WorldOptions& options)
      : seed(options.seed),
        in_place(options.in_place),
        trace(options.trace_path),
        scheduler(options, trace),
        network(options, scheduler, trace),
        clock(MakeClock(scheduler, options.caches)) {
    scheduler.set_host_of([this](ProcessId process) { return network.At(process).host.name; });
  }

  int64_t PeerTimeoutNs(ProcessId process) {
    return process == kDriver ? kDriverTimeoutNs : network.At(process).options.peer_timeout_us * 1000;
  }

  absl::Status Await(SimEvent& event, ProcessId from, ProcessId to, Deadline deadline);

  const uint64_t seed;
  const bool in_place;
  Trace trace;
  Scheduler scheduler;
  Network network;
  const std::unique_ptr<Clock> clock;
};

absl::Status World::Impl::Await(SimEvent& event, ProcessId from, ProcessId to, Deadline deadline) {
  int64_t lost_ns = Deadline::Never().ns;
  scheduler.Sync();
  while (!event.IsSet()) {
    if (from != kDriver && !network.At(from).alive) {
      return absl::UnavailableError("this process has ended: " + network.At(from).end);
    }
    if (to != kDriver && !network.At(to).alive && network.Tells(to, from)) {
      return absl::UnavailableError(
          absl::StrFormat("process %d has ended: %s", to.value(), network.At(to).end));
    }
    if (network.Reachable(from, to) && network.Reachable(to, from)) {
      lost_ns = Deadline::Never().ns;
    } else if (lost_ns == Deadline::Never().ns) {
      lost_ns = scheduler.NowNs() + PeerTimeoutNs(from);
    }
    if (scheduler.NowNs() >= deadline.ns) return absl::DeadlineExceededError("no answer in time");
    if (scheduler.NowNs() >= lost_ns) {
      return absl::UnavailableError(absl::StrFormat("process %d on %s does not answer", to.value(),
                                                    to == kDriver ? "" : network.At(to).host.name));
    }
    event.WaitOr(network.changes(), {"an answer of process", to.value()}, {std::min(deadline.ns, lost_ns)});
  }
  return absl::OkStatus();
}

World::World(WorldOptions options) {
  NAM_CHECK(options.nic.Validate().ok(), "the network card model is invalid: see NicModel::Validate");
  NAM_CHECK(options.duration_ns_max > 0 && options.stuck_real_ms > 0);
  impl_ = std::make_unique<Impl>(options);
}

World::~World() {
  impl_->network.CheckClosed();
}

absl::StatusOr<std::unique_ptr<Fabric>> World::OpenFabric(const std::string& host, FabricOptions options) {
  NAM_ASSIGN_OR_RETURN(Process * process, impl_->network.AddProcess(host, std::move(options)));
  const uint64_t seed = impl_->seed + (uint64_t{process->id.value()} << 32);
  return std::make_unique<SimFabric>(impl_->network, *process, *impl_->clock, seed, impl_->in_place);
}

ProcessId World::ProcessOf(const Fabric& fabric) const {
  const auto* simulated = dynamic_cast<const SimFabric*>(&fabric);
  NAM_CHECK(simulated != nullptr, "a fabric of no simulated world");
  return simulated->process().id;
}

std::vector<std::string> World::AddressesOf(ProcessId process) const {
  return impl_->network.AddressesOf(impl_->network.At(process));
}

const std::string& World::HostOf(ProcessId process) const {
  return impl_->network.At(process).host.name;
}

Clock& World::clock() {
  return *impl_->clock;
}

void World::KillProcess(ProcessId process) {
  impl_->network.End(impl_->network.At(process), "it was killed", false);
}

void World::KillHost(const std::string& host) {
  impl_->network.KillHost(impl_->network.HostNamed(host));
}

void World::RestartHost(const std::string& host) {
  impl_->network.RestartHost(impl_->network.HostNamed(host));
}

void World::Partition(const std::string& a, const std::string& b) {
  PartitionOneWay(a, b);
  PartitionOneWay(b, a);
}

void World::PartitionOneWay(const std::string& from, const std::string& to) {
  impl_->network.Partition(impl_->network.HostNamed(from), impl_->network.HostNamed(to));
}

void World::Heal(const std::string& a, const std::string& b) {
  Host &one = impl_->network.HostNamed(a), &other = impl_->network.HostNamed(b);
  impl_->network.Heal(one, other);
  impl_->network.Heal(other, one);
}

void World::Pause(ProcessId process, bool card_too) {
  impl_->network.Pause(impl_->network.At(process), card_too);
}

void World::Resume(ProcessId process) {
  impl_->network.Resume(impl_->network.At(process));
}

bool World::Paused(ProcessId process) const {
  return impl_->scheduler.IsPaused(process);
}

void World::SlowDown(const std::string& host, int64_t times) {
  NAM_CHECK(times >= 1, "a card is slower, or as its model says");
  impl_->network.SlowDown(impl_->network.HostNamed(host), times);
}

void World::BreakQueuePairs(const std::string& a, const std::string& b) {
  impl_->network.BreakQueuePairs(impl_->network.HostNamed(a), impl_->network.HostNamed(b));
}

bool World::Alive(ProcessId process) const {
  return impl_->network.At(process).alive;
}

bool World::Reachable(ProcessId from, ProcessId to) const {
  return impl_->network.Reachable(from, to);
}

bool World::HostAnswers(ProcessId from, const std::string& host) const {
  return impl_->network.HostAnswers(from, impl_->network.HostNamed(host));
}

int64_t World::RpcDelayNs() {
  return impl_->network.RpcDelayNs();
}

absl::Status World::Await(Event& event, ProcessId from, ProcessId to, Deadline deadline) {
  auto* simulated = dynamic_cast<SimEvent*>(&event);
  NAM_CHECK(simulated != nullptr, "an event of no simulated world");
  return impl_->Await(*simulated, from, to, deadline);
}

void World::StartDetached(ProcessId process, const std::string& name, std::function<void()> body) {
  Process& its = impl_->network.At(process);
  impl_->scheduler.Reap(its.detached);
  its.detached.push_back(impl_->scheduler.Start(process, name, std::move(body)));
}

void World::AwaitDetached(ProcessId process) {
  JoinDetached(impl_->scheduler, impl_->network.At(process));
}

NicTraffic World::TrafficOf(const std::string& host) const {
  const Host* const found = impl_->network.FindHost(host);
  NAM_CHECK(found != nullptr, "a host that is there");
  return found->nic.traffic();
}

void World::CountWords() {
  impl_->network.CountWords();
}

WordTraffic World::BusiestWordOf(const std::string& host) const {
  const Host* const found = impl_->network.FindHost(host);
  NAM_CHECK(found != nullptr, "a host that is there");
  return found->nic.BusiestWord();
}

uint64_t World::TraceHash() const {
  return impl_->trace.Hash();
}

uint64_t World::TraceEvents() const {
  return impl_->trace.events();
}

}  // namespace nam::fabric::sim
