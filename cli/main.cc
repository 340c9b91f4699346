// The users' program. Only this file parses command lines: it fills in each subcommand's options and calls
// its Run function.

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cli/backup_commands.h"
#include "cli/bench_command.h"
#include "cli/benchmark_commands.h"
#include "cli/check_history_command.h"
#include "cli/checkout_command.h"
#include "cli/cluster_commands.h"
#include "cli/command_completion.h"
#include "cli/demo.h"
#include "cli/doctor.h"
#include "cli/lost_server_commands.h"
#include "cli/manual_pages.h"
#include "cli/scale_command.h"
#include "cli/server_commands.h"
#include "cli/sim_command.h"
#include "cli/sql_command.h"
#include "terminal/command_line.h"
#include "terminal/version.h"
#include "workload/benchmark.h"

namespace nam::cli {
namespace {

class NamCommandLine final : public CommandLine {
 public:
  NamCommandLine() : CommandLine("nam", "NAM, a network-attached-memory database", "", {"bench"}) {
    AddDemo();
    AddCluster();
    AddBackup();
    AddScale();
    AddServers();
    AddSql();
    AddBenchmark(SsbBenchmark(), ssb_);
    AddTpch();
    AddCheckout();
    AddSim();
    AddBench();
    AddDoctor();
    AddVersion();
    AddDescriptions();
    NameEnvironment(app_);
  }

 private:
  struct BenchmarkOptions {
    BenchmarkGenerateOptions generate;
    BenchmarkLoadOptions load;
    BenchmarkRunOptions run;
  };

  static void AddClusterOptions(CLI::App* command, ClusterOptions& cluster) {
    Add(command, "--catalog", cluster.catalog, "the cluster's catalog; without it, the local cluster",
        "HOST:PORT");
    Add(command, "--secret-file", cluster.secret_file, "file with the cluster's secret", "FILE");
    AddTls(command, cluster.tls);
    Add(command, "--state-dir", cluster.state_dir, "the local cluster's directory", "DIR");
    AddNetwork(command, cluster);
  }

  static void AddTls(CLI::App* command, catalog::TlsFiles& tls) {
    Add(command, "--tls-certificate", tls.certificate,
        "certificate of this process, in PEM; without it, made from the secret", "FILE");
    Add(command, "--tls-key", tls.key, "private key of that certificate", "FILE");
    Add(command, "--tls-ca", tls.authority, "certificates of the authority of the cluster", "FILE");
  }

  template <typename Options>
  static void AddNetwork(CLI::App* command, Options& options) {
    Add(command, "--rdma", options.rdma,
        "verbs: the device; without it, that of the host's address, or the first", "DEVICE[:PORT][,gid=N]");
    Add(command, "--multicast-interface", options.multicast_interface,
        "tcp: name or address; without it, that of the address listened on", "INTERFACE");
    Add(command, "--multicast-ttl", options.multicast_ttl,
        "tcp: routers that multicast may pass, plus one; 0 to 255")
        ->check(CLI::Range(0, 255).description(""));
  }

  static void AddLog(CLI::App* command, ServerLogOptions& log) {
    AddLogLevel(command, log.level);
    Add(command, "--log-dir", log.directory, "write the log to a file there; without it, standard error",
        "DIR");
  }

  static void AddLogLevel(CLI::App* command, std::string& level) {
    AddCheckedChoice(command, "--log-level", level, {"error", "warning", "info", "debug"},
                     "the least that is logged (info)");
  }

  static void AddTimestamps(CLI::App* command, std::string& timestamps) {
    AddCheckedChoice(command, "--timestamps", timestamps, {"leased", "bitvector"},
                     "timestamps of transactions in a new store");
  }

  static void AddFabric(CLI::App* command, std::string& fabric, const std::string& description) {
    AddChoice(command, "--fabric", fabric, {"shm", "tcp", "verbs"}, description);
  }

  static void AddThreads(CLI::App* command, int& threads, const std::string& what) {
    Add(command, "--threads", threads, what)->check(CLI::Range(0, 1024).description(""));
  }

