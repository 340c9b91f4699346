#include "session/stage_run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "catalog/fabric_constants.h"
#include "optimizer/part_assignment.h"
#include "partitioner/pieces.h"
#include "plan/codec.h"
#include "session/loaded_rows.h"
#include "session/streamed_run.h"
#include "sql/bound_query.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

/// A query that moves less, and whose joins make fewer tuples of it, ends before another server could help.
constexpr uint64_t kWorthClaimingBytes = 32u << 20;
constexpr double kWorthClaimingTuples = 8e6;
/// A driving record table comes in so many pieces for each thread, so that all end together.
constexpr uint64_t kRecordPiecesOfAThread = 16;
/// For so long a silent catalog is not asked for new members.
constexpr int64_t kCatalogSilentNs = 10'000'000'000;

/// The parts that a stage claims. Rows of any part belong to none, and make every part worth reading.
optimizer::ClaimedParts PartsOf(const PlacedStage& placed) {
  optimizer::ClaimedParts parts;
  parts.rows.resize(placed.parts);
  if (placed.join.has_value()) parts.join = placed.join->kind;
  for (const proto::Directory& directory : placed.inputs) {
    const bool built = placed.join.has_value() && directory.pipeline() == placed.join->built;
    const auto rows = built ? &optimizer::PartRows::built : &optimizer::PartRows::probed;
    for (const proto::PartPages& part : directory.parts()) {
      if (part.part() < placed.parts) {
        parts.rows[part.part()].*rows += part.rows();
      } else {
        for (optimizer::PartRows& of_part : parts.rows)
          of_part.*rows += std::max<uint64_t>(1, part.rows() / placed.parts);
      }
    }
  }
  return parts;
}

uint64_t InputBytes(const PlacedStage& placed) {
  uint64_t bytes = 0;
  for (const proto::Directory& directory : placed.inputs) {
    for (const proto::PartPages& part : directory.parts())
      bytes = std::accumulate(part.bytes().begin(), part.bytes().end(), bytes);
  }
  return bytes;
}

optimizer::Assignment ShareParts(const PlacedStage& placed, int servers, uint32_t threads) {
  optimizer::Assignment assignment =
      optimizer::AssignParts(PartsOf(placed), servers, static_cast<int>(threads));
  const uint64_t bytes = InputBytes(placed);
  uint64_t all = 0;
  for (const optimizer::Assignment::Share& share : assignment.servers) all += share.rows;
  for (optimizer::Assignment::Share& share : assignment.servers)
    share.driving_bytes =
        all == 0 ? 0 : static_cast<uint64_t>(static_cast<unsigned __int128>(bytes) * share.rows / all);
  return assignment;
}

/// By pieces of what the stage claims.
std::function<uint64_t(const partitioner::Piece&)> RowsOf(const PlacedStage& placed) {
  if (placed.parts > 0) {
    return [parts = PartsOf(placed)](const partitioner::Piece& piece) {
      return optimizer::RowsOf(parts, piece);
    };
  }
  return [table = placed.tables.claimed->table](const partitioner::Piece& piece) {
    return partitioner::RowsOf(*table, piece);
  };
}

