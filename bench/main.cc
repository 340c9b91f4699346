// The benchmarks of `nam bench`.

#include <sys/prctl.h>

#include <csignal>
#include <string>

#include "bench/aggregate_command.h"
#include "bench/block_size_command.h"
#include "bench/calibrate_command.h"
#include "bench/checkout_command.h"
#include "bench/choice_command.h"
#include "bench/fabric_command.h"
#include "bench/figure7.h"
#include "bench/join_command.h"
#include "bench/prefetch_command.h"
#include "bench/query_command.h"
#include "bench/server_end.h"
#include "bench/shuffle_command.h"
#include "terminal/command_line.h"
#include "workload/benchmark.h"

namespace nam::bench {
namespace {

class BenchCommandLine final : public CommandLine {
 public:
  BenchCommandLine()
      : CommandLine("nam bench", "Benchmarks of NAM and of peers, in one process tree", "bench", {}) {
    AddBench();
    NameEnvironment(app_);
  }

 private:
  void AddBench() {
    CLI::App* checkout =
        Command("checkout", "transactions, compared to loops without any, SQLite and two-phase commit",
                [this] { return RunCheckoutBench(checkout_bench_); });
    Add(checkout, "--fabric", checkout_bench_.fabric,
        "shm, tcp or verbs; or sim, for a figure in virtual time (shm)");
    Add(checkout, "--memory-servers", checkout_bench_.memory_servers, "number of memory servers");
    checkout
        ->add_option("--clients", checkout_bench_.clients,
                     "threads per contender (2); sim: all of these (1,2,5,10,20,…,70)")
        ->delimiter(',');
    Add(checkout, "--seconds", checkout_bench_.seconds, "seconds per contender and round");
    Add(checkout, "--repeat", checkout_bench_.repeat, "rounds");
    Add(checkout, "--products", checkout_bench_.products,
        "products to buy from; 0: 1,000,000, in sim 200,000");
    Add(checkout, "--product-bytes", checkout_bench_.product_bytes, "size of a product's row");
    Add(checkout, "--zipf", checkout_bench_.zipf, "skew of the products' popularity, below 1; 0: uniform");
    Add(checkout, "--seed", checkout_bench_.seed, "other purchases of the same kind");
    AddFormat(checkout, checkout_bench_.format, {"table", "json"});
    Add(checkout, "--generation", checkout_bench_.generation,
        "sim: fdr, edr, hdr, ndr, or a model's file (fdr)");
    checkout->add_option("--protocols", checkout_bench_.protocols, "sim: any of rsi,2pc-send,2pc-tcp (all)")
        ->delimiter(',');
    Add(checkout, "--row-servers", checkout_bench_.row_servers,
        "sim: servers for rows, in addition to the one for the transaction state (3)");
    Add(checkout, "--client-machines", checkout_bench_.client_machines, "sim: client machines (4)");
    Add(checkout, "--participants", checkout_bench_.participants,
        "sim: threads of two-phase commit's servers");
    Add(checkout, "--coordinators", checkout_bench_.coordinators,
        "sim: threads of its transaction manager's machine");
    Add(checkout, "--html", checkout_bench_.html, "sim: write a page with the plot", "FILE");

    CLI::App* ssb = AddQueryBench(
        SsbBenchmark(), ssb_bench_,
        "the Star Schema Benchmark's queries, taking turns with a peer and a hand-written loop");
    ssb->add_flag("--no-loop", ssb_bench_.no_loop, "skip the hand-written loop");
    CLI::App* tpch =
        AddQueryBench(TpchBenchmark(), tpch_bench_, "TPC-H's 22 queries, taking turns with a peer");
    Add(tpch, "--parameters-seed", tpch_bench_.parameters_seed,
        "seed of random query parameters; default: the parameters of the specification's example answers");
    AddBlockSizeBench();
    AddFabricBench();
    AddStreamBenches();
    AddShuffleBench();
    CLI::App* figure7 =
        Command("figure7", "costs of distributed joins by selectivity, by the paper's equations",
                [this] { return RunFigure7(figure7_); });
    Add(figure7, "--html", figure7_.html, "write a page with the plots", "FILE");
    AddFormat(figure7, figure7_.format);
    AddCalibrate();
    AddAlgorithmBenches();
    AddChoiceBench();
    // Hidden from the help: the benchmarks start it.
    Command("bench-server", "", [] { return RunBenchServer(); })->group("");
  }

