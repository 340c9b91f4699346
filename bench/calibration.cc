#include "bench/calibration.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "bench/bench_server.h"
#include "bench/commands.h"
#include "bench/fabric_lane.h"
#include "bench/report.h"
#include "optimizer/join_cost.h"
#include "partitioner/loader.h"
#include "session/result_collector.h"
#include "session/session.h"
#include "storage/channel.h"
#include "terminal/json_report.h"

namespace nam::bench {
namespace {

using catalog::FabricConstants;
using optimizer::ClusterShape;
using optimizer::JoinSide;
using optimizer::JoinWork;
using plan::JoinAlgorithm;

constexpr uint32_t kSmallBytes = 2 << 10, kLargeBytes = 64 << 10;
/// Larger than most caches; less on memory servers with less memory.
constexpr uint64_t kMostSlabBytes = uint64_t{32} << 20, kLeastSlabBytes = uint64_t{256} << 10;
constexpr uint32_t kInFlight = 16;
constexpr uint64_t kMovedBytes = uint64_t{64} << 20;  // per round
constexpr int64_t kMessagesNs = 30'000'000;
constexpr int kCalls = 20;
constexpr uint64_t kCopiedBytes = uint64_t{32} << 20;
constexpr uint64_t kAccesses = uint64_t{1} << 21;
constexpr uint64_t kLargestSetBytes = uint64_t{256} << 20;
constexpr double kPsPerNs = 1e3;

/// A memory server's scratch memory, held until destruction.
class Slab {
 public:
  static absl::StatusOr<std::unique_ptr<Slab>> Open(catalog::Attachment& attachment) {
    NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment.Members(proto::ROLE_MEMORY));
    if (servers.empty()) return absl::UnavailableError("the cluster has no memory server");
    const MemoryServerId server(static_cast<uint16_t>(servers.front().id()));
    NAM_ASSIGN_OR_RETURN(const AllocationId allocation,
                         attachment.catalog().BeginLoad(
                             attachment.member(), absl::StrCat("nam_calibrate_", attachment.member().value()),
                             /*replace=*/false));
    std::unique_ptr<Slab> slab(new Slab(attachment, server, allocation));
    absl::StatusOr<catalog::GrantedExtent> extent = absl::InternalError("no size was tried");
    for (uint64_t bytes = kMostSlabBytes; !extent.ok() && bytes >= kLeastSlabBytes; bytes /= 2)
      extent = slab->Allocate(bytes);
    NAM_ASSIGN_OR_RETURN(slab->extent_, std::move(extent));
    NAM_ASSIGN_OR_RETURN(slab->channel_, storage::Channel::Open(attachment.fabric(), attachment, {}));
    return slab;
  }
  ~Slab() {
    channel_.reset();
    attachment_.CloseScratch(allocation_, kAttempt);
    attachment_.ReleaseScratch(server_, allocation_, kAttempt).IgnoreError();
    attachment_.catalog().AbortLoad(allocation_).IgnoreError();
  }

  /// Allocates another extent, which is freed with the first.
  absl::StatusOr<catalog::GrantedExtent> Allocate(uint64_t bytes) {
    const std::atomic<bool> never = false;
    return attachment_.AllocateScratch(server_, allocation_, kAttempt, bytes, never);
  }

  /// Picoseconds per byte of operations of `bytes` bytes, with kInFlight in flight.
  absl::StatusOr<double> BytePs(fabric::Opcode opcode, uint32_t bytes) {
    Clock& clock = attachment_.fabric().clock();
    const uint64_t operations = kMovedBytes / bytes;
    const int64_t begun_ns = clock.NowNs();
    NAM_RETURN_IF_ERROR(Move(opcode, bytes, operations));
    return static_cast<double>(clock.NowNs() - begun_ns) * kPsPerNs / static_cast<double>(operations * bytes);
  }

 private:
  static constexpr uint64_t kAttempt = 1;

  Slab(catalog::Attachment& attachment, MemoryServerId server, AllocationId allocation)
      : attachment_(attachment), server_(server), allocation_(allocation) {}
  storage::RemotePtr<void> begin() const { return {server_, extent_.offset}; }

