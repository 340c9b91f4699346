#include "simulation/run.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "simulation/transactions.h"
#include "simulation/workload.h"

namespace nam::simulation {
namespace {

/// Operations of a statement relative to an SSB query's at scale factor 0.002: of a TPC-H query at 0.01, and
/// of a recovery of a shop's transaction of some thousand rows, which begins again when a connection breaks.
constexpr double kTpchOperations = 20, kShopOperations = 60;
constexpr int64_t kVirtualNsMax = 3'000'000'000'000;

/// The parts of a scenario draw from separate streams, so that changing one leaves the others unchanged.
RandomStream StreamOf(uint64_t seed, uint64_t part) {
  RandomStream all(seed);
  return RandomStream(all.Next() ^ (part << 56));
}

void EndHanging(const std::string& report, const std::string& replay) {
  std::fprintf(stderr, "the cluster hangs:\n%s\nagain: %s\n", report.c_str(), replay.c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

/// While it lives, a broken invariant or a crash reports the seed. One at a time.
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

struct NamedWorkloads {
  const char* name;
  Workloads workload;
};
constexpr NamedWorkloads kWorkloads[] = {{"all", Workloads::kAll},   {"ssb", Workloads::kSsb},
                                         {"tpch", Workloads::kTpch}, {"checkout", Workloads::kCheckout},
                                         {"bank", Workloads::kBank}, {"shop", Workloads::kShop}};

/// A directory for the catalog's store, in memory if the host has such a file system; removed with this
/// object.
class StoreFolder {
 public:
  explicit StoreFolder(bool wanted) {
    if (!wanted) return;
    for (const char* parent : {"/dev/shm", "/tmp"}) {
      std::string path = absl::StrCat(parent, "/nam-sim-XXXXXX");
      if (::mkdtemp(path.data()) == nullptr) continue;
      path_ = path;
      return;
    }
    NAM_CHECK(false, "no folder can be made in /dev/shm or /tmp for the catalog's store");
  }
  ~StoreFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string file() const { return path_.empty() ? "" : path_ + "/catalog.db"; }

 private:
  std::string path_;
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

/// The scenario that the seed draws.
struct Scenario {
  Workloads workload = Workloads::kSsb;
  bool in_place = false;
};

Scenario DrawScenario(const RunOptions& options) {
  RandomStream random = StreamOf(options.seed, 5);
  constexpr Workloads kDrawn[] = {Workloads::kSsb,  Workloads::kTpch, Workloads::kCheckout,
                                  Workloads::kBank, Workloads::kBank, Workloads::kShop};
  const Workloads drawn = kDrawn[random.Below(std::size(kDrawn))];
  return {.workload = options.workload == Workloads::kAll ? drawn : options.workload,
          .in_place = random.OneIn(3)};
}

bool IsOfQueries(Workloads workload) {
  return workload == Workloads::kSsb || workload == Workloads::kTpch;
}

void RunQueries(Cluster& cluster, Adversary& adversary, RandomStream& random, const RunOptions& options,
                const BenchmarkAnswers& answers, RunResult& result) {
  Workload workload(cluster, adversary, answers, DrawShape(StreamOf(options.seed, 4)), result);
  workload.Load(RandomStream(random.Next()));
  const int clients = static_cast<int>(random.Between(1, 2));
  workload.RunClients(RandomStream(random.Next()), clients, static_cast<int>(random.Between(4, 14)));
  if (const absl::Status mended = adversary.Stop(); !mended.ok()) {
    result.failures.push_back(mended.ToString());
  }
  workload.RunAllQueries();
  workload.DropAll();
}

void RunTransactions(Cluster& cluster, Adversary& adversary, RandomStream& random, Workloads which,
                     RunResult& result) {
  const auto make = which == Workloads::kBank ? NewBank : which == Workloads::kShop ? NewShop : NewCheckout;
  TransactionWorkload workload(cluster, adversary, make, RandomStream(random.Next()), result);
  const int customers = static_cast<int>(random.Between(1, 4));
  workload.Run(customers, static_cast<int>(random.Magnitude(10, 200)));
  if (const absl::Status mended = adversary.Stop(); !mended.ok()) {
    result.failures.push_back(mended.ToString());
  }
  workload.Conclude();
  workload.DropAll();
}

void RunScenario(fabric::sim::World& world, const RunOptions& options, const Scenario& scenario,
                 const QueryAnswers& answers, RunResult& result) {
  ClusterOptions shape = DrawCluster(StreamOf(options.seed, 2));
  const StoreFolder folder(options.faults.catalog);
  shape.catalog_store = folder.file();
  if (!IsOfQueries(scenario.workload)) {
    shape.compute_servers = 0;
    // An extent lies in one region; the largest rows' extents have 8 MiB.
    shape.region_bytes = uint64_t{16} << 20;
    shape.memory_bytes = uint64_t{96} << 20;
    if (StreamOf(options.seed, 6).OneIn(3)) shape.timestamps = "bitvector";
  }
  auto cluster = Cluster::Start(world, shape);
  if (!cluster.ok()) {
    // Only the plan's faults, before the adversary starts: an error is acceptable.
    ++result.errors[absl::StatusCodeToString(cluster.status().code())];
    if (!absl::IsUnavailable(cluster.status())) result.failures.push_back(cluster.status().ToString());
    return;
  }
  RandomStream random = StreamOf(options.seed, 3);
  const int faults_max = static_cast<int>(random.Between(1, 10));
  auto adversary = Adversary::Start(**cluster, options.faults, RandomStream(random.Next()), faults_max);
  if (!adversary.ok()) return result.failures.push_back(adversary.status().ToString());
  if (IsOfQueries(scenario.workload)) {
    const BenchmarkAnswers& asked = scenario.workload == Workloads::kSsb ? *answers.ssb : *answers.tpch;
    RunQueries(**cluster, **adversary, random, options, asked, result);
  } else {
    RunTransactions(**cluster, **adversary, random, scenario.workload, result);
  }
  result.faults = (*adversary)->injected();
  if ((*cluster)->given_up() > 0) result.faults["servers given up"] = (*cluster)->given_up();
}

}  // namespace

std::string ReplayCommand(const RunOptions& options) {
  return absl::StrCat("nam sim --seed=", options.seed, " --generation=", options.nic.name,
                      " --workload=", WorkloadName(options.workload),
                      " --faults=", options.faults.ToString());
}

absl::StatusOr<Workloads> ParseWorkload(const std::string& name) {
  for (const NamedWorkloads& named : kWorkloads) {
    if (name == named.name) return named.workload;
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("`%s` is no workload; they are all, ssb, tpch, checkout, bank, shop", name));
}

const char* WorkloadName(Workloads workload) {
  for (const NamedWorkloads& named : kWorkloads) {
    if (workload == named.workload) return named.name;
  }
  return "";
}

absl::StatusOr<QueryAnswers> MakeAnswers(Workloads workload, double scale_factor) {
  QueryAnswers answers;
  if (workload == Workloads::kAll || workload == Workloads::kSsb) {
    NAM_ASSIGN_OR_RETURN(answers.ssb, BenchmarkAnswers::Make(SsbBenchmark(), scale_factor));
  }
  if (workload == Workloads::kAll || workload == Workloads::kTpch) {
    NAM_ASSIGN_OR_RETURN(answers.tpch, BenchmarkAnswers::Make(TpchBenchmark(), scale_factor));
  }
  return answers;
}

RunResult Run(const RunOptions& options, const QueryAnswers& answers) {
  RunResult result;
  result.seed = options.seed;
  const Scenario scenario = DrawScenario(options);
  result.workload = WorkloadName(scenario.workload);
  result.in_place = scenario.in_place;
  RandomStream random = StreamOf(options.seed, 1);
  fabric::sim::WorldOptions world_options;
  world_options.seed = options.seed;
  world_options.nic = options.nic;
  const double operations = scenario.workload == Workloads::kTpch   ? kTpchOperations
                            : scenario.workload == Workloads::kShop ? kShopOperations
                                                                    : 1;
  world_options.faults = DrawPlan(options.faults, random, operations);
  world_options.in_place = scenario.in_place;
  world_options.duration_ns_max = kVirtualNsMax;
  world_options.trace_path = options.trace_path;
  world_options.replay = ReplayCommand(options);
  world_options.on_hang = [replay = world_options.replay](const std::string& report) {
    EndHanging(report, replay);
  };
  const ReplayAtCrash replay_at_crash(world_options.replay);
  fabric::sim::World world(world_options);
  RunScenario(world, options, scenario, answers, result);
  result.virtual_ms = static_cast<double>(world.NowNs() - fabric::sim::World::kStartNs) / 1e6;
  result.trace_hash = world.TraceHash();
  result.trace_events = world.TraceEvents();
  return result;
}

}  // namespace nam::simulation