  CLI::App* AddQueryBench(const Benchmark& benchmark, QueryBenchOptions& options, const char* description) {
    CLI::App* bench = Command(benchmark.name, description, [&] { return RunQueryBench(benchmark, options); });
    AddChoice(bench, "--peer", options.peer, {"none", "duckdb"}, "to take turns with (none)");
    Add(bench, "--peer-dir", options.peer_dir, "DuckDB's process (bench/duckdb_peer)", "DIR");
    AddBytes(bench, "--peer-memory", options.peer_memory_bytes, "the peer's memory limit; default: its own");
    bench->add_flag("--peer-file", options.peer_file,
                    "keep the peer's tables in a compressed file, if they do not fit its memory");
    bench->add_flag("--peer-sorted", options.peer_sorted,
                    "sort the peer's tables in the order in which NAM clusters them");
    Add(bench, "--repeat", options.repeat, "runs of each query, after a warm-up");
    AddQueryCluster(bench, options);
    AddBytes(bench, "--memory", options.memory_bytes, "per memory server; default: enough");
    AddBytes(bench, "--block-bytes", options.block_bytes, "maximum size of a block");
    Add(bench, "--compare", options.compare, "an older report of --format=json", "FILE");
    return bench;
  }

  void AddCalibrate() {
    ClusterOptions& cluster = calibrate_.cluster;
    CLI::App* command =
        Command("calibrate", "measure the running cluster's fabric, for the optimizer's estimates",
                [this] { return RunCalibrate(calibrate_); });
    Add(command, "--catalog", cluster.catalog, "the cluster's catalog; without it, the local cluster",
        "HOST:PORT");
    Add(command, "--secret-file", cluster.secret_file, "file with the cluster's secret", "FILE");
    Add(command, "--tls-certificate", cluster.tls.certificate, "this process's certificate, in PEM", "FILE");
    Add(command, "--tls-key", cluster.tls.key, "the certificate's key", "FILE");
    Add(command, "--tls-ca", cluster.tls.authority, "certificates of the cluster's authority", "FILE");
    Add(command, "--state-dir", cluster.state_dir, "the local cluster's directory", "DIR");
    Add(command, "--rdma", cluster.rdma, "verbs: the device", "DEVICE[:PORT][,gid=N]");
    Add(command, "--rounds", calibrate_.rounds, "rounds per measurement; the median counts");
    command->add_flag("--no-rows", calibrate_.no_rows, "skip joins and groups, which need temporary tables");
    command->add_flag("--dry-run", calibrate_.dry_run, "measure without changing the catalog");
    AddFormat(command, calibrate_.format);
  }

  void AddBlockSizeBench() {
    CLI::App* blocks = Command("blocks", "the Star Schema Benchmark over blocks of several sizes",
                               [this] { return RunBlockSizeBench(block_size_bench_); });
    blocks->add_option("--sizes", block_size_bench_.sizes, "only these: 16KiB to 1MiB")->delimiter(',');
    Add(blocks, "--rounds", block_size_bench_.rounds, "rounds, in which all sizes take turns");
    Add(blocks, "--repeat", block_size_bench_.repeat, "runs of each query per round, after a warm-up");
    AddQueryCluster(blocks, block_size_bench_);
  }