  absl::Status Move(fabric::Opcode opcode, uint32_t bytes, uint64_t operations) {
    std::array<fabric::Completion, kInFlight> done;
    size_t free = kInFlight, in_flight = 0;
    for (size_t slot = 0; slot < free; ++slot) done[slot].id = slot;
    for (uint64_t next = 0;;) {
      for (size_t i = 0; i < free && next < operations; ++i, ++next) {
        NAM_RETURN_IF_ERROR(Post(opcode, bytes, done[i].id, next));
        ++in_flight;
      }
      if (in_flight == 0) return absl::OkStatus();
      NAM_ASSIGN_OR_RETURN(free, channel_->WaitSome(done));
      for (const fabric::Completion& completion : std::span(done).first(free)) {
        if (!completion.ok()) return channel_->Error(completion);
      }
      in_flight -= free;
    }
  }

  absl::Status Post(fabric::Opcode opcode, uint32_t bytes, uint64_t slot, uint64_t number) {
    const storage::RemotePtr<void> place(server_,
                                         extent_.offset + number % (extent_.bytes / bytes) * uint64_t{bytes});
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, channel_->Resolve(place, bytes));
    const fabric::LocalBuffer local = channel_->buffer().Slice(slot * bytes, bytes);
    const fabric::WorkRequest request = opcode == fabric::Opcode::kWrite
                                            ? fabric::WorkRequest::Write(slot, local, target.address)
                                            : fabric::WorkRequest::Read(slot, local, target.address);
    const absl::Status posted = target.queue_pair->Post({&request, 1});
    if (!posted.ok()) channel_->Break();
    return posted;
  }

  catalog::Attachment& attachment_;
  const MemoryServerId server_;
  const AllocationId allocation_;
  catalog::GrantedExtent extent_;
  std::unique_ptr<storage::Channel> channel_;
};

class Calibration {
 public:
  Calibration(catalog::Attachment& attachment, const FabricConstants& before,
              const CalibrationOptions& options)
      : attachment_(attachment), clock_(attachment.fabric().clock()), options_(options), constants_(before) {}

  absl::StatusOr<FabricConstants> Run() {
    NAM_RETURN_IF_ERROR(MeasureCalls());
    NAM_RETURN_IF_ERROR(MeasureVerbs());
    NAM_RETURN_IF_ERROR(MeasureMessages());
    NAM_RETURN_IF_ERROR(MeasureMemory());
    // Also rejects times that no clock could measure, or of a stalled host.
    return catalog::FromProto(catalog::ToProto("", constants_));
  }

 private:
  /// Stores the median of several rounds.
  absl::Status Measure(const char* doing, double FabricConstants::*constant,
                       const std::function<absl::StatusOr<double>()>& measure) {
    if (!options_.proceed(doing)) return absl::CancelledError("interrupted");
    std::vector<double> values;
    for (int round = 0; round < std::max(1, options_.rounds); ++round) {
      NAM_ASSIGN_OR_RETURN(values.emplace_back(), measure());
    }
    // Virtual time may stand still during computation.
    if (const double median = Median(values); median > 0) constants_.*constant = median;
    return absl::OkStatus();
  }
  double SincePs(int64_t begun_ns) const { return static_cast<double>(clock_.NowNs() - begun_ns) * kPsPerNs; }

  absl::Status MeasureCalls() {
    return Measure("calls", &FabricConstants::call_ps, [&]() -> absl::StatusOr<double> {
      const int64_t begun_ns = clock_.NowNs();
      for (int i = 0; i < kCalls; ++i) NAM_RETURN_IF_ERROR(attachment_.catalog().GetCluster().status());
      return SincePs(begun_ns) / kCalls;
    });
  }

