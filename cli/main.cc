// The one binary. Command lines are understood here and nowhere else: every subcommand's options are
// filled in and handed to its Run function. Of flag, environment (NAM_…) and configuration file, the
// first that says something wins.

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/block_size_command.h"
#include "bench/checkout_command.h"
#include "bench/fabric_command.h"
#include "bench/prefetch_command.h"
#include "bench/server_end.h"
#include "bench/shuffle_command.h"
#include "bench/ssb_command.h"
#include "cli/checkout_command.h"
#include "cli/cluster_commands.h"
#include "cli/config_file.h"
#include "cli/demo.h"
#include "cli/doctor.h"
#include "cli/exit_codes.h"
#include "cli/scale_command.h"
#include "cli/server_commands.h"
#include "cli/sim_command.h"
#include "cli/sql_command.h"
#include "cli/ssb_commands.h"
#include "cli/units.h"

namespace nam::cli {
namespace {

constexpr char kVersion[] = "0.1.0";

/// What every option's default, environment variable and configuration key come from is its long name.
class CommandLine {
 public:
  CommandLine() {
    app_.name("nam");
    app_.description("NAM, a network-attached-memory database");
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_option("--config", config_path_, "configuration file (TOML); keys are the options' long names")
        ->type_name("FILE");
    AddDemo();
    AddCluster();
    AddScale();
    AddServers();
    AddSql();
    AddSsb();
    AddCheckout();
    AddSim();
    AddBench();
    AddDoctor();
    Command("version", "the version", [] {
      std::printf("nam %s\n", kVersion);
      return kExitOk;
    });
    NameEnvironment(app_);
  }

  int Run(int argc, char** argv) {
    try {
      const std::string config = ConfigPath(argc, argv);
      if (!config.empty()) {
        const auto entries = ReadConfigFile(config);
        if (!entries.ok()) return Refuse(std::string(entries.status().message()));
        for (const ConfigEntry& entry : *entries) {
          if (const std::string error = Apply(entry); !error.empty()) return Refuse(error);
        }
      }
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? kExitOk : kExitUsage;
    }
    for (const auto& [command, run] : commands_) {
      if (command->parsed() && command->get_subcommands().empty()) return run();
    }
    return kExitUsage;
  }

 private:
  using Run_ = std::function<int()>;

  CLI::App* Command(const std::string& name, const std::string& description, Run_ run,
                    CLI::App* parent = nullptr) {
    CLI::App* command = (parent != nullptr ? parent : &app_)->add_subcommand(name, description);
    commands_.emplace_back(command, std::move(run));
    return command;
  }

  template <typename T>
  static CLI::Option* Add(CLI::App* command, const std::string& name, T& value,
                          const std::string& description, const std::string& type_name = "") {
    CLI::Option* option = command->add_option(name, value, description);
    if constexpr (std::is_arithmetic_v<T>) option->capture_default_str();
    if (!type_name.empty()) option->type_name(type_name);
    return option;
  }

  static void AddBytes(CLI::App* command, const std::string& name, uint64_t& value,
                       const std::string& description) {
    CLI::Option* option = command->add_option_function<std::string>(
        name,
        [&value, name](const std::string& text) {
          const auto bytes = ParseBytes(text);
          if (!bytes.ok()) throw CLI::ValidationError(name, std::string(bytes.status().message()));
          value = *bytes;
        },
        description);
    option->type_name("SIZE");
    if (value != 0) option->default_str(FormatBytes(value));
  }

  static void AddFormat(CLI::App* command, std::string& format, const std::string& choices) {
    Add(command, "--format", format, choices + " (table)", "FORMAT");
  }

  static void AddClusterOptions(CLI::App* command, ClusterOptions& cluster) {
    Add(command, "--catalog", cluster.catalog, "the cluster's catalog; without it, the local cluster",
        "HOST:PORT");
    Add(command, "--secret-file", cluster.secret_file, "file with the cluster's secret", "FILE");
    Add(command, "--state-dir", cluster.state_dir, "the local cluster's directory", "DIR");
    AddNetwork(command, cluster);
  }