  /// Adds the common options of benchmarks with their own cluster.
  template <typename Options>
  static void AddQueryCluster(CLI::App* bench, Options& options) {
    Add(bench, "--scale-factor", options.scale_factor, "1 is six million rows of the largest table");
    Add(bench, "--seed", options.seed, "other data of the same size");
    bench->add_option("--queries", options.queries, "only these: Q1.1,Q2.3")->delimiter(',');
    AddChoice(bench, "--fabric", options.fabric, {"shm", "tcp", "verbs"}, "that the cluster uses (shm)");
    Add(bench, "--memory-servers", options.memory_servers, "number of memory servers");
    Add(bench, "--compute-servers", options.compute_servers, "number of compute servers");
    Add(bench, "--threads", options.threads, "total per contender; 0: one per processor");
    AddFormat(bench, options.format);
  }

  void AddFabricBench() {
    CLI::App* fabric = Command("fabric", "the operations of a fabric, compared to the machine without it",
                               [this] { return RunFabricBench(fabric_bench_); });
    fabric
        ->add_option("--operations", fabric_bench_.operations,
                     "only these: read,write,cas,faa,send,multicast")
        ->delimiter(',');
    fabric->add_option("--sizes", fabric_bench_.sizes, "only these: 8 to 1MiB (8,512,2KiB,64KiB,1MiB)")
        ->delimiter(',');
    fabric
        ->add_option("--in-flight", fabric_bench_.in_flight,
                     "operations in flight per thread, 1 to 64 (1,10,16,64)")
        ->delimiter(',');
    fabric->add_option("--threads", fabric_bench_.threads, "client threads, 1 to 64 (1)")->delimiter(',');
    AddBytes(fabric, "--span", fabric_bench_.span_bytes, "size of the server's memory in use");
    AddTestbed(fabric, fabric_bench_.testbed);
  }

  void AddStreamBenches() {
    CLI::App* prefetch = Command("prefetch", "the engine's block stream by the number of blocks in flight",
                                 [this] { return RunPrefetchBench(prefetch_bench_); });
    prefetch->add_option("--windows", prefetch_bench_.windows, "only these: 1 to 64 (1,2,3,5,10,20,64)")
        ->delimiter(',');
    AddStream(prefetch, prefetch_bench_.stream);
    CLI::App* multicast = Command("multicast", "blocks to many receivers, by READ and by multicast",
                                  [this] { return RunMulticastBench(multicast_bench_); });
    multicast->add_option("--receivers", multicast_bench_.receivers, "only these: 1 to 16 (1,2,…,8)")
        ->delimiter(',');
    Add(multicast, "--blocks", multicast_bench_.blocks, "blocks for every receiver");
    AddStream(multicast, multicast_bench_.stream);
  }

  void AddShuffleBench() {
    ShuffleBenchOptions& options = shuffle_bench_;
    CLI::App* shuffle = Command("shuffle", "star joins by pipelined plans, compared to shuffle-based ones",
                                [this] { return RunShuffleBench(shuffle_bench_); });
    AddChoice(shuffle, "--fabric", options.fabric, {"shm", "tcp", "verbs", "sim"},
              "that the cluster uses (shm)");
    shuffle->add_option("--tables", options.tables, "numbers of joined tables: 2, 3, 4 (all)")
        ->delimiter(',');
    Add(shuffle, "--memory-servers", options.memory_servers, "number of memory servers; 0: 2, in sim 8");
    shuffle
        ->add_option("--compute-servers", options.compute_servers, "per contender (2); sim: all of these (8)")
        ->delimiter(',');
    Add(shuffle, "--threads", options.threads, "per compute server; 0: processors shared out, in sim 10");
    Add(shuffle, "--scale-factor", options.scale_factor, "1 is six million lineorder rows; 0: 1");
    Add(shuffle, "--seed", options.seed, "other data of the same size");
    Add(shuffle, "--fan-out", options.fan_out,
        "parts per join key; 0: 8, or 16 for more than 8 compute servers");
    AddBytes(shuffle, "--batch-bytes", options.batch_bytes, "size of a shuffle's messages");
    Add(shuffle, "--multicast", options.multicast, "for pipelined build sides: auto, on or off (auto)");
    Add(shuffle, "--tuples", options.tuples,
        "tuples of lineorder: narrow (needed columns) or whole (narrow)");
    Add(shuffle, "--credits", options.credits, "batches that a peer may send ahead");
    Add(shuffle, "--repeat", options.repeat, "rounds; figures are medians");
    Add(shuffle, "--generation", options.generation, "sim: fdr, edr, hdr, ndr, or a model's file (fdr)");
    Add(shuffle, "--html", options.html, "write a page with plots", "FILE");
    AddFormat(shuffle, options.format);
  }