  absl::Status MeasureVerbs() {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<Slab> slab, Slab::Open(attachment_));
    NAM_RETURN_IF_ERROR(slab->BytePs(fabric::Opcode::kWrite, kLargeBytes).status());  // faults in its pages
    const auto verb = [&](fabric::Opcode opcode, uint32_t bytes) {
      return [&slab, opcode, bytes] { return slab->BytePs(opcode, bytes); };
    };
    NAM_RETURN_IF_ERROR(
        Measure("READs", &FabricConstants::read_byte_ps, verb(fabric::Opcode::kRead, kLargeBytes)));
    NAM_RETURN_IF_ERROR(Measure("WRITEs of 2 KiB", &FabricConstants::write_2k_byte_ps,
                                verb(fabric::Opcode::kWrite, kSmallBytes)));
    NAM_RETURN_IF_ERROR(Measure("WRITEs of 64 KiB", &FabricConstants::write_64k_byte_ps,
                                verb(fabric::Opcode::kWrite, kLargeBytes)));
    return Measure("slabs", &FabricConstants::slab_ps, [&]() -> absl::StatusOr<double> {
      const int64_t begun_ns = clock_.NowNs();
      NAM_RETURN_IF_ERROR(slab->Allocate(kLeastSlabBytes).status());
      return SincePs(begun_ns);
    });
  }

  absl::Status MeasureMessages() {
    fabric::Fabric& fabric = attachment_.fabric();
    NAM_RETURN_IF_ERROR(MeasureSends("messages", &FabricConstants::send_byte_ps, fabric));
    if (fabric.capabilities().simulated) return absl::OkStatus();
    // Exchanges over sockets use a fabric of their own, as this does.
    NAM_ASSIGN_OR_RETURN(
        const auto sockets,
        fabric::Open({.kind = fabric::Kind::kTcp, .secret = "calibration", .host = "127.0.0.1"}));
    return MeasureSends("sockets", &FabricConstants::socket_byte_ps, *sockets);
  }

  absl::Status MeasureSends(const char* doing, double FabricConstants::*constant, fabric::Fabric& fabric) {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<BenchServer> server,
                         BenchServer::Start(fabric, kLeastSlabBytes, "127.0.0.1"));
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<Lane> lane,
                         Lane::Open(fabric, server->address(), kInFlight * kLargeBytes + 4096, 1));
    const FabricCase send{.operation = Operation::kSend,
                          .bytes = std::min(kLargeBytes, BytesMax(Operation::kSend)),
                          .in_flight = kInFlight};
    return Measure(doing, constant, [&]() -> absl::StatusOr<double> {
      NAM_ASSIGN_OR_RETURN(const Lane::Outcome outcome, lane->Run(send, kMessagesNs, nullptr));
      return outcome.operations == 0 ? 0
                                     : static_cast<double>(outcome.elapsed_ns) * kPsPerNs /
                                           static_cast<double>(outcome.operations * send.bytes);
    });
  }

  absl::Status MeasureMemory() {
    const auto cache = [](int name, double otherwise) {
      const long bytes = sysconf(name);  // NOLINT(google-runtime-int): its type
      return bytes > 0 ? static_cast<double>(bytes) : otherwise;
    };
    constants_.l2_bytes = cache(_SC_LEVEL2_CACHE_SIZE, constants_.l2_bytes);
    constants_.l3_bytes = std::max(cache(_SC_LEVEL3_CACHE_SIZE, constants_.l3_bytes), constants_.l2_bytes);
    std::vector<std::byte> from(kCopiedBytes, std::byte{1}), to(kCopiedBytes);
    NAM_RETURN_IF_ERROR(Measure("memory", &FabricConstants::memory_byte_ps, [&]() -> absl::StatusOr<double> {
      const int64_t begun_ns = clock_.NowNs();
      std::memcpy(to.data(), from.data(), kCopiedBytes);
      from[0] = to[kCopiedBytes - 1];
      return SincePs(begun_ns) / (2.0 * kCopiedBytes);  // each byte is read and written
    }));
    const double l2 = constants_.l2_bytes, l3 = constants_.l3_bytes;
    NAM_RETURN_IF_ERROR(MeasureAccesses(l2 / 2, &FabricConstants::l2_access_ps));
    NAM_RETURN_IF_ERROR(MeasureAccesses(std::max(l2, l3 / 2), &FabricConstants::l3_access_ps));
    NAM_RETURN_IF_ERROR(MeasureAccesses(4 * l3, &FabricConstants::memory_access_ps));
    // On a busy host a level may appear faster than the previous one.
    constants_.l3_access_ps = std::max(constants_.l3_access_ps, constants_.l2_access_ps);
    constants_.memory_access_ps = std::max(constants_.memory_access_ps, constants_.l3_access_ps);
    return absl::OkStatus();
  }

  /// Words at independent places, which a processor can fetch concurrently, as in batched probes.
  absl::Status MeasureAccesses(double set_bytes, double FabricConstants::*constant) {
    const auto bytes = std::min(kLargestSetBytes, static_cast<uint64_t>(set_bytes));
    const uint64_t words = std::max<uint64_t>(1, bytes / sizeof(uint64_t));
    std::vector<uint64_t> set(words, 1);
    uint64_t sum = 0;
    return Measure("caches", constant, [&]() -> absl::StatusOr<double> {
      const int64_t begun_ns = clock_.NowNs();
      for (uint64_t i = 0; i < kAccesses; ++i) {
        const uint64_t hash = i * 0x9E3779B97F4A7C15;
        sum += set[static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * words) >> 64)];
      }
      return sum == 0 ? 0 : SincePs(begun_ns) / static_cast<double>(kAccesses);
    });
  }

  catalog::Attachment& attachment_;
  Clock& clock_;
  const CalibrationOptions& options_;
  FabricConstants constants_;
};