/// Whether a stage's sink may leave parts or runs in scratch memory.
bool WritesScratch(const proto::PhysicalPlan& plan, uint32_t stage) {
  const uint32_t claimed = plan.stages(static_cast<int>(stage)).claimed();
  const proto::SinkNode& sink = plan.pipelines(static_cast<int>(claimed)).sink();
  return sink.has_partition() || sink.aggregate().parts() > 0 || sink.result().runs() > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StageRunner>> StageRunner::Open(catalog::Attachment& attachment,
                                                               CatalogTables& tables,
                                                               const SessionSettings& settings,
                                                               const std::atomic<bool>& cancel) {
  auto clients = std::make_unique<ComputeClients>(attachment);
  return std::unique_ptr<StageRunner>(
      new StageRunner(attachment, std::move(clients), tables, settings, cancel));
}

StageRunner::StageRunner(catalog::Attachment& attachment, std::unique_ptr<ComputeClients> clients,
                         CatalogTables& tables, const SessionSettings& settings,
                         const std::atomic<bool>& cancel)
    : attachment_(attachment),
      clients_(std::move(clients)),
      tables_(tables),
      settings_(settings),
      cancel_(cancel),
      scratch_(attachment, cancel),
      attempt_(attachment.fabric().Random() << 32) {
  multicast_.emplace(attachment);
}

absl::Status StageRunner::BeginAnew() {
  if (counters_ != nullptr) counters_->Abandon();
  counters_.reset();
  scratch_.Forget();
  multicast_.emplace(attachment_);
  clients_ = std::make_unique<ComputeClients>(attachment_);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<proto::Member>> StageRunner::ComputeServers() {
  NAM_ASSIGN_OR_RETURN(const proto::Cluster* cluster, tables_.Cluster());
  std::vector<proto::Member> members;
  for (const proto::Member& member : cluster->members()) {
    if (member.alive() && member.role() == proto::ROLE_COMPUTE) members.push_back(member);
  }
  if (members.empty()) {
    return ToStatus({.message = "the cluster has no living compute server",
                     .hint = "start one with `nam compute`",
                     .sqlstate = sqlstate::kCannotConnectNow});
  }
  if (settings_.compute_servers > 0) {
    members.resize(std::min<size_t>(members.size(), static_cast<size_t>(settings_.compute_servers)));
  }
  return members;
}

optimizer::ClusterShape StageRunner::Shape() const {
  const proto::Cluster& cluster = tables_.last_seen();
  int64_t servers = 0;
  uint32_t threads = 1;
  for (const proto::Member& member : cluster.members()) {
    if (!member.alive() || member.role() != proto::ROLE_COMPUTE) continue;
    ++servers;
    threads = std::max(threads, member.threads());
  }
  if (settings_.compute_servers > 0) servers = std::min(servers, settings_.compute_servers);
  return {.servers = static_cast<double>(std::max<int64_t>(1, servers)),
          .threads = static_cast<double>(threads),
          .overlapped = attachment_.fabric().capabilities().card_moves,
          // Another program's may have unknown names.
          .constants = catalog::FromProto(cluster.constants()).value_or(catalog::FabricConstants())};
}

absl::Status StageRunner::FindServers(PlacedStage& placed, const RecordReads* records) {
  NAM_ASSIGN_OR_RETURN(std::vector<proto::Member> members, ComputeServers());
  if (placed.streamed()) {
    for (proto::Member& member : members) placed.servers.push_back({std::move(member), {}, {}});
    return absl::OkStatus();
  }
  uint32_t threads = 1;
  for (const proto::Member& member : members) threads = std::max(threads, member.threads());
  const optimizer::Assignment assignment = Share(placed, records, members.size(), threads);
  for (size_t i = 0; i < members.size(); ++i) {
    if (assignment.servers[i].pieces.empty()) continue;
    placed.servers.push_back({std::move(members[i]), assignment.servers[i], {}});
  }
  return absl::OkStatus();
}

optimizer::Assignment StageRunner::Share(const PlacedStage& placed, const RecordReads* records,
                                         size_t servers, uint32_t threads) {
  const auto count = static_cast<int>(servers);
  if (placed.parts > 0) return ShareParts(placed, count, threads);
  const optimizer::StageTables::Side& claimed = *placed.tables.claimed;
  if (const std::optional<partitioner::Piece> first =
          partitioner::FirstRowsOf(*claimed.table, placed.first_rows);
      first.has_value() && placed.first_rows > 0) {
    optimizer::Assignment assignment;
    assignment.servers.resize(servers);
    assignment.servers[0] = {.pieces = {*first}, .rows = placed.first_rows};
    return assignment;
  }
  if (!sql::IsRecordTable(*claimed.table))
    return optimizer::Assign(placed.tables, count, static_cast<int>(threads));
  const uint64_t pieces = kRecordPiecesOfAThread * threads * servers;
  return optimizer::AssignRecords(placed.tables, records->PiecesOf(claimed.number, pieces), count);
}

proto::AttemptRequest StageRunner::RequestOf(const plan::PhysicalPlan& plan,
                                             const optimizer::TableRefs& tables) const {
  proto::AttemptRequest request;
  *request.mutable_plan() = plan::ToProto(plan);
  *request.mutable_settings() = settings_.ForStreams();
  request.set_client(attachment_.member().value());
  for (const auto& table : tables) {
    if (table->version() == 0) *request.add_uncommitted() = *table;
  }
  return request;
}

absl::Status StageRunner::StartMulticast(PlacedStage& placed) {
  MulticastCoordinator::Query shares{
      .stage = placed.tables, .partitions = {}, .in_place = settings_.in_place};
  for (const ServerReport& server : placed.servers) {
    const int threads = std::max(1, static_cast<int>(server.member.threads()));
    shares.threads = shares.partitions.empty() ? threads : std::min(shares.threads, threads);
    shares.partitions.push_back(partitioner::PartitionsOf(server.share.pieces));
  }
  NAM_ASSIGN_OR_RETURN(placed.why_read, multicast_->Start(shares, settings_.multicast));
  return absl::OkStatus();
}

absl::Status StageRunner::Run(proto::AttemptRequest request, uint32_t number, PlacedStage& placed,
                              const StageOutput& output) {
  request.set_stage(number);
  for (const proto::Directory& directory : placed.inputs) *request.add_inputs() = directory;
  for (const proto::RecordInput& input : placed.records) *request.add_records() = input;
  if (WritesScratch(request.plan(), number)) request.set_scratch(scratch_.Open());
  if (output.table != nullptr) *request.mutable_write() = output.table->ForServers();
  if (placed.streamed()) return RunStreamed(std::move(request), placed, output);
  if (placed.parts == 0) NAM_RETURN_IF_ERROR(StartMulticast(placed));
  QueryRun run({.request = std::move(request),
                .servers = placed.servers,
                .clients = *clients_,
                .counters = CountersFor(placed),
                .next_attempt = [this] { return ++attempt_; },
                .multicast =
                    [&](size_t s) {
                      return placed.parts > 0 ? proto::MulticastStreams()
                                              : multicast_->StreamsFor(static_cast<uint32_t>(s));
                    },
                .members = [this] { return NewMembers(); },
                .output = output,
                .drop_scratch = [this](uint64_t attempt) { DropScratch(attempt); },
                .rows_of = RowsOf(placed),
                .progress = ProgressOf(placed),
                .clock = attachment_.fabric().clock(),
                .cancel = cancel_});
  running_ = true;
  const absl::Status status = run.Run();
  running_ = false;
  // The lost memory server may have streams or the words; no call waits for it again.
  const bool lost = absl::IsUnavailable(status);
  multicast_->End(/*tell=*/!lost);
  if (counters_ != nullptr && (lost || !counters_->usable())) {
    counters_->Abandon();
    counters_.reset();
  }
  return status;
}

absl::Status StageRunner::RunStreamed(proto::AttemptRequest request, PlacedStage& placed,
                                      const StageOutput& output) {
  StreamedRun run({.request = std::move(request),
                   .sockets = settings_.exchange == ExchangeOver::kSockets,
                   .exchanges = placed.exchanges.exchanges,
                   .message_bytes = placed.exchanges.message_bytes,
                   .servers = placed.servers,
                   .clients = *clients_,
                   .next_attempt = [this] { return ++attempt_; },
                   .members = [this] { return NewMembers(); },
                   .output = output,
                   .drop_scratch = [this](uint64_t attempt) { DropScratch(attempt); },
                   .clock = attachment_.fabric().clock(),
                   .cancel = cancel_});
  running_ = true;
  const absl::Status status = run.Run();
  running_ = false;
  return status;
}

void StageRunner::DropScratch(uint64_t attempt) {
  scratch_.Use();
  Clock& clock = attachment_.fabric().clock();
  if (clock.NowNs() < catalog_silent_until_ns_ || scratch_.Drop(attempt).ok() || cancel_) return;
  catalog_silent_until_ns_ = clock.NowNs() + kCatalogSilentNs;
}

void AddWork(const PlacedStage& placed, QueryWork& work) {
  for (const ServerReport& server : placed.servers) {
    for (const proto::PipelineCounters& pipeline : server.reply.pipelines()) {
      work.rows += pipeline.rows_in();
      for (const proto::ServerBytes& bytes : pipeline.bytes()) work.bytes += bytes.bytes();
      work.total_ms += static_cast<double>(pipeline.total_us()) / 1000;
      work.waiting_ms += static_cast<double>(pipeline.waiting_us()) / 1000;
    }
  }
}

std::function<void(uint64_t)> StageRunner::ProgressOf(const PlacedStage& placed) {
  if (!progress_) return nullptr;
  QueryProgress progress;
  progress.table = placed.parts > 0 ? "groups" : placed.tables.claimed->table->name();
  for (const ServerReport& server : placed.servers) progress.rows += server.share.rows;
  return [this, progress](uint64_t rows_done) mutable {
    const int64_t now_ns = attachment_.fabric().clock().NowNs();
    next_report_ns_ = now_ns + kProgressNs;
    progress.rows_done = rows_done;
    progress.elapsed_ms = static_cast<double>(now_ns - began_ns_) / 1e6;
    progress_(progress);
  };
}

void StageRunner::BeginQuery() {
  began_ns_ = attachment_.fabric().clock().NowNs();
  next_report_ns_ = began_ns_ + kFirstProgressNs;
}

void StageRunner::TellFinishing(uint64_t rows) {
  if (running_ || !progress_) return;
  const int64_t now_ns = attachment_.fabric().clock().NowNs();
  if (now_ns < next_report_ns_) return;
  next_report_ns_ = now_ns + kProgressNs;
  progress_({.table = "",
             .rows_done = rows,
             .rows = 0,
             .elapsed_ms = static_cast<double>(now_ns - began_ns_) / 1e6});
}

WorkCounters* StageRunner::CountersFor(const PlacedStage& placed) {
  uint64_t bytes = 0;
  for (const ServerReport& server : placed.servers) bytes += server.share.driving_bytes;
  const bool large = bytes >= kWorthClaimingBytes || placed.tuples >= kWorthClaimingTuples;
  const bool wanted = settings_.work_queue == Choice::kOn || (settings_.work_queue == Choice::kAuto && large);
  if (!wanted) return nullptr;
  if (counters_ == nullptr) {
    auto opened = WorkCounters::Open(attachment_, cancel_);
    if (opened.ok()) counters_ = *std::move(opened);
  }
  return counters_.get();
}

absl::StatusOr<std::vector<proto::Member>> StageRunner::NewMembers() {
  if (settings_.compute_servers > 0) return std::vector<proto::Member>();
  // A silent catalog would delay the query at each look.
  Clock& clock = attachment_.fabric().clock();
  if (clock.NowNs() < catalog_silent_until_ns_) return std::vector<proto::Member>();
  auto members = attachment_.Members(proto::ROLE_COMPUTE);
  if (!members.ok() && !cancel_) catalog_silent_until_ns_ = clock.NowNs() + kCatalogSilentNs;
  return members;
}

}  // namespace nam::session