  template <typename Options>
  static void AddNetwork(CLI::App* command, Options& options) {
    Add(command, "--rdma", options.rdma,
        "verbs: which device; without it, that of the host's address, or the first", "DEVICE[:PORT][,gid=N]");
    Add(command, "--multicast-interface", options.multicast_interface,
        "tcp: name or address; without it, that of the address listened on", "INTERFACE");
    Add(command, "--multicast-ttl", options.multicast_ttl, "tcp: routers that multicast may pass, plus one")
        ->check(CLI::Range(0, 255));
  }

  static void AddLog(CLI::App* command, ServerLogOptions& log) {
    AddLogLevel(command, log.level);
    Add(command, "--log-dir", log.directory, "write the log to a file there; without it, standard error", "DIR");
  }

  static void AddLogLevel(CLI::App* command, std::string& level) {
    Add(command, "--log-level", level, "error, warning, info or debug (info)")
        ->check(CLI::IsMember({"error", "warning", "info", "debug"}));
  }

  static void AddTimestamps(CLI::App* command, std::string& timestamps) {
    Add(command, "--timestamps", timestamps, "of transactions, from a store's first on: leased or bitvector")
        ->check(CLI::IsMember({"leased", "bitvector"}));
  }

  static void AddSource(CLI::App* command, SsbSource& source) {
    Add(command, "--scale-factor", source.scale_factor,
        "1 is six million lineorder rows; fractions are fine");
    Add(command, "--seed", source.seed, "other data of the same size");
    Add(command, "--threads", source.threads, "of the generator and the loader");
  }

  void AddDemo() {
    CLI::App* demo = Command(
        "demo", "a private cluster: load SSB, run and check its queries, run checkout, leave nothing behind",
        [this] { return RunDemo(demo_); });
    Add(demo, "--scale-factor", demo_.scale_factor, "1 is six million lineorder rows");
    Add(demo, "--seed", demo_.seed, "other data of the same size");
    Add(demo, "--memory-servers", demo_.memory_servers, "how many");
    Add(demo, "--compute-servers", demo_.compute_servers, "how many");
    Add(demo, "--fabric", demo_.fabric, "shm, tcp or verbs (shm)");
    AddBytes(demo, "--memory", demo_.memory_bytes, "of each memory server; without it, enough");
    Add(demo, "--threads", demo_.threads, "of each compute server; 0: the processors shared out");
    AddTimestamps(demo, demo_.timestamps);
    Add(demo, "--repeat", demo_.repeat, "runs of each query");
  }

  void AddCluster() {
    for (CLI::App* up :
         {Command("up", "start a local cluster in the background", [this] { return RunUp(up_); }),
          Command("supervise", "", [this] { return RunSupervise(up_); })}) {
      if (up->get_name() == "supervise") up->group("");  // not in the help: `nam up` starts it
      Add(up, "--state-dir", up_.state_dir, "the cluster's directory", "DIR");
      Add(up, "--fabric", up_.fabric, "shm, tcp or verbs (shm)");
      Add(up, "--memory-servers", up_.memory_servers, "how many");
      Add(up, "--compute-servers", up_.compute_servers, "how many");
      AddBytes(up, "--memory", up_.memory_bytes, "of each memory server");
      Add(up, "--threads", up_.threads, "of each compute server; 0: the processors shared out");
      AddTimestamps(up, up_.timestamps);
      AddLogLevel(up, up_.log_level);
    }
    CLI::App* down =
        Command("down", "stop the local cluster, or clean up after it", [this] { return RunDown(down_); });
    Add(down, "--state-dir", down_.state_dir, "the cluster's directory", "DIR");
    CLI::App* status =
        Command("status", "members and tables of a cluster", [this] { return RunStatus(status_); });
    AddClusterOptions(status, status_.cluster);
    AddFormat(status, status_.format, "table, json, csv or markdown");
  }