constexpr uint64_t kSmallRows = 1'000;
/// Enough rows that each worker fills pages of each part.
constexpr uint64_t kMediumRows = uint64_t{512} << 10;
constexpr int64_t kGroups = 1'000;
/// Keys are so sparse that no table of them is an array.
constexpr int64_t kSpread = 1'000'003;
constexpr uint64_t kPlaceStride = 7'919;  // a prime
constexpr double kKeyBytes = 8, kStateBytes = 16;
constexpr double kSmallParts = 64;
/// The largest plausible factor between a fitted constant and its default, in either direction: beyond it the
/// cluster was busy.
constexpr double kFarthest = 16;

const catalog::FabricConstant& ConstantOf(double FabricConstants::*field) {
  const auto table = catalog::FabricConstantTable();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& c) { return c.field == field; });
  NAM_CHECK(found != table.end(), "every constant is in the table");
  return *found;
}

/// Two tables of each of three sizes, dropped at the end.
class CalibrationTables {
 public:
  CalibrationTables(catalog::Attachment& attachment, uint64_t rows)
      : attachment_(attachment),
        prefix_(absl::StrCat("nam_calibrate_", attachment.member().value(), "_")),
        rows_(rows) {}
  ~CalibrationTables() {
    for (const std::string& name : loaded_) attachment_.catalog().DropTable(name).IgnoreError();
  }
  absl::Status Load() {
    const uint64_t medium = std::min(rows_, kMediumRows);
    for (const auto& [name, rows] :
         {std::pair("large", rows_), std::pair("other", rows_), std::pair("medium", medium),
          std::pair("middle", medium), std::pair("small", kSmallRows), std::pair("tiny", kSmallRows)})
      NAM_RETURN_IF_ERROR(LoadOne(name, rows));
    return absl::OkStatus();
  }
  std::string Name(const std::string& table) const { return prefix_ + table; }

 private:
  absl::Status LoadOne(const std::string& name, uint64_t rows) {
    const partitioner::TableSchema schema{
        .name = Name(name),
        .columns = {{"k", Type::Integer()}, {"d", Type::Integer()}, {"g", Type::Integer()}},
        .partitioning = {},
        .sort_column = ""};
    NAM_ASSIGN_OR_RETURN(const auto loader, partitioner::BeginLoad(attachment_, schema, {}));
    constexpr uint64_t kBatchRows = 8'192;
    partitioner::ColumnBatch batch(3);
    for (uint64_t first = 0; first < rows; first += kBatchRows) {
      batch.Clear();
      const uint64_t end = std::min(rows, first + kBatchRows);
      for (uint64_t i = first; i < end; ++i) {
        const auto place = static_cast<int64_t>(i * kPlaceStride % rows);
        batch.column(0).numbers.push_back(place * kSpread);
        batch.column(1).numbers.push_back(place);
        batch.column(2).numbers.push_back(place % kGroups);
      }
      batch.set_rows(end - first);
      NAM_RETURN_IF_ERROR(loader->Append(batch));
    }
    NAM_RETURN_IF_ERROR(loader->Commit().status());
    loaded_.push_back(schema.name);
    return absl::OkStatus();
  }