  static void AddBuryAfter(CLI::App* command, double& bury_after_s) {
    Add(command, "--bury-after", bury_after_s,
        "how long a memory server whose lease has ended may come back with its data", "SECONDS")
        ->check([](const std::string& text) {
          const double seconds = std::strtod(text.c_str(), nullptr);  // CLI11 checks that it is a number
          return seconds >= 0 && seconds <= 604'800 ? "" : "Value not in range 0 to 604800";  // nan neither
        });
  }

  static void AddEncrypt(CLI::App* command, bool& encrypt) {
    command->add_flag("--encrypt", encrypt, "encrypt what members move over the network (tcp)");
  }

  static void AddSource(CLI::App* command, DataSource& source) {
    Add(command, "--scale-factor", source.scale_factor,
        "size of the data: 1 is six million lineorder rows; fractions are allowed");
    Add(command, "--seed", source.seed, "seed of the data; changes their values, not their size");
    AddThreads(command, source.threads, "threads of the generator and the loader; 0: one per processor");
  }

  void AddDemo() {
    CLI::App* demo = Command(
        "demo", "a private cluster: load SSB, run and check its queries, run checkout, leave nothing behind",
        [this] { return RunDemo(demo_); });
    Add(demo, "--scale-factor", demo_.scale_factor, "size of the data: 1 is six million lineorder rows");
    Add(demo, "--seed", demo_.seed, "seed of the data; changes their values, not their size");
    Add(demo, "--memory-servers", demo_.memory_servers, "number of memory servers");
    Add(demo, "--compute-servers", demo_.compute_servers, "number of compute servers");
    AddFabric(demo, demo_.fabric, "transport between the cluster's servers (shm)");
    AddBytes(demo, "--memory", demo_.memory_bytes,
             "memory of each memory server; default: enough for the data");
    AddBytes(demo, "--scratch", demo_.scratch_bytes,
             "scratch memory for queries, a part of --memory; default: a quarter");
    AddThreads(demo, demo_.threads, "threads of each compute server; 0: its share of the processors");
    AddTimestamps(demo, demo_.timestamps);
    Add(demo, "--repeat", demo_.repeat, "runs of each query");
  }

  /// Each command has options of its own: CLI11 writes the environment's values into those of all commands,
  /// also into those that the user has not named.
  static void AddLocalCluster(CLI::App* up, UpOptions& options) {
    Add(up, "--state-dir", options.state_dir, "the cluster's directory", "DIR");
    Add(up, "--data-dir", options.data_directory,
        "directory for data that outlive the cluster, or none; default: ~/.local/share/nam, or with "
        "--state-dir `data` in that directory",
        "DIR");
    AddFabric(up, options.fabric, "transport between the cluster's servers (shm)");
    Add(up, "--memory-servers", options.memory_servers,
        "number of memory servers; more if the data directory has data of more");
    Add(up, "--compute-servers", options.compute_servers, "number of compute servers");
    AddBytes(up, "--memory", options.memory_bytes,
             "memory of each memory server; default: together a third of the host's memory");
    AddBytes(up, "--scratch", options.scratch_bytes,
             "scratch memory for queries, a part of --memory; default: a quarter");
    AddThreads(up, options.threads, "threads of each compute server; 0: its share of the processors");
    AddTimestamps(up, options.timestamps);
    AddEncrypt(up, options.encrypt);
    AddLogLevel(up, options.log_level);
    AddBuryAfter(up, options.bury_after_s);
  }

  void AddCluster() {
    AddLocalCluster(Command("up", "start a local cluster in the background", [this] { return RunUp(up_); }),
                    up_);
    CLI::App* supervise = Command("supervise", "", [this] { return RunSupervise(supervise_); });
    supervise->group("");  // hidden from the help: `nam up` starts it
    AddLocalCluster(supervise, supervise_);
    CLI::App* down =
        Command("down", "stop the local cluster, or clean up after it", [this] { return RunDown(down_); });
    Add(down, "--state-dir", down_.state_dir, "the cluster's directory", "DIR");
    down->add_flag("--discard-records", down_.discard_records, "do not save record tables")
        ->configurable(false);
    CLI::App* status =
        Command("status", "members and tables of a cluster", [this] { return RunStatus(status_); });
    AddClusterOptions(status, status_.cluster);
    AddFormat(status, status_.format);
    CLI::App* bury =
        Command("bury", "give up a memory server that does not answer; lists the losses, and asks",
                [this] { return RunBury(bury_); });
    AddClusterOptions(bury, bury_.cluster);
    bury->add_option("server", bury_.server, "the memory server's id, as `nam status` shows it")
        ->required()
        ->configurable(false);
    bury->add_flag("--yes", bury_.yes, "do not ask for confirmation");
    CLI::App* reset = Command(
        "reset-transactions",
        "drop all record tables and the transaction state, once the memory server with that state has died",
        [this] { return RunResetTransactions(reset_); });
    AddClusterOptions(reset, reset_.cluster);
    reset->add_flag("--yes", reset_.yes, "do not ask for confirmation")->configurable(false);
  }