  void AddScale() {
    CLI::App* scale = app_.add_subcommand("scale", "more or fewer compute servers of the local cluster");
    scale->require_subcommand(1);
    for (CLI::App* command : {Command(
                                  "out", "start more; running queries give them work",
                                  [this] { return RunScaleOut(scale_); }, scale),
                              Command(
                                  "in", "stop the youngest; what they have begun is finished first",
                                  [this] { return RunScaleIn(scale_); }, scale)}) {
      Add(command, "--compute", scale_.compute_servers, "how many");
      Add(command, "--state-dir", scale_.state_dir, "the cluster's directory", "DIR");
      Add(command, "--catalog", scale_.catalog, "of another cluster: refused, with what to do there",
          "HOST:PORT");
    }
  }

  void AddServers() {
    CLI::App* catalog =
        Command("catalog", "a catalog in the foreground", [this] { return RunCatalog(catalog_); });
    Add(catalog, "--listen", catalog_.listen, "where to listen (127.0.0.1:0)", "HOST:PORT");
    Add(catalog, "--store", catalog_.store, "the file it keeps its state in", "FILE");
    Add(catalog, "--cluster-name", catalog_.cluster_name, "of a new store");
    Add(catalog, "--fabric", catalog_.fabric, "of a new store: shm, tcp or verbs (shm)");
    Add(catalog, "--secret-file", catalog_.secret_file, "file with the cluster's secret", "FILE");
    Add(catalog, "--lease-ms", catalog_.lease_ms, "how long a silent member counts as alive");
    AddTimestamps(catalog, catalog_.timestamps);
    AddLog(catalog, catalog_.log);

    CLI::App* memory = Command("memserver", "a memory server in the foreground",
                               [this] { return RunMemoryServer(memory_); });
    Add(memory, "--catalog", memory_.catalog, "the cluster's catalog", "HOST:PORT");
    Add(memory, "--secret-file", memory_.secret_file, "file with the cluster's secret", "FILE");
    AddBytes(memory, "--memory", memory_.memory_bytes, "the most that it hands out");
    Add(memory, "--control-listen", memory_.control_listen, "where to listen for gRPC (127.0.0.1:0)",
        "HOST:PORT");
    Add(memory, "--fabric-listen", memory_.fabric_listen,
        "where to listen for the fabric; without it, picked");
    Add(memory, "--advertised-host", memory_.advertised_host, "the host that others shall connect to");
    Add(memory, "--nic-threads", memory_.nic_threads, "of the software NIC (tcp)");
    AddNetwork(memory, memory_);
    AddLog(memory, memory_.log);
    memory->add_flag("--populate", memory_.populate, "touch all memory when it is made");

    CLI::App* compute = Command("compute", "a compute server in the foreground",
                                [this] { return RunComputeServer(compute_); });
    Add(compute, "--catalog", compute_.catalog, "the cluster's catalog", "HOST:PORT");
    Add(compute, "--secret-file", compute_.secret_file, "file with the cluster's secret", "FILE");
    Add(compute, "--threads", compute_.threads, "that run queries; 0: one a processor");
    Add(compute, "--control-listen", compute_.control_listen, "where to listen for gRPC (127.0.0.1:0)",
        "HOST:PORT");
    Add(compute, "--fabric-listen", compute_.fabric_listen,
        "where to listen for the fabric; without it, picked");
    Add(compute, "--advertised-host", compute_.advertised_host, "the host that others shall connect to");
    AddNetwork(compute, compute_);
    AddLog(compute, compute_.log);
  }

  void AddSql() {
    CLI::App* sql =
        Command("sql", "the shell; a script from -c, -f or standard input", [this] { return RunSql(sql_); });
    AddClusterOptions(sql, sql_.cluster);
    CLI::Option* commands =
        sql->add_option("-c,--command", sql_.commands, "run these statements; may be repeated")
            ->type_name("SQL");
    CLI::Option* files =
        sql->add_option("-f,--file", sql_.files, "run a file (- is standard input); may be repeated")
            ->type_name("FILE");
    for (CLI::Option* option : {commands, files}) {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->configurable(false);
    }
    commands->excludes(files);
    AddFormat(sql, sql_.format, "table, csv, json or markdown");
    Add(sql, "--null", sql_.null_text, "what stands for NULL in tables");
    sql->add_flag("-x,--expanded", sql_.expanded, "every row as a block of lines");
    sql->add_flag("--timing", sql_.timing, "print the time of every statement");
    sql->add_flag("--keep-going", sql_.keep_going, "run a script on past its first error");
  }