  catalog::Attachment& attachment_;
  const std::string prefix_;
  const uint64_t rows_;
  std::vector<std::string> loaded_;
};

class RowCalibration {
 public:
  RowCalibration(catalog::Attachment& attachment, const FabricConstants& measured,
                 const CalibrationOptions& options)
      : attachment_(attachment), options_(options), tables_(attachment, options.rows) {
    cluster_.constants = measured;
  }

  absl::StatusOr<FabricConstants> Run() {
    NAM_RETURN_IF_ERROR(LookAtCluster());
    NAM_ASSIGN_OR_RETURN(session_, session::Session::Open(attachment_));
    NAM_RETURN_IF_ERROR(tables_.Load());
    const auto large = static_cast<double>(options_.rows);
    const auto medium = std::min(large, static_cast<double>(kMediumRows));
    const auto small = static_cast<double>(kSmallRows);
    const Pair two_large{"large", "other", large, large}, two_medium{"medium", "middle", medium, medium},
        large_to_small{"large", "small", large, small}, two_small{"small", "tiny", small, small};
    using F = FabricConstants;
    using J = JoinAlgorithm;
    // Each step uses the constants known so far.
    NAM_RETURN_IF_ERROR(FitJoin("stages", &F::stage_ps, J::kPipelined, Keys::kSpread, two_small));
    NAM_RETURN_IF_ERROR(FitJoin("probes", &F::probe_row_ps, J::kPipelined, Keys::kSpread, large_to_small));
    NAM_RETURN_IF_ERROR(FitJoin("tables", &F::build_row_ps, J::kPipelined, Keys::kSpread, two_large));
    NAM_RETURN_IF_ERROR(
        FitJoin("probes of arrays", &F::direct_probe_row_ps, J::kPipelined, Keys::kDense, large_to_small));
    NAM_RETURN_IF_ERROR(FitJoin("arrays", &F::direct_build_row_ps, J::kPipelined, Keys::kDense, two_large));
    NAM_RETURN_IF_ERROR(FitJoin("parts", &F::part_ps, J::kRrj, Keys::kDense, two_medium));
    NAM_RETURN_IF_ERROR(FitJoin("partitions", &F::partition_row_ps, J::kRrj, Keys::kDense, two_large));
    NAM_RETURN_IF_ERROR(FitGroups("few groups", &FabricConstants::group_row_ps, "g", kGroups));
    NAM_RETURN_IF_ERROR(FitGroups("many groups", &FabricConstants::combine_group_ps, "k", large));
    return cluster_.constants;
  }

