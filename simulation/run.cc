#include "simulation/run.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "simulation/workload.h"

namespace nam::simulation {
namespace {

constexpr int64_t kVirtualNsMax = 3'000'000'000'000;

/// The parts of a scenario draw from streams of their own, so that a change of one leaves the others.
RandomStream StreamOf(uint64_t seed, uint64_t part) {
  RandomStream all(seed);
  return RandomStream(all.Next() ^ (part << 56));
}

void EndHanging(const std::string& report, const std::string& replay) {
  std::fprintf(stderr, "the cluster hangs:\n%s\nagain: %s\n", report.c_str(), replay.c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

/// While it lives, a broken invariant or a crash says which seed it was. One at a time.
class ReplayAtCrash {
 public:
  explicit ReplayAtCrash(const std::string& replay) {
    text = "the seed again: " + replay + "\n";
    for (const int signal : kSignals) std::signal(signal, &Handle);
  }
  ~ReplayAtCrash() {
    for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  }

 private:
  static constexpr int kSignals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
  static void Handle(int signal) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  static inline std::string text;  // the handler's
};

ClusterOptions DrawCluster(RandomStream random) {
  ClusterOptions options;
  options.memory_servers = static_cast<int>(random.Between(2, 3));
  options.compute_servers = static_cast<int>(random.Between(2, 3));
  options.threads = static_cast<int>(random.Between(1, 3));
  options.lease_ms = random.OneIn(3) ? 1'000 : 3'000;
  // Shorter and longer than most partitions.
  options.bury_after_ms = random.OneIn(2) ? 500 : 60'000;
  return options;
}

LoadShape DrawShape(RandomStream random) {
  LoadShape shape;
  shape.fan_out = static_cast<uint32_t>(random.Between(1, 3));
  shape.block_bytes = 4'096u << random.Below(5);
  shape.pointer_group = 2u << random.Below(5);
  return shape;
}

void RunScenario(fabric::sim::World& world, const RunOptions& options, const SsbAnswers& answers,
                 RunResult& result) {
  auto cluster = Cluster::Start(world, DrawCluster(StreamOf(options.seed, 2)));
  if (!cluster.ok()) {
    // The plan's faults alone, before there is an adversary: an error is as good as an answer.
    ++result.errors[absl::StatusCodeToString(cluster.status().code())];
    if (!absl::IsUnavailable(cluster.status())) result.failures.push_back(cluster.status().ToString());
    return;
  }
  RandomStream random = StreamOf(options.seed, 3);
  const int faults_max = static_cast<int>(random.Between(1, 10));
  auto adversary = Adversary::Start(**cluster, options.faults, RandomStream(random.Next()), faults_max);
  if (!adversary.ok()) return result.failures.push_back(adversary.status().ToString());
  Workload workload(**cluster, **adversary, answers, DrawShape(StreamOf(options.seed, 4)), result);
  workload.Load(RandomStream(random.Next()));
  const int clients = static_cast<int>(random.Between(1, 2));
  workload.RunClients(RandomStream(random.Next()), clients, static_cast<int>(random.Between(4, 14)));
  if (const absl::Status mended = (*adversary)->Stop(); !mended.ok()) {
    result.failures.push_back(mended.ToString());
  }
  workload.RunAllQueries();
  workload.DropAll();
  result.faults = (*adversary)->injected();
  if ((*cluster)->given_up() > 0) result.faults["servers given up"] = (*cluster)->given_up();
}

}  // namespace

std::string ReplayCommand(const RunOptions& options) {
  return absl::StrCat("nam sim --seed=", options.seed, " --generation=", options.nic.name,
                      " --faults=", options.faults.ToString());
}

RunResult Run(const RunOptions& options, const SsbAnswers& answers) {
  RunResult result;
  result.seed = options.seed;
  RandomStream random = StreamOf(options.seed, 1);
  fabric::sim::WorldOptions world_options;
  world_options.seed = options.seed;
  world_options.nic = options.nic;
  world_options.faults = DrawPlan(options.faults, random);
  world_options.duration_ns_max = kVirtualNsMax;
  world_options.trace_path = options.trace_path;
  world_options.replay = ReplayCommand(options);
  world_options.on_hang = [replay = world_options.replay](const std::string& report) {
    EndHanging(report, replay);
  };
  const ReplayAtCrash replay_at_crash(world_options.replay);
  fabric::sim::World world(world_options);
  RunScenario(world, options, answers, result);
  result.virtual_ms = static_cast<double>(world.NowNs() - fabric::sim::World::kStartNs) / 1e6;
  result.trace_hash = world.TraceHash();
  result.trace_events = world.TraceEvents();
  return result;
}

}  // namespace nam::simulation