  void AddSsb() {
    CLI::App* ssb = app_.add_subcommand("ssb", "the Star Schema Benchmark");
    ssb->require_subcommand(1);
    CLI::App* generate = Command(
        "generate", "write its tables as dbgen's .tbl files", [this] { return RunSsbGenerate(generate_); },
        ssb);
    AddSource(generate, generate_.source);
    Add(generate, "--out", generate_.out, "directory, made if it is not there", "DIR");
    generate->add_option("--tables", generate_.tables, "only these")->delimiter(',');
    generate->add_flag("--replace", generate_.replace, "files that are there already");

    CLI::App* load = Command(
        "load", "load its tables into a cluster", [this] { return RunSsbLoad(load_); }, ssb);
    AddClusterOptions(load, load_.cluster);
    AddSource(load, load_.source);
    Add(load, "--from", load_.source.from, "dbgen's .tbl files instead of the generator", "DIR");
    AddBytes(load, "--block-bytes", load_.block_bytes, "the most bytes of a block");
    load->add_flag("--replace", load_.replace, "tables that are there already");

    CLI::App* run = Command(
        "run", "run its queries", [this] { return RunSsbRun(run_); }, ssb);
    AddClusterOptions(run, run_.cluster);
    AddSource(run, run_.source);
    Add(run, "--from", run_.source.from, "with --check: what was loaded", "DIR");
    Add(run, "--repeat", run_.repeat, "runs of each query");
    run->add_option("--queries", run_.queries, "only these: Q1.1,Q2.3")->delimiter(',');
    AddFormat(run, run_.format, "table, json, csv or markdown");
    Add(run, "--html", run_.html, "write a page with plots of times, rows moved and waiting", "FILE");
    run->add_flag("--check", run_.check, "compare every answer with SQLite's on the data that was loaded");
  }

  void AddCheckout() {
    CLI::App* checkout = Command("checkout", "transactions: orders of products, and whether they add up",
                                 [this] { return RunCheckout(checkout_); });
    AddClusterOptions(checkout, checkout_.cluster);
    Add(checkout, "--protocol", checkout_.protocol,
        "rsi in the cluster; 2pc-tcp or 2pc-send: two-phase commit, among servers of its own (rsi)");
    Add(checkout, "--fabric", checkout_.fabric, "2pc-send: what messages go over, shm or tcp (shm)");
    Add(checkout, "--participants", checkout_.participants, "2pc-*: servers that hold the rows");
    Add(checkout, "--clients", checkout_.clients, "threads that buy, each in one transaction at a time");
    Add(checkout, "--seconds", checkout_.seconds, "how long");
    Add(checkout, "--transactions", checkout_.transactions, "so many instead; 0: --seconds counts");
    Add(checkout, "--products", checkout_.products, "rows that are bought from");
    Add(checkout, "--product-bytes", checkout_.product_bytes, "of a product's row");
    Add(checkout, "--versions", checkout_.versions, "of a row that are kept for older snapshots, 1 to 16");
    Add(checkout, "--zipf", checkout_.zipf, "skew of the products' popularity, below 1; 0: all alike");
    Add(checkout, "--seed", checkout_.seed, "other purchases of the same kind");
    checkout->add_flag("--replace", checkout_.replace, "drop checkout's tables first");
    checkout->add_flag("--check", checkout_.check,
                       "record the history and decide whether it is snapshot isolation");
    Add(checkout, "--history", checkout_.history, "write it there, a file a client", "DIR");
    AddFormat(checkout, checkout_.format, "table or json");
  }