 private:
  absl::Status LookAtCluster() {
    NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment_.Members(proto::ROLE_COMPUTE));
    if (servers.empty()) return absl::UnavailableError("the cluster has no compute server");
    cluster_.servers = static_cast<double>(servers.size());
    cluster_.threads = 1;
    for (const proto::Member& server : servers)
      cluster_.threads = std::max(cluster_.threads, static_cast<double>(server.threads()));
    cluster_.overlapped = attachment_.fabric().capabilities().card_moves;
    return absl::OkStatus();
  }

  enum class Keys { kSpread, kDense };
  struct Pair {
    const char *probe, *build;
    double probe_rows, build_rows;
  };

  JoinSide Side(double rows) const {
    return {.rows = rows,
            .row_bytes = kKeyBytes,
            .source_ps = optimizer::ScanPs(rows, kKeyBytes, cluster_.constants)};
  }

  absl::Status FitJoin(const char* doing, double FabricConstants::*field, JoinAlgorithm algorithm, Keys keys,
                       const Pair& pair) {
    const char* const key = keys == Keys::kDense ? "d" : "k";
    NAM_RETURN_IF_ERROR(Execute(absl::StrCat("set nam.join = '", plan::NameOf(algorithm), "'")));
    NAM_ASSIGN_OR_RETURN(const double actual_ms,
                         ActualMs(doing, "joins",
                                  absl::StrCat("select count(*) from ", tables_.Name(pair.probe), " a, ",
                                               tables_.Name(pair.build), " b where a.", key, " = b.", key)));
    const JoinWork work{
        .build = Side(pair.build_rows), .probe = Side(pair.probe_rows), .direct = keys == Keys::kDense};
    const optimizer::JoinParts parts{.rrj = std::max(kSmallParts, optimizer::RrjParts(work.build))};
    Fit(field, actual_ms, [&](const FabricConstants& constants) {
      ClusterShape cluster = cluster_;
      cluster.constants = constants;
      return optimizer::CostOf(algorithm, CostsOf(work, parts, cluster));
    });
    return absl::OkStatus();
  }

  absl::Status FitGroups(const char* doing, double FabricConstants::*field, const std::string& key,
                         double groups) {
    NAM_RETURN_IF_ERROR(Execute("set nam.aggregate = 'auto'"));
    NAM_ASSIGN_OR_RETURN(
        const double actual_ms,
        ActualMs(doing, "groups",
                 absl::StrCat("select count(*) from (select ", key, ", count(*) as n from ",
                              tables_.Name("large"), " group by ", key, " having count(*) >= 0) q")));
    const auto rows = static_cast<double>(options_.rows);
    const optimizer::GroupWork work{.rows = rows,
                                    .groups = groups,
                                    .state_bytes = kStateBytes,
                                    .source_ps = optimizer::ScanPs(rows, kKeyBytes, cluster_.constants)};
    Fit(field, actual_ms, [&](const FabricConstants& constants) {
      ClusterShape cluster = cluster_;
      cluster.constants = constants;
      return CostsOf(work, cluster).rdma_ms;
    });
    return absl::OkStatus();
  }

  void Fit(double FabricConstants::*field, double actual_ms,
           const std::function<double(const FabricConstants&)>& estimate) {
    const double usual = FabricConstants().*field;
    cluster_.constants.*field =
        std::clamp(FittedConstant(cluster_.constants, ConstantOf(field), actual_ms, estimate),
                   usual / kFarthest, usual * kFarthest);
  }

  absl::Status Execute(const std::string& statement) { return session_->Execute(statement).status(); }

  /// The median of EXPLAIN ANALYZE's times, after a warm-up run.
  absl::StatusOr<double> ActualMs(const char* doing, const char* choices, const std::string& query) {
    if (!options_.proceed(doing)) return absl::CancelledError("interrupted");
    std::vector<double> times_ms;
    for (int round = 0; round <= options_.rounds; ++round) {
      NAM_ASSIGN_OR_RETURN(const session::ResultSet result,
                           session_->Execute("explain (analyze, format json) " + query));
      const Json plan = Json::parse(result.rows.at(0).at(0).text, nullptr, false);
      const Json::json_pointer actual(absl::StrCat("/0/", choices, "/0/actual_ms"));
      if (!plan.contains(actual)) return absl::InternalError("EXPLAIN does not say what a query took");
      if (round > 0) times_ms.push_back(plan.at(actual).get<double>());
    }
    return Median(times_ms);
  }

  catalog::Attachment& attachment_;
  const CalibrationOptions& options_;
  ClusterShape cluster_;
  CalibrationTables tables_;
  std::unique_ptr<session::Session> session_;
};

class Calibrate final : public Command {
 public:
  Calibrate() : Command("calibrate", "measure the running cluster's fabric, for the optimizer's estimates") {}

