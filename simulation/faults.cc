#include "simulation/faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace nam::simulation {
namespace {

using Role = Cluster::Role;

constexpr int64_t kMs = 1'000'000;
/// Work on a tiny benchmark takes milliseconds; waiting for lost servers takes seconds.
constexpr int64_t kPauseNsMin = 20'000, kPauseNsMax = 500 * kMs;
/// Interval at which the adversary checks for servers that have ended by themselves.
constexpr int64_t kLookNs = 500 * kMs;
constexpr int kStartTriesMax = 100;
constexpr int64_t kStartPauseUs = 200'000;

struct NamedFaultKind {
  const char* name;
  bool FaultKinds::*kind;
};
constexpr NamedFaultKind kKinds[] = {
    {"delays", &FaultKinds::delays},  {"errors", &FaultKinds::errors},
    {"torn", &FaultKinds::torn},      {"partitions", &FaultKinds::partitions},
    {"deaths", &FaultKinds::deaths},  {"clients", &FaultKinds::clients},
    {"pauses", &FaultKinds::pauses},  {"asymmetric", &FaultKinds::asymmetric},
    {"slow", &FaultKinds::slow},      {"overtaking", &FaultKinds::overtaking},
    {"catalog", &FaultKinds::catalog}};

}  // namespace