  void AddSim() {
    CLI::App* sim = Command("sim", "simulated clusters under faults drawn from a seed, every answer checked",
                            [this] { return RunSim(sim_); });
    Add(sim, "--seed", sim_.seed, "the first one; equal seeds have equal histories");
    Add(sim, "--seeds", sim_.seeds, "how many, from --seed on");
    Add(sim, "--generation", sim_.generation, "fdr, edr, hdr, ndr, or a file that describes a network (fdr)",
        "NAME|FILE");
    Add(sim, "--faults", sim_.faults,
        "all, none, or some of delays,errors,torn,partitions,deaths,clients (all)", "KINDS");
    Add(sim, "--scale-factor", sim_.scale_factor, "of the benchmark that is loaded");
    Add(sim, "--trace", sim_.trace, "write every decision, operation and fault there", "FILE");
    sim->add_flag("--verify", sim_.verify, "run every seed twice and compare histories");
    AddFormat(sim, sim_.format, "table, json, csv or markdown");
  }

  void AddBench() {
    CLI::App* bench = app_.add_subcommand("bench", "benchmarks beside peers, in one process tree");
    bench->require_subcommand(1);
    CLI::App* checkout = Command(
        "checkout", "transactions beside a bare loop, SQLite and two-phase commit",
        [this] { return bench::RunCheckoutBench(checkout_bench_); }, bench);
    Add(checkout, "--fabric", checkout_bench_.fabric,
        "shm, tcp or verbs; or sim, for a figure in virtual time (shm)");
    Add(checkout, "--memory-servers", checkout_bench_.memory_servers, "how many");
    checkout
        ->add_option("--clients", checkout_bench_.clients,
                     "threads of each side (2); sim: all of these (1,2,5,10,20,…,70)")
        ->delimiter(',');
    Add(checkout, "--seconds", checkout_bench_.seconds, "of each side in a round");
    Add(checkout, "--repeat", checkout_bench_.repeat, "rounds");
    Add(checkout, "--products", checkout_bench_.products,
        "rows that are bought from; 0: 1,000,000, in sim 200,000");
    Add(checkout, "--product-bytes", checkout_bench_.product_bytes, "of a product's row");
    Add(checkout, "--zipf", checkout_bench_.zipf, "skew of the products' popularity, below 1; 0: all alike");
    Add(checkout, "--seed", checkout_bench_.seed, "other purchases of the same kind");
    AddFormat(checkout, checkout_bench_.format, "table or json");
    Add(checkout, "--generation", checkout_bench_.generation,
        "sim: fdr, edr, hdr, ndr, or a model's file (fdr)");
    Add(checkout, "--participants", checkout_bench_.participants,
        "sim: threads of two-phase commit's 3 servers");
    Add(checkout, "--coordinators", checkout_bench_.coordinators,
        "sim: of its transaction manager's machine");
    Add(checkout, "--html", checkout_bench_.html, "sim: write a page with the plot", "FILE");

    CLI::App* ssb = Command(
        "ssb", "the Star Schema Benchmark's queries, taking turns with a peer and a hand-written loop",
        [this] { return bench::RunSsbBench(ssb_bench_); }, bench);
    Add(ssb, "--peer", ssb_bench_.peer, "none or duckdb (none)");
    Add(ssb, "--peer-dir", ssb_bench_.peer_dir, "DuckDB's process (bench/duckdb_peer)", "DIR");
    ssb->add_flag("--peer-sorted", ssb_bench_.peer_sorted, "lineorder by order date in the peer too");
    Add(ssb, "--repeat", ssb_bench_.repeat, "runs of each query, after one to warm up");
    AddSsbCluster(ssb, ssb_bench_);
    AddBytes(ssb, "--memory", ssb_bench_.memory_bytes, "of each memory server; without it, enough");
    AddBytes(ssb, "--block-bytes", ssb_bench_.block_bytes, "the most bytes of a block");
    ssb->add_flag("--no-loop", ssb_bench_.no_loop, "leave the hand-written loop out");
    Add(ssb, "--compare", ssb_bench_.compare, "an older report of --format=json", "FILE");
    AddBlockSizeBench(bench);
    AddFabricBench(bench);
    AddStreamBenches(bench);
    AddShuffleBench(bench);
    // Not in the help: the benchmarks start it.
    Command("bench-server", "", [] { return bench::RunBenchServer(); })->group("");
  }