  void AddAlgorithmBenches() {
    JoinBenchOptions& joins = join_bench_;
    CLI::App* join = Command("join", "a join of two large relations by each algorithm, and by a peer",
                             [this] { return RunJoinBench(join_bench_); });
    join->add_option("--tuples", joins.tuples, "total per relation: 16M,64M (16M, in sim 64M)")
        ->delimiter(',');
    join->add_option("--selectivity", joins.selectivity,
                     "matches for each tuple of S: 0.25,0.5,1 (1, in sim 0.25,0.5,0.75,1)")
        ->delimiter(',');
    join->add_option("--zipf", joins.zipf, "skew of S's keys, 0 to 1.25 (0,1, in sim 0)")->delimiter(',');
    join->add_flag("--no-loop", joins.no_loop, "skip the hand-written radix join");
    AddAlgorithmBench(join, joins.common,
                      "any of rrj, rdma_ghj, ghj, ghj_bloom, ghj_fabric, ghj_bloom_fabric, pipelined, auto "
                      "(rrj,rdma_ghj,ghj,ghj_bloom)");

    AggregateBenchOptions& aggregates = aggregate_bench_;
    CLI::App* aggregate = Command("aggregate", "groups of a large relation by each algorithm, and by a peer",
                                  [this] { return RunAggregateBench(aggregate_bench_); });
    aggregate->add_option("--tuples", aggregates.tuples, "tuples of the table (128M, in sim 64M)")
        ->delimiter(',');
    aggregate->add_option("--groups", aggregates.groups, "distinct groups (1,1K,1M,16M,64M)")->delimiter(',');
    aggregate->add_option("--keys", aggregates.keys,
                          "dense: 1 to the number of groups; or spread over 31 bits (dense)");
    AddAlgorithmBench(aggregate, aggregates.common, "any of rdma, dist, auto (rdma,dist)");
  }

  void AddChoiceBench() {
    ChoiceBenchOptions& options = choice_bench_;
    CLI::App* choice =
        Command("choice", "the optimizer's choice compared to each algorithm, for random joins",
                [this] { return RunChoiceBench(choice_bench_); });
    Add(choice, "--points", options.points, "number of random joins");
    Add(choice, "--seed", options.seed, "other points, and other data");
    Add(choice, "--tuples-min", options.tuples_min, "minimum per relation: 64K, 1M or 1000");
    Add(choice, "--tuples-max", options.tuples_max, "maximum per relation");
    choice->add_option("--fabrics", options.fabrics, "fabrics, in turn: shm, tcp, verbs (shm,tcp)")
        ->delimiter(',');
    choice
        ->add_option("--algorithms", options.algorithms,
                     "in addition to auto (pipelined,rrj,rdma_ghj,ghj,ghj_bloom)")
        ->delimiter(',');
    Add(choice, "--memory-servers", options.memory_servers, "number of memory servers");
    Add(choice, "--compute-servers", options.compute_servers, "number of compute servers");
    Add(choice, "--threads", options.threads, "total of all compute servers; 0: one per processor");
    Add(choice, "--repeat", options.repeat, "rounds after a warm-up; figures are medians in ms");
    choice->add_flag("--no-calibration", options.no_calibration,
                     "plan with default constants instead of this machine's");
    AddFormat(choice, options.format);
  }