absl::StatusOr<FaultKinds> FaultKinds::Parse(const std::string& text) {
  FaultKinds kinds;
  if (text == "all") return kinds;
  for (const NamedFaultKind& named : kKinds) kinds.*named.kind = false;
  if (text == "none") return kinds;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                     [&](const NamedFaultKind& named) { return word == named.name; });
    if (found == std::end(kKinds)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", word, "` is no kind of fault; they are all, none, or some of ", FaultKinds().ToString()));
    }
    kinds.*found->kind = true;
  }
  return kinds;
}

std::string FaultKinds::ToString() const {
  std::string text;
  for (const NamedFaultKind& named : kKinds) {
    if (this->*named.kind) absl::StrAppend(&text, text.empty() ? "" : ",", named.name);
  }
  return text.empty() ? "none" : text;
}

fabric::sim::FaultPlan DrawPlan(const FaultKinds& kinds, RandomStream& random, double operations) {
  fabric::sim::FaultPlan plan;
  // Each kind is left out in some runs, because a fault that always happens hides others.
  const auto on = [&random](bool kind) { return random.Below(3) != 0 && kind; };
  const auto one_in = [&random](int64_t low, int64_t high) {
    return 1.0 / static_cast<double>(random.Magnitude(low, high));
  };
  const double delay = one_in(2, 200), error = one_in(300, 50'000), torn = one_in(2, 50);
  const int64_t delay_ns = random.Magnitude(1'000, 2 * kMs), wake_ns = random.Magnitude(100, 200'000);
  const int64_t call_ns = random.Magnitude(20'000, 20 * kMs), torn_ns = random.Magnitude(100, 50'000);
  if (on(kinds.delays)) plan.delay_probability = delay, plan.delay_ns_max = delay_ns;
  if (on(kinds.delays)) plan.wake_delay_ns_max = wake_ns;
  if (on(kinds.delays)) plan.rpc_delay_ns_max = plan.rpc_delay_ns_min + call_ns;
  if (on(kinds.errors)) plan.queue_pair_error = error / operations;
  if (on(kinds.torn)) plan.torn_operation = torn, plan.torn_ns_max = torn_ns;
  const double overtaking = one_in(1, 20);
  const int64_t overtaking_ns = random.Magnitude(100, 50'000);
  if (on(kinds.overtaking)) plan.overtaking_fetch = overtaking, plan.overtaking_ns_max = overtaking_ns;
  return plan;
}

absl::StatusOr<std::unique_ptr<Adversary>> Adversary::Start(Cluster& cluster, const FaultKinds& kinds,
                                                            RandomStream random, int faults_max) {
  std::unique_ptr<Adversary> adversary(new Adversary(cluster, kinds, random, faults_max));
  NAM_ASSIGN_OR_RETURN(adversary->fabric_, cluster.world().OpenFabric("adversary", {}));
  adversary->stop_ = adversary->fabric_->CreateEvent();
  adversary->thread_ = adversary->fabric_->StartThread("adversary", [raw = adversary.get()] { raw->Run(); });
  return adversary;
}

Adversary::Adversary(Cluster& cluster, const FaultKinds& kinds, RandomStream random, int faults_max)
    : cluster_(cluster), world_(cluster.world()), random_(random), faults_left_(faults_max) {
  if (kinds.errors) faults_.push_back(&Adversary::BreakQueuePairs);
  if (kinds.partitions) faults_.push_back(&Adversary::Partition);
  if (kinds.deaths) faults_.insert(faults_.end(), 2, &Adversary::KillServer);
  if (kinds.clients) faults_.push_back(&Adversary::KillClient);
  if (kinds.pauses) faults_.insert(faults_.end(), 2, &Adversary::PauseProcess);
  if (kinds.asymmetric) faults_.push_back(&Adversary::PartitionOneWay);
  if (kinds.slow) faults_.push_back(&Adversary::SlowCard);
  if (kinds.catalog) faults_.push_back(&Adversary::KillCatalog);
}

Adversary::~Adversary() {
  Stop().IgnoreError();
}

absl::Status Adversary::Stop() {
  if (thread_ != nullptr) {
    stop_->Set();
    thread_.reset();
    if (const absl::Status mended = MendAll(); !mended.ok()) return mended;
    // A process cut off for longer than its lease learns it now, and ends itself.
    world_.clock().SleepUntil(world_.clock().After(int64_t{2'000} * cluster_.options().lease_ms));
  }
  return MendAll();
}

absl::Status Adversary::MendAll() {
  NoticeDeaths();
  for (int i = 0; !repairs_.empty() && i < kStartTriesMax; ++i) {
    if (i > 0) world_.clock().SleepUntil(world_.clock().After(kStartPauseUs));
    Mend(/*all=*/true);
  }
  if (repairs_.empty()) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("a server does not start again: ", std::string(failure_.message())));
}

void Adversary::Run() {
  int64_t next_ns = world_.NowNs() + random_.Magnitude(kPauseNsMin, kPauseNsMax);
  while (true) {
    NoticeDeaths();
    int64_t wake_ns = faults_left_ > 0 && !faults_.empty() ? next_ns : Deadline::Never().ns;
    wake_ns = std::min(wake_ns, world_.NowNs() + kLookNs);
    for (const Repair& repair : repairs_) wake_ns = std::min(wake_ns, repair.at_ns);
    if (stop_->Wait({wake_ns})) return;
    Mend(/*all=*/false);
    if (faults_left_ > 0 && !faults_.empty() && world_.NowNs() >= next_ns) {
      --faults_left_;
      Inject();
      next_ns = world_.NowNs() + random_.Magnitude(kPauseNsMin, kPauseNsMax);
    }
  }
}

void Adversary::NoticeDeaths() {
  for (const Role role : {Role::kMemory, Role::kCompute}) {
    for (int number = 0; number < cluster_.count(role); ++number) {
      const auto is_this = [&](const Repair& repair) {
        return repair.kind == Repair::Kind::kStart && repair.role == role && repair.number == number;
      };
      if (cluster_.Alive(role, number) || std::any_of(repairs_.begin(), repairs_.end(), is_this)) continue;
      repairs_.push_back(
          {.at_ns = world_.NowNs(), .kind = Repair::Kind::kStart, .role = role, .number = number});
    }
  }
}

void Adversary::Inject() {
  (this->*faults_[random_.Below(faults_.size())])();
}

std::string Adversary::AnyHost() {
  const uint64_t memory = static_cast<uint64_t>(cluster_.count(Role::kMemory));
  const uint64_t compute = static_cast<uint64_t>(cluster_.count(Role::kCompute));
  const uint64_t n = random_.Below(memory + compute + 1 + kClientHosts);
  if (n < memory) return cluster_.HostOf(Role::kMemory, static_cast<int>(n));
  if (n < memory + compute) return cluster_.HostOf(Role::kCompute, static_cast<int>(n - memory));
  return n == memory + compute ? "catalog" : absl::StrCat("client-", n - memory - compute - 1);
}

void Adversary::BreakQueuePairs() {
  const std::string a = AnyHost(), b = AnyHost();
  if (a == b) return;
  world_.BreakQueuePairs(a, b);
  ++injected_["broken connections"];
}

void Adversary::Partition() {
  const std::string a = AnyHost(), b = AnyHost();
  const int64_t until_ns = Until();
  if (a == b) return;
  world_.Partition(a, b);
  repairs_.push_back({.at_ns = until_ns, .a = a, .b = b});
  ++injected_["partitions"];
}

void Adversary::PartitionOneWay() {
  const std::string from = AnyHost(), to = AnyHost();
  const int64_t until_ns = Until();
  if (from == to) return;
  world_.PartitionOneWay(from, to);
  repairs_.push_back({.at_ns = until_ns, .a = from, .b = to});
  ++injected_["partitions of one way"];
}

void Adversary::SlowCard() {
  const std::string host = AnyHost();
  const int64_t until_ns = Until();
  world_.SlowDown(host, random_.Magnitude(2, 500));
  repairs_.push_back({.at_ns = until_ns, .kind = Repair::Kind::kSpeedUp, .a = host});
  ++injected_["slow cards"];
}

void Adversary::PauseProcess() {
  std::vector<fabric::sim::ProcessId> processes = clients_;
  for (const Role role : {Role::kMemory, Role::kCompute}) {
    for (int number = 0; number < cluster_.count(role); ++number) {
      if (cluster_.Alive(role, number)) processes.push_back(cluster_.ProcessOf(role, number));
    }
  }
  processes.push_back(cluster_.catalog_process());
  const fabric::sim::ProcessId victim = processes[random_.Below(processes.size())];
  const bool card_too = random_.OneIn(2);
  const int64_t until_ns = Until();
  if (!world_.Alive(victim) || world_.Paused(victim)) return;
  world_.Pause(victim, card_too);
  repairs_.push_back({.at_ns = until_ns, .kind = Repair::Kind::kResume, .process = victim});
  ++injected_["pauses"];
}

void Adversary::KillServer() {
  Role role = random_.OneIn(2) ? Role::kMemory : Role::kCompute;
  if (cluster_.count(role) == 0) role = Role::kMemory;
  const int number = static_cast<int>(random_.Below(static_cast<uint64_t>(cluster_.count(role))));
  const bool whole_host = random_.OneIn(2);
  const int64_t until_ns = Until();
  if (!cluster_.Alive(role, number)) return;
  cluster_.Kill(role, number, whole_host);
  repairs_.push_back({.at_ns = until_ns, .kind = Repair::Kind::kStart, .role = role, .number = number});
  ++injected_[absl::StrCat(role == Role::kMemory ? "memory" : "compute", " server deaths")];
}

void Adversary::KillClient() {
  if (clients_.empty()) return;
  const fabric::sim::ProcessId victim = clients_[random_.Below(clients_.size())];
  std::erase(clients_, victim);
  world_.KillProcess(victim);
  ++injected_["client deaths"];
}

void Adversary::KillCatalog() {
  const bool whole_host = random_.OneIn(2);
  const int64_t until_ns = Until();
  if (!world_.Alive(cluster_.catalog_process())) return;
  cluster_.KillCatalog(whole_host);
  repairs_.push_back({.at_ns = until_ns, .kind = Repair::Kind::kStartCatalog});
  ++injected_["catalog deaths"];
}

absl::Status Adversary::Mend(const Repair& repair) {
  switch (repair.kind) {
    case Repair::Kind::kHeal:
      world_.Heal(repair.a, repair.b);
      break;
    case Repair::Kind::kSpeedUp:
      world_.SlowDown(repair.a, 1);
      break;
    case Repair::Kind::kResume:
      world_.Resume(repair.process);
      break;
    case Repair::Kind::kStart:
      return cluster_.Restart(repair.role, repair.number);
    case Repair::Kind::kStartCatalog:
      return cluster_.RestartCatalog();
  }
  return absl::OkStatus();
}

// The catalog first: nothing joins the cluster while it is away.
void Adversary::Mend(bool all) {
  std::vector<Repair> repairs = std::exchange(repairs_, {});
  std::stable_sort(repairs.begin(), repairs.end(), [](const Repair& a, const Repair& b) {
    return (a.kind != Repair::Kind::kStart) > (b.kind != Repair::Kind::kStart);
  });
  for (Repair& repair : repairs) {
    if (!all && repair.at_ns > world_.NowNs()) {
      repairs_.push_back(repair);
    } else if (const absl::Status mended = Mend(repair); !mended.ok()) {
      failure_ = mended;
      repair.at_ns = world_.NowNs() + kStartPauseUs * 1'000;
      repairs_.push_back(repair);
    }
  }
}

}  // namespace nam::simulation