  void AddBlockSizeBench(CLI::App* bench) {
    CLI::App* blocks = Command(
        "blocks", "the Star Schema Benchmark over blocks of several sizes",
        [this] { return bench::RunBlockSizeBench(block_size_bench_); }, bench);
    blocks->add_option("--sizes", block_size_bench_.sizes, "only these: 16KiB to 1MiB")->delimiter(',');
    Add(blocks, "--rounds", block_size_bench_.rounds, "in which all sizes take turns");
    Add(blocks, "--repeat", block_size_bench_.repeat, "runs of each query in a round, after one to warm up");
    AddSsbCluster(blocks, block_size_bench_);
  }

  /// What benchmarks that run SSB's queries in a cluster of their own have in common.
  template <typename Options>
  static void AddSsbCluster(CLI::App* bench, Options& options) {
    Add(bench, "--scale-factor", options.scale_factor, "1 is six million lineorder rows");
    Add(bench, "--seed", options.seed, "other data of the same size");
    bench->add_option("--queries", options.queries, "only these: Q1.1,Q2.3")->delimiter(',');
    Add(bench, "--fabric", options.fabric, "shm, tcp or verbs (shm)");
    Add(bench, "--memory-servers", options.memory_servers, "how many");
    Add(bench, "--compute-servers", options.compute_servers, "how many");
    Add(bench, "--threads", options.threads, "of each side in all; 0: one a processor");
    AddFormat(bench, options.format, "table, json, csv or markdown");
  }

  void AddFabricBench(CLI::App* bench) {
    CLI::App* fabric = Command(
        "fabric", "the operations of a fabric beside what the machine does without it",
        [this] { return bench::RunFabricBench(fabric_bench_); }, bench);
    fabric
        ->add_option("--operations", fabric_bench_.operations,
                     "only these: read,write,cas,faa,send,multicast")
        ->delimiter(',');
    fabric->add_option("--sizes", fabric_bench_.sizes, "only these: 8 to 1MiB (8,512,2KiB,64KiB,1MiB)")
        ->delimiter(',');
    fabric->add_option("--in-flight", fabric_bench_.in_flight, "of each thread, 1 to 64 (1,10,16,64)")
        ->delimiter(',');
    fabric->add_option("--threads", fabric_bench_.threads, "of the client, 1 to 64 (1)")->delimiter(',');
    AddBytes(fabric, "--span", fabric_bench_.span_bytes, "of the server's memory that is used");
    AddTestbed(fabric, fabric_bench_.testbed);
  }

  void AddStreamBenches(CLI::App* bench) {
    CLI::App* prefetch = Command(
        "prefetch", "the engine's block stream by the number of blocks in flight",
        [this] { return bench::RunPrefetchBench(prefetch_bench_); }, bench);
    prefetch->add_option("--windows", prefetch_bench_.windows, "only these: 1 to 64 (1,2,3,5,10,20,64)")
        ->delimiter(',');
    AddStream(prefetch, prefetch_bench_.stream);
    CLI::App* multicast = Command(
        "multicast", "blocks to many receivers, by READ and by multicast",
        [this] { return bench::RunMulticastBench(multicast_bench_); }, bench);
    multicast->add_option("--receivers", multicast_bench_.receivers, "only these: 1 to 16 (1,2,…,8)")
        ->delimiter(',');
    Add(multicast, "--blocks", multicast_bench_.blocks, "that every receiver gets");
    AddStream(multicast, multicast_bench_.stream);
  }