  std::vector<Option> Options() override {
    return {
        Option::Place("--catalog", &cluster_.catalog, "HOST:PORT",
                      "the cluster's catalog; without it, the local cluster"),
        Option::Place("--secret-file", &cluster_.secret_file, "FILE", "file with the cluster's secret"),
        Option::Place("--tls-certificate", &cluster_.tls.certificate, "FILE",
                      "this process's certificate, in PEM"),
        Option::Place("--tls-key", &cluster_.tls.key, "FILE", "the certificate's key"),
        Option::Place("--tls-ca", &cluster_.tls.authority, "FILE", "certificates of the cluster's authority"),
        Option::Place("--state-dir", &cluster_.state_dir, "DIR", "the local cluster's directory"),
        Option::Place("--rdma", &cluster_.rdma, "DEVICE[:PORT][,gid=N]", "verbs: the device"),
        Option::Within("--rounds", &rounds_, 1, 1'000, "rounds per measurement; the median counts"),
        {"--no-rows", &no_rows_, "skip joins and groups, which need temporary tables"},
        {"--dry-run", &dry_run_, "measure without changing the catalog"}};
  }

  absl::StatusOr<Report> Measure(Run& run) override {
    const auto attached = AttachToCluster(cluster_);
    connected_ = attached.ok();
    NAM_RETURN_IF_ERROR(attached.status());
    catalog::Attachment& attachment = **attached;
    NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, attachment.catalog().GetCluster());
    // Another version of the program may have stored constants that are unknown here: then everything is
    // measured from the defaults.
    const auto before = catalog::FromProto(cluster.constants()).value_or(catalog::FabricConstants());
    const CalibrationOptions how{.rounds = rounds_, .proceed = [&](const std::string& doing) {
                                   return run.Proceed(absl::StrCat("measuring ", doing));
                                 }};
    NAM_ASSIGN_OR_RETURN(catalog::FabricConstants after, MeasureFabricConstants(attachment, before, how));
    if (!no_rows_) {
      NAM_ASSIGN_OR_RETURN(after, FitRowConstants(attachment, after, how));
    }
    if (!dry_run_)
      NAM_RETURN_IF_ERROR(attachment.catalog().Calibrate(catalog::ToProto(cluster.fabric(), after)));
    Report report{.config = {{"fabric", cluster.fabric()}},
                  .summary = {{"stored", !dry_run_}},
                  .remarks = absl::StrCat(
                      "Picoseconds for each byte, access, row or call; sizes in bytes. ",
                      dry_run_ ? "Not stored.\n"
                               : "The catalog has them; statements that are planned from now on are planned "
                                 "with them.\n")};
    for (const catalog::FabricConstant& constant : catalog::FabricConstantTable()) {
      report.rows.push_back({{"constant", constant.name},
                             {"before", Rounded(before.*constant.field)},
                             {"value", Rounded(after.*constant.field)}});
    }
    return report;
  }
  int ReportError(const absl::Status& status) const override {
    return connected_ ? ReportFailure(status) : ReportNoConnection(status);
  }

 private:
  ClusterOptions cluster_;
  int rounds_ = 5;
  bool no_rows_ = false;  // skip what needs tables and compute servers
  bool dry_run_ = false;  // do not store the results in the catalog
  bool connected_ = false;
};

}  // namespace

absl::StatusOr<FabricConstants> MeasureFabricConstants(catalog::Attachment& attachment,
                                                       const FabricConstants& before,
                                                       const CalibrationOptions& options) {
  return Calibration(attachment, before, options).Run();
}

double FittedConstant(const FabricConstants& constants, const catalog::FabricConstant& constant,
                      double actual, const std::function<double(const FabricConstants&)>& estimate) {
  const double value = constants.*constant.field;
  FabricConstants doubled = constants;
  doubled.*constant.field = 2 * value;
  const double now = estimate(constants), slope = (estimate(doubled) - now) / value;
  if (!(slope > 0)) return value;
  return std::clamp(value + (actual - now) / slope, constant.least, constant.most);
}

absl::StatusOr<FabricConstants> FitRowConstants(catalog::Attachment& attachment,
                                                const FabricConstants& measured,
                                                const CalibrationOptions& options) {
  CalibrationOptions with = options;
  while (true) {
    absl::StatusOr<FabricConstants> fitted = RowCalibration(attachment, measured, with).Run();
    if (!absl::IsResourceExhausted(fitted.status()) || with.rows / 2 < kMediumRows) return fitted;
    with.rows /= 2;
  }
}

std::unique_ptr<Command> CalibrateCommand() {
  return std::make_unique<Calibrate>();
}

}  // namespace nam::bench