  void AddBackup() {
    CLI::App* backup = Command(
        "backup", "write all tables of a cluster that runs, as they are at one moment, into a directory",
        [this] { return RunBackup(backup_); });
    AddClusterOptions(backup, backup_.cluster);
    backup->add_option("directory", backup_.directory, "directory of the backup; new, or empty")
        ->required()
        ->type_name("DIR")
        ->configurable(false);
    Add(backup, "--wait", backup_.wait_s, "how long to wait for loads that are under way", "SECONDS")
        ->check(CLI::Range(0.0, 86'400.0));
    CLI::App* restore = Command("restore", "make a local cluster's data of a backup; `nam up` starts it",
                                [this] { return RunRestore(restore_); });
    restore->add_option("directory", restore_.directory, "directory of the backup")
        ->required()
        ->type_name("DIR")
        ->configurable(false);
    Add(restore, "--state-dir", restore_.state_dir, "the new cluster's directory", "DIR");
    Add(restore, "--data-dir", restore_.data_directory, "directory for its data; default: that of nam up",
        "DIR");
    Add(restore, "--fabric", restore_.fabric, "shm, tcp or verbs; default: that of the backed-up cluster");
  }

  void AddScale() {
    CLI::App* scale = app_.add_subcommand("scale", "more or fewer compute servers of the local cluster");
    scale->require_subcommand(1);
    AddElsewhere(scale);
    AddScaling(scale, "out", "start more; they take work of running queries", scale_out_, RunScaleOut);
    AddScaling(scale, "in", "stop the youngest, after they finish their work under way", scale_in_,
               RunScaleIn);
  }

  void AddScaling(CLI::App* scale, const char* name, const char* description, ScaleOptions& options,
                  int (*run)(const ScaleOptions&)) {
    CLI::App* command = Command(
        name, description,
        [this, &options, run] {
          options.catalog = scale_catalog_;
          return run(options);
        },
        scale);
    Add(command, "--compute", options.compute_servers, "number of compute servers to start or stop");
    Add(command, "--state-dir", options.state_dir, "the cluster's directory", "DIR");
    AddElsewhere(command);
  }

  void AddElsewhere(CLI::App* command) {
    Add(command, "--catalog", scale_catalog_,
        "catalog of a cluster that is not local: refused, with advice on scaling it", "HOST:PORT");
  }

  void AddServers() {
    CLI::App* catalog =
        Command("catalog", "a catalog in the foreground", [this] { return RunCatalog(catalog_); });
    Add(catalog, "--listen", catalog_.listen, "where to listen (127.0.0.1:0)", "HOST:PORT");
    Add(catalog, "--lease-port", catalog_.lease_port,
        "port of that host on which members renew their leases; 0: any free port");
    Add(catalog, "--store", catalog_.store, "file that keeps the catalog's state", "FILE");
    Add(catalog, "--cluster-name", catalog_.cluster_name, "name of the cluster, for a new store");
    AddFabric(catalog, catalog_.fabric, "transport between the cluster's servers, for a new store (shm)");
    Add(catalog, "--secret-file", catalog_.secret_file, "file with the cluster's secret", "FILE");
    AddTls(catalog, catalog_.tls);
    Add(catalog, "--lease-ms", catalog_.lease_ms, "how long a silent member counts as alive");
    AddBuryAfter(catalog, catalog_.bury_after_s);
    AddTimestamps(catalog, catalog_.timestamps);
    AddEncrypt(catalog, catalog_.encrypt);
    AddLog(catalog, catalog_.log);
    catalog
        ->add_flag(
            "--accept-older-store", catalog_.accept_older_store,
            "serve a store that is older than what the memory servers know: what was committed since is "
            "given up, and its memory released")
        ->configurable(false);

    CLI::App* memory = Command("memserver", "a memory server in the foreground",
                               [this] { return RunMemoryServer(memory_); });
    Add(memory, "--catalog", memory_.catalog, "the cluster's catalog", "HOST:PORT");
    Add(memory, "--secret-file", memory_.secret_file, "file with the cluster's secret", "FILE");
    AddTls(memory, memory_.tls);
    AddBytes(memory, "--memory", memory_.memory_bytes, "memory that it hands out");
    AddBytes(memory, "--scratch", memory_.scratch_bytes,
             "scratch memory for queries, a part of --memory that loads cannot take; default: a quarter");
    Add(memory, "--data-dir", memory_.data_directory,
        "directory that keeps columnar tables, and from which they are read at the start; default: none",
        "DIR");
    Add(memory, "--control-listen", memory_.control_listen, "where to listen for gRPC (127.0.0.1:0)",
        "HOST:PORT");
    Add(memory, "--fabric-listen", memory_.fabric_listen,
        "address on which the fabric listens; default: chosen by the fabric");
    Add(memory, "--advertised-host", memory_.advertised_host, "the host that others connect to");
    Add(memory, "--nic-threads", memory_.nic_threads, "threads of the software NIC (tcp)");
    AddNetwork(memory, memory_);
    AddLog(memory, memory_.log);
    memory->add_flag("--populate", memory_.populate, "touch all memory when it is made");

    CLI::App* compute = Command("compute", "a compute server in the foreground",
                                [this] { return RunComputeServer(compute_); });
    Add(compute, "--catalog", compute_.catalog, "the cluster's catalog", "HOST:PORT");
    Add(compute, "--secret-file", compute_.secret_file, "file with the cluster's secret", "FILE");
    AddTls(compute, compute_.tls);
    AddThreads(compute, compute_.threads, "threads that run each query; 0: one per processor");
    AddBytes(compute, "--memory", compute_.memory_bytes,
             "memory for all queries together; default: half of the host's memory");
    Add(compute, "--control-listen", compute_.control_listen, "where to listen for gRPC (127.0.0.1:0)",
        "HOST:PORT");
    Add(compute, "--fabric-listen", compute_.fabric_listen,
        "where to listen for the fabric; without it, picked");
    Add(compute, "--advertised-host", compute_.advertised_host, "the host that others connect to");
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
    AddFormat(sql, sql_.format, {"table", "csv", "json", "markdown"},
              "format of the output; all but aligned tables print rows as they come");
    Add(sql, "--null", sql_.null_text, "the text for NULL in tables");
    sql->add_flag("-x,--expanded", sql_.expanded, "every row as a block of lines");
    sql->add_flag("--timing", sql_.timing, "print the time of every statement");
    sql->add_flag("--keep-going", sql_.keep_going, "go on after a script's first error");
  }

  void AddBenchmark(const Benchmark& benchmark, BenchmarkOptions& options) {
    CLI::App* parent = app_.add_subcommand(benchmark.name, benchmark.title);
    parent->require_subcommand(1);
    CLI::App* generate = Command(
        "generate", "write its tables as dbgen's .tbl files",
        [&] { return RunBenchmarkGenerate(benchmark, options.generate); }, parent);
    AddSource(generate, options.generate.source);
    Add(generate, "--out", options.generate.out, "directory, created if missing", "DIR");
    generate->add_option("--tables", options.generate.tables, "only these")->delimiter(',');
    generate->add_flag("--replace", options.generate.replace, "overwrite existing files");

    CLI::App* load = Command(
        "load", "load its tables into a cluster", [&] { return RunBenchmarkLoad(benchmark, options.load); },
        parent);
    AddClusterOptions(load, options.load.cluster);
    AddSource(load, options.load.source);
    Add(load, "--from", options.load.source.from, "dbgen's .tbl files instead of the generator", "DIR");
    AddBytes(load, "--block-bytes", options.load.block_bytes, "the most bytes of a block");
    load->add_flag("--replace", options.load.replace, "replace existing tables");
    AddBenchmarkRun(benchmark, options.run, parent);
  }

  void AddTpch() {
    AddBenchmark(TpchBenchmark(), tpch_);
    CLI::App* tpch = app_.get_subcommand(TpchBenchmark().name);
    Add(tpch->get_subcommand("generate"), "--refresh", tpch_.generate.refresh,
        "write the data of so many pairs of refresh functions instead");
    Add(tpch->get_subcommand("run"), "--parameters-seed", tpch_.run.parameters_seed,
        "seed of the queries' random parameters; without it, the specification's example parameters");
  }

  void AddBenchmarkRun(const Benchmark& benchmark, BenchmarkRunOptions& options, CLI::App* parent) {
    CLI::App* run = Command(
        "run", "run its queries", [&] { return RunBenchmarkRun(benchmark, options); }, parent);
    AddClusterOptions(run, options.cluster);
    AddSource(run, options.source);
    Add(run, "--from", options.source.from, "with --check: the loaded files", "DIR");
    Add(run, "--repeat", options.repeat, "runs of each query");
    run->add_option("--queries", options.queries, absl::StrCat("only these: ", benchmark.query_names))
        ->delimiter(',');
    AddFormat(run, options.format);
    Add(run, "--html", options.html, "write a page with plots of times, rows moved and waiting", "FILE");
    run->add_flag("--check", options.check, "compare every answer with SQLite's on the loaded data");
  }

  void AddCheckout() {
    CLI::App* checkout = Command("checkout", "transactions: orders of products, and whether they add up",
                                 [this] { return RunCheckout(checkout_); });
    AddClusterOptions(checkout, checkout_.cluster);
    Add(checkout, "--clients", checkout_.clients, "buying threads, each in one transaction at a time");
    Add(checkout, "--seconds", checkout_.seconds, "duration of the run in seconds");
    Add(checkout, "--transactions", checkout_.transactions, "run so many transactions instead; 0: unset");
    Add(checkout, "--products", checkout_.products, "rows of products; 0: a million, or as many as fit");
    Add(checkout, "--product-bytes", checkout_.product_bytes, "size of a product's row in bytes");
    Add(checkout, "--versions", checkout_.versions, "versions of a row kept for older snapshots, 1 to 16");
    Add(checkout, "--zipf", checkout_.zipf, "skew of the products' popularity, below 1; 0: uniform");
    Add(checkout, "--seed", checkout_.seed, "seed of the random purchases");
    checkout->add_flag("--replace", checkout_.replace, "drop checkout's tables first");
    checkout->add_flag("--check", checkout_.check,
                       "record the history and check that it satisfies snapshot isolation");
    Add(checkout, "--history", checkout_.history,
        "directory for the history, made if missing; one file per client (nam check-history)", "DIR");
    AddFormat(checkout, checkout_.format, {"table", "json"});
    CLI::App* check = Command("check-history", "check that recorded histories satisfy snapshot isolation",
                              [this] { return RunCheckHistory(check_history_, std::cout, std::cerr); });
    check->add_option("files", check_history_.files, "of one run: checkout --history=DIR writes one a client")
        ->required()
        ->type_name("FILE");
  }

  void AddSim() {
    CLI::App* sim = Command("sim", "simulated clusters under faults drawn from a seed, every answer checked",
                            [this] { return RunSim(sim_); });
    Add(sim, "--seed", sim_.seed, "the first seed; equal seeds give equal histories");
    Add(sim, "--seeds", sim_.seeds, "number of consecutive seeds, from --seed on");
    Add(sim, "--generation", sim_.generation, "fdr, edr, hdr, ndr, or a file that describes a network (fdr)",
        "NAME|FILE");
    AddChoice(sim, "--workload", sim_.workload, {"ssb", "tpch", "checkout", "bank", "shop", "all"},
              "with all, each seed draws one");
    Add(sim, "--faults", sim_.faults,
        "all, none, or some of "
        "delays,errors,torn,partitions,deaths,clients,pauses,asymmetric,slow,overtaking,"
        "catalog (all)",
        "KINDS");
    Add(sim, "--scale-factor", sim_.scale_factor, "of the benchmark that is loaded");
    Add(sim, "--trace", sim_.trace, "write every decision, operation and fault there", "FILE");
    sim->add_flag("--verify", sim_.verify, "run every seed twice and compare histories");
    AddFormat(sim, sim_.format);
  }

  void AddDoctor() {
    CLI::App* doctor = Command("doctor", "what this host can do, what is missing, and how to fix it",
                               [this] { return RunDoctor(doctor_); });
    AddFabric(doctor, doctor_.fabric,
              "the fabric to check; default: all fabrics, and shm decides the exit code");
    AddBytes(doctor, "--memory", doctor_.memory_bytes, "memory of a memory server on this host");
    doctor->add_option("--listen", doctor_.listen, "where servers on this host listen (127.0.0.1:0)")
        ->type_name("HOST:PORT")
        ->delimiter(',');
    Add(doctor, "--multicast-interface", doctor_.multicast_interface,
        "name or address; without it, that of the host in --listen", "INTERFACE");
    AddFormat(doctor, doctor_.format);
  }

  // For the help only: main has started nam-bench before.
  void AddBench() { app_.add_subcommand("bench", "benchmarks beside peers; nam bench --help lists them"); }

  void AddVersion() {
    app_.set_version_flag("--version", VersionText(), "the version and the commit that it was built from");
    Command("version", "the version and the commit that it was built from", [] {
      std::printf("%s\n", VersionText().c_str());
      return kExitOk;
    });
  }

  void AddDescriptions() {
    CLI::App* manual = Command("man", "write the manual pages", [this] {
      return RunManual(manual_, Describe(), VersionText().substr(0, VersionText().find(" (")));
    });
    Add(manual, "--out", manual_.out,
        "directory for the pages of all commands, made if it is not there; without it, that of nam is "
        "printed",
        "DIR");
    CLI::App* completion = Command("completion", "print what makes a shell complete commands and options",
                                   [this] { return RunCompletion(completion_, Describe()); });
    completion->add_option("shell", completion_.shell, "the shell; `source <(nam completion bash)` tries it")
        ->required()
        ->configurable(false)
        ->type_name(kCompletionShells)
        ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  }

  DemoOptions demo_;
  UpOptions up_, supervise_;
  DownOptions down_;
  StatusOptions status_;
  BuryOptions bury_;
  ResetTransactionsOptions reset_;
  ScaleOptions scale_out_, scale_in_;
  std::string scale_catalog_;
  BackupCommandOptions backup_;
  RestoreCommandOptions restore_;
  CatalogOptions catalog_;
  MemoryServerCommandOptions memory_;
  ComputeServerCommandOptions compute_;
  SqlOptions sql_;
  BenchmarkOptions ssb_;
  BenchmarkOptions tpch_;
  SimOptions sim_;
  CheckoutCommandOptions checkout_;
  CheckHistoryOptions check_history_;
  DoctorOptions doctor_;
  ManualOptions manual_;
  CompletionOptions completion_;
};

/// No file or socket of ours gets the number 0, 1 or 2: output would go into it. A descriptor that the caller
/// has closed opens on /dev/null, and against its direction, so that using it is an error.
void OccupyStandardDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
      std::abort();  // the lowest that is free
  }
}

}  // namespace
}  // namespace nam::cli

namespace {

/// Instead of an abort without a reason. What the process has not acknowledged has not happened, as after a
/// kill.
[[noreturn]] void EndWithoutMemory() {
  struct rlimit limit;
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  std::fprintf(stderr, "nam: this process is out of memory (53200), and ends: %s\n",
               limited ? "raise `ulimit -v`" : "the host, or its control group, has no more");
  std::_Exit(nam::kExitFailed);
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(EndWithoutMemory);
  nam::cli::OccupyStandardDescriptors();
  prctl(PR_SET_NAME, "nam");      // /proc/self/exe would be called `exe`
  std::signal(SIGPIPE, SIG_IGN);  // a closed peer or pager is an error, not an end
  // Debian's Abseil checks for cycles at every lock of gRPC: a twentieth of a short call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (const auto bench = nam::cli::BenchArguments({argv + 1, argv + argc}); bench.has_value()) {
    return nam::cli::RunBench(*bench);
  }
  static nam::cli::NamCommandLine command_line;
  return command_line.Run(argc, argv);
}