  void AddShuffleBench(CLI::App* bench) {
    bench::ShuffleBenchOptions& options = shuffle_bench_;
    CLI::App* shuffle = Command(
        "shuffle", "star joins by pipelined plans beside shuffle-based ones",
        [this] { return bench::RunShuffleBench(shuffle_bench_); }, bench);
    Add(shuffle, "--fabric", options.fabric, "shm, tcp, verbs or sim (shm)");
    shuffle->add_option("--tables", options.tables, "that are joined: 2, 3, 4 (all)")->delimiter(',');
    Add(shuffle, "--memory-servers", options.memory_servers, "how many; 0: 2, in sim 8");
    shuffle
        ->add_option("--compute-servers", options.compute_servers, "of each side (2); sim: all of these (8)")
        ->delimiter(',');
    Add(shuffle, "--threads", options.threads, "of each compute server; 0: processors shared out, in sim 10");
    Add(shuffle, "--scale-factor", options.scale_factor, "1 is six million lineorder rows; 0: 1");
    Add(shuffle, "--seed", options.seed, "other data of the same size");
    Add(shuffle, "--fan-out", options.fan_out, "parts by each join key; 0: 8, or 16 for more servers");
    AddBytes(shuffle, "--batch-bytes", options.batch_bytes, "of a shuffle's messages");
    Add(shuffle, "--multicast", options.multicast, "of pipelined build sides: auto, on or off (auto)");
    Add(shuffle, "--tuples", options.tuples,
        "of lineorder are moved: narrow (wanted columns) or whole (narrow)");
    Add(shuffle, "--credits", options.credits, "batches that a peer may send ahead");
    Add(shuffle, "--repeat", options.repeat, "rounds; figures are medians");
    Add(shuffle, "--generation", options.generation, "sim: fdr, edr, hdr, ndr, or a model's file (fdr)");
    Add(shuffle, "--html", options.html, "write a page with plots", "FILE");
    AddFormat(shuffle, options.format, "table, json, csv or markdown");
  }

  static void AddStream(CLI::App* command, bench::StreamBenchOptions& stream) {
    AddBytes(command, "--block-bytes", stream.block_bytes, "of a block");
    Add(command, "--threads", stream.threads, "of each receiver; 0: what suits the fabric");
    Add(command, "--scan-ns", stream.scan_ns, "sim: computation for each block; 0: as in I-Store's figures");
    Add(command, "--html", stream.testbed.html, "write a page with the plot", "FILE");
    AddTestbed(command, stream.testbed);
  }

  static void AddTestbed(CLI::App* command, bench::TestbedCommandOptions& testbed) {
    Add(command, "--fabric", testbed.fabric, "shm, tcp, verbs or sim (shm)");
    Add(command, "--generation", testbed.generation, "sim: fdr, edr, hdr or ndr (fdr)");
    Add(command, "--rdma", testbed.rdma, "verbs: the client's device", "DEVICE[:PORT][,gid=N]");
    Add(command, "--server-rdma", testbed.server_rdma, "verbs: the server's device", "DEVICE[:PORT][,gid=N]");
    Add(command, "--server-host", testbed.server_host, "the address that the server listens on (127.0.0.1)",
        "HOST");
    Add(command, "--repeat", testbed.repeat, "rounds; figures are medians");
    Add(command, "--round-ms", testbed.round_ms, "of each measurement; 0: what suits the fabric");
    Add(command, "--compare", testbed.compare, "an older report of --format=json", "FILE");
    AddFormat(command, testbed.format, "table, json, csv or markdown");
  }

  void AddDoctor() {
    CLI::App* doctor = Command("doctor", "what this host can do, what is missing, and how to mend it",
                               [this] { return RunDoctor(doctor_); });
    Add(doctor, "--fabric", doctor_.fabric,
        "only what shm, tcp or verbs needs; without it, all, and shm decides");
    AddBytes(doctor, "--memory", doctor_.memory_bytes, "that a memory server here shall hand out");
    doctor->add_option("--listen", doctor_.listen, "where servers here shall listen (127.0.0.1:0)")
        ->type_name("HOST:PORT")
        ->delimiter(',');
    Add(doctor, "--multicast-interface", doctor_.multicast_interface,
        "name or address; without it, that of the host in --listen", "INTERFACE");
    AddFormat(doctor, doctor_.format, "table, json, csv or markdown");
  }