  static void AddAlgorithmBench(CLI::App* bench, AlgorithmBenchOptions& options,
                                const std::string& algorithms) {
    bench->add_option("--algorithms", options.algorithms, algorithms)->delimiter(',');
    Add(bench, "--fabric", options.fabric, "shm, tcp or verbs; or sim, for figure 8 in virtual time (shm)");
    Add(bench, "--memory-servers", options.memory_servers, "number of memory servers; 0: 2, in sim 4");
    Add(bench, "--compute-servers", options.compute_servers, "number of compute servers; 0: 2, in sim 4");
    Add(bench, "--threads", options.threads,
        "total per contender; 0: one per processor, in sim the paper's number per server");
    AddBytes(bench, "--scratch", options.scratch_bytes, "per memory server; default: enough");
    Add(bench, "--seed", options.seed, "other data of the same size");
    Add(bench, "--repeat", options.repeat, "rounds after a warm-up; figures are medians");
    Add(bench, "--peer", options.peer, "none or duckdb (none)");
    Add(bench, "--peer-dir", options.peer_dir, "DuckDB's process (bench/duckdb_peer)", "DIR");
    Add(bench, "--generation", options.generation, "sim: fdr, edr, hdr, ndr, or a model's file (fdr)");
    Add(bench, "--cache-divisor", options.cache_divisor, "sim: divisor of the paper's cache sizes (8)");
    Add(bench, "--html", options.html, "write a page with the plot", "FILE");
    AddFormat(bench, options.format);
  }

  static void AddStream(CLI::App* command, StreamBenchOptions& stream) {
    AddBytes(command, "--block-bytes", stream.block_bytes, "size of a block");
    Add(command, "--threads", stream.threads, "per receiver; 0: the fabric's default");
    Add(command, "--scan-ns", stream.scan_ns, "sim: computation per block; 0: as in I-Store's figures");
    Add(command, "--html", stream.testbed.html, "write a page with the plot", "FILE");
    AddTestbed(command, stream.testbed);
  }

  static void AddTestbed(CLI::App* command, TestbedCommandOptions& testbed) {
    AddChoice(command, "--fabric", testbed.fabric, {"shm", "tcp", "verbs", "sim"}, "to be measured (shm)");
    Add(command, "--generation", testbed.generation, "sim: fdr, edr, hdr or ndr (fdr)");
    Add(command, "--rdma", testbed.rdma, "verbs: the client's device", "DEVICE[:PORT][,gid=N]");
    Add(command, "--server-rdma", testbed.server_rdma, "verbs: the server's device", "DEVICE[:PORT][,gid=N]");
    command->add_flag("--encrypt", testbed.encrypt, "encrypt network traffic (tcp)");
    Add(command, "--server-host", testbed.server_host, "the address that the server listens on (127.0.0.1)",
        "HOST");
    Add(command, "--repeat", testbed.repeat, "rounds; figures are medians");
    Add(command, "--round-ms", testbed.round_ms, "duration of a measurement; 0: the fabric's default");
    Add(command, "--compare", testbed.compare, "an older report of --format=json", "FILE");
    AddFormat(command, testbed.format);
  }

  CalibrateOptions calibrate_;
  CheckoutBenchOptions checkout_bench_;
  QueryBenchOptions ssb_bench_;
  QueryBenchOptions tpch_bench_;
  BlockSizeBenchOptions block_size_bench_;
  FabricBenchOptions fabric_bench_;
  Figure7Options figure7_;
  PrefetchBenchOptions prefetch_bench_;
  MulticastBenchOptions multicast_bench_;
  ShuffleBenchOptions shuffle_bench_;
  JoinBenchOptions join_bench_;
  AggregateBenchOptions aggregate_bench_;
  ChoiceBenchOptions choice_bench_;
};

}  // namespace
}  // namespace nam::bench

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "nam-bench");
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error, not the end
  static nam::bench::BenchCommandLine command_line;
  return command_line.Run(argc, argv);
}