  /// NAM_<LONG_NAME> for every option that a file can set too.
  static void NameEnvironment(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
      const std::vector<std::string>& names = option->get_lnames();
      if (names.empty() || names[0] == "help" || !option->get_configurable()) continue;
      std::string variable = "NAM_" + names[0];
      std::transform(variable.begin(), variable.end(), variable.begin(),
                     [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
      option->envname(variable);
    }
    for (CLI::App* command : app.get_subcommands(nullptr)) NameEnvironment(*command);
  }

  /// Needed before the command line is parsed: the file's values are defaults.
  static std::string ConfigPath(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--") break;
      if (argument.rfind("--config=", 0) == 0) return argument.substr(9);
      if (argument == "--config" && i + 1 < argc) return argv[i + 1];
    }
    const char* path = std::getenv("NAM_CONFIG");
    return path != nullptr ? path : "";
  }

  /// Makes an entry the default of the options it means; what is wrong with it, if anything.
  std::string Apply(const ConfigEntry& entry) {
    CLI::App* app = &app_;
    for (const std::string& name : entry.section) {
      CLI::App* inner = nullptr;
      for (CLI::App* command : app->get_subcommands(nullptr)) {
        if (command->get_name() == name) inner = command;
      }
      if (inner == nullptr) return entry.where + ": there is no command [" + name + "]";
      app = inner;
    }
    int found = 0;
    try {
      ApplyTo(*app, entry, entry.section.empty(), found);
    } catch (const CLI::Error& error) {
      return entry.where + ": " + error.what();
    }
    return found > 0 ? std::string() : entry.where + ": unknown setting \"" + entry.key + "\"";
  }

  static void ApplyTo(CLI::App& app, const ConfigEntry& entry, bool deep, int& found) {
    for (CLI::Option* option : app.get_options()) {
      const std::vector<std::string>& names = option->get_lnames();
      if (names.empty() || names[0] != entry.key || !option->get_configurable() || entry.key == "config")
        continue;
      std::string value;
      for (const std::string& element : entry.values) value += (value.empty() ? "" : ",") + element;
      option->run_callback_for_default()->default_val(value);
      ++found;
    }
    if (!deep) return;
    for (CLI::App* command : app.get_subcommands(nullptr)) ApplyTo(*command, entry, true, found);
  }

  static int Refuse(const std::string& message) {
    std::fprintf(stderr, "nam: %s\n", message.c_str());
    return kExitUsage;
  }

  CLI::App app_;
  std::string config_path_;
  std::vector<std::pair<CLI::App*, Run_>> commands_;
  DemoOptions demo_;
  UpOptions up_;
  DownOptions down_;
  StatusOptions status_;
  ScaleOptions scale_;
  CatalogOptions catalog_;
  MemoryServerCommandOptions memory_;
  ComputeServerCommandOptions compute_;
  SqlOptions sql_;
  SsbGenerateOptions generate_;
  SsbLoadOptions load_;
  SsbRunOptions run_;
  SimOptions sim_;
  CheckoutCommandOptions checkout_;
  bench::CheckoutBenchOptions checkout_bench_;
  bench::SsbBenchOptions ssb_bench_;
  bench::BlockSizeBenchOptions block_size_bench_;
  DoctorOptions doctor_;
  bench::FabricBenchOptions fabric_bench_;
  bench::PrefetchBenchOptions prefetch_bench_;
  bench::MulticastBenchOptions multicast_bench_;
  bench::ShuffleBenchOptions shuffle_bench_;
};

}  // namespace
}  // namespace nam::cli

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "nam");      // /proc/self/exe would be called `exe`
  std::signal(SIGPIPE, SIG_IGN);  // a peer or a pager that went away is an error, not an end
  static nam::cli::CommandLine command_line;
  return command_line.Run(argc, argv);
}
